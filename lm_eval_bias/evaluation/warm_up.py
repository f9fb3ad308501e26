"""How long a run will take: a few of its own requests are timed on the loaded model before the first is scored.

The harness builds the model and keeps it to itself; what it does let a task do is ask requests of a kind of its own,
each of which is a method of the model. So the first request of a run that wants an estimate is of the kind
:data:`KIND`: its method has the model at hand and all requests of the run, built. It takes itself out of its task, so
that no filter, log or score ever meets it, and leaves the model as it was: nothing it asks goes into the cache of
``--use_cache``, texts are generated without sampling, and random numbers go on where they were.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.evaluation import timing
from lm_eval_bias.harness import distributed

KIND = "bias_warm_up"
_CALLED = "a warm-up that times a few requests of the run and enters no score"
# model types that compute here; requests to others may cost money, or wait for others
_LOCAL = {"HFLM", "VLLM", "SGLangLM", "QuestionModel", "ChanceLM", "MegatronLMEval", "NEMOLM"}
_active: WarmUp | None = None


class Stop(Exception):
    """No error: ends a run after its estimate, where that was all that was asked for."""


class WarmUp:
    """The estimate of one run."""

    def __init__(self, stop: bool = False) -> None:
        """An estimate, with ``stop`` in place of the run."""
        self._stop = stop
        self._tasks: list[Any] = []
        self._own: Any = None

    def join(self, task: Any) -> None:
        """Take a task in whose requests have been built; the first one carries the request for the estimate."""
        from lm_eval.api.instance import Instance

        self._tasks.append(task)
        if self._own is None:
            doc = task.instances[0].doc
            # of no document: --write_out shows the prompt of the first that it finds
            self._own = Instance(KIND, doc, (_CALLED,), 0, (task.config.task, None, 1))
            task.instances.insert(0, self._own)

    def run(self, model: Any) -> None:
        """Measure, say what was found, and stop if that was all that was wanted.

        Raises:
            Stop: That was all.
        """
        self._tasks[0].instances.remove(self._own)
        reason = unmeasured(model)
        if reason:
            text = f"No estimate of the time: {reason}."
        else:
            with unchanged(model):
                text = timing.estimate(model, [i for task in self._tasks for i in task.instances])
        if distributed.first():
            print(text, flush=True)
        if self._stop:
            raise Stop


def unmeasured(model: Any) -> str:
    """Why a model isn't warmed up; empty where it is."""
    if not _LOCAL & {owner.__name__ for owner in type(model).__mro__}:
        return f"{type(model).__name__} may compute elsewhere, where requests can cost money"
    accelerator = getattr(model, "accelerator", None)
    if str(getattr(accelerator, "distributed_type", "")).endswith("FSDP"):
        return "the model is sharded over ranks, which would have to run in step"
    return ""


@contextlib.contextmanager
def unchanged(model: Any) -> Iterator[None]:
    """Leave a model's cache and batch sizes and all random numbers as they were."""
    import numpy as np
    import torch
    from lm_eval.api.model import CacheHook

    hook, sizes = model.cache_hook, dict(getattr(model, "batch_sizes", {}))
    python, arrays = random.getstate(), np.random.get_state()
    model.set_cache_hook(CacheHook(None))
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        model.set_cache_hook(hook)
        if hasattr(model, "batch_sizes"):
            model.batch_sizes = sizes
        random.setstate(python)
        np.random.set_state(arrays)


@contextlib.contextmanager
def planned(warm_up: WarmUp | None) -> Iterator[None]:
    """Have the tasks of a run that lasts as long as this context join a warm-up."""
    global _active
    before, _active = _active, warm_up
    try:
        yield
    finally:
        _active = before


def join(task: Any) -> None:
    """Let a task take part in the warm-up of the present run, if it has one."""
    if _active is not None:
        _active.join(task)


def _method(self: Any, requests: Sequence[Any]) -> list[None]:
    """Time a few requests of the run (``lm-eval-bias run --suite``); the answers mean nothing."""
    if _active is None:
        raise BiasError("a warm-up outside of lm-eval-bias run")
    _active.run(self)
    return [None for _ in requests]


def install() -> None:
    """Add the method to the harness's model base class; nothing that it has is replaced."""
    from lm_eval.api.model import LM

    if not hasattr(LM, KIND):
        setattr(LM, KIND, _method)
