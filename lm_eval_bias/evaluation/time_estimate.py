"""How long a run will take: a few of its own requests are timed on the loaded model before the first is scored.

That leaves the model as it was: nothing that is asked goes into the cache of ``--use_cache``, texts are generated
without sampling, and random numbers go on where they were.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lm_eval_bias.harness import distributed, internals
from lm_eval_bias.scoring import token_likelihoods
from lm_eval_bias.scoring.questions import KINDS
from lm_eval_bias.scoring.sampled_texts import GENERATED

_WRITE = "generate_until"
SECONDS = 10.0  # for all kinds of requests together, where the model is fast enough
_BLOCK = 4  # documents that lie side by side begin alike, which some models make use of
_MOST = 256  # documents of a group: more say nothing more
_SHORT = 9  # tokens of a text that is generated to see how long one takes
# model types that compute here; requests to others may cost money, or wait for others
_LOCAL = {"HFLM", "VLLM", "SGLangLM", "QuestionModel", "ChanceLM", "MegatronLMEval", "NEMOLM"}


class Stop(Exception):
    """No error: ends a run after its estimate, where that was all that was asked for."""


class Document(NamedTuple):
    """The requests of one document, and what their time grows with: bytes of their texts."""

    instances: list[Any]
    work: int


Group = tuple[str, str, int]  # documents whose requests take the same time, byte for byte: benchmark, kind, number


def grouped(instances: Sequence[Any]) -> dict[Group, list[Document]]:
    """Requests by document, documents by benchmark, kind and number of requests; in one order on every rank."""
    by_document: dict[tuple[str, int], list[Any]] = {}
    for instance in instances:
        by_document.setdefault((instance.task_name, instance.doc_id), []).append(instance)
    groups: dict[Group, list[Document]] = {}
    for requests in by_document.values():
        kind = requests[0].request_type
        # a rank that has no such question of its own asks one of another's, alone
        number = 0 if kind in KINDS else len(requests)
        group = groups.setdefault((str(requests[0].doc.get("benchmark")), kind, number), [])
        group.append(Document(requests, sum(map(_bytes, requests))))
    return dict(sorted(groups.items()))


def _bytes(instance: Any) -> int:
    return sum(len(part.encode()) for part in instance.args if isinstance(part, str)) or 1


def spread(documents: Sequence[Document], number: int) -> list[Document]:
    """Some documents, in blocks as they lie in the data, of lengths that stand for all: the median, or quantiles.

    >>> [d.work for d in spread([Document([], n) for n in (9, 9, 9, 9, 5, 5, 5, 5, 1, 1, 1, 1)], 3)]
    [5, 5, 5]
    """
    if number >= len(documents):
        return list(documents)
    blocks = [documents[i : i + _BLOCK] for i in range(0, len(documents), _BLOCK)]
    blocks.sort(key=lambda block: _work(block) / len(block))
    count = min(len(blocks), -(-number // _BLOCK))
    sample = [blocks[int((i + 0.5) * len(blocks) / count)] for i in range(count)]
    return [document for block in sample for document in block][:number]


def _seconds(model: Any, kind: str, requests: list[Any]) -> float:
    """How long the slowest rank takes."""
    start = time.perf_counter()
    getattr(model, kind)(requests)
    return token_likelihoods.everywhere(model, int(1e6 * (time.perf_counter() - start)) + 1) / 1e6


def _can_go_on(model: Any) -> bool:
    """Whether all processes know what each decides: not where several pretend to be one (tensor parallelism)."""
    import torch

    together = torch.distributed.is_available() and torch.distributed.is_initialized()
    return model.world_size > 1 or not together or torch.distributed.get_world_size() == 1


def _work(documents: Sequence[Document]) -> int:
    return sum(document.work for document in documents)


def _scoring_time(model: Any, kind: str, documents: list[Document], budget: float) -> tuple[float, int]:
    """Seconds for all requests of a group that are scored, and how many were timed.

    The longest document goes first: what a first request costs is no part of the estimate, and a model that can't hold
    it says so now. Then more and more at a time, since many together take less than one by one, until the budget is
    used up; the last time counts.
    """
    sample = [max(documents, key=lambda document: document.work)]
    # numbers and seconds are the same on every rank: all have to go on, or none
    most = token_likelihoods.everywhere(model, min(_MOST, len(documents)))
    number, timed, remaining = 1, 0, budget
    while True:
        requests = [instance for document in sample for instance in document.instances]
        timed += len(requests)
        took = _seconds(model, kind, requests)
        remaining -= took
        # a first request is slow: what it took doesn't say that a few together would take too long
        affordable = max(int(number * remaining / took), _BLOCK if number == 1 and remaining > 0 else 0)
        if number >= most or affordable <= number or not _can_go_on(model):
            return took * _work(documents) / _work(sample), timed
        number = min(most, affordable, 8 * number)
        sample = spread(documents, number)


def _shortened(instance: Any, length: int) -> Any:
    """A request for a text of so many tokens, the likeliest ones: no random numbers are used up."""
    context, options = instance.args
    short = {"until": options.get("until", []), "do_sample": False, "max_gen_toks": length}
    return dataclasses.replace(instance, arguments=(context, short), resps=[], filtered_resps={})


def _longest_text(model: Any, instance: Any) -> int:
    options = instance.args[1]
    return int(options.get("max_gen_toks") or options.get("max_new_tokens") or getattr(model, "max_gen_toks", 256))


def _generation_time(model: Any, documents: list[Document], budget: float) -> tuple[float, int]:
    """Seconds for all texts of a group if each becomes as long as it may, and how many requests were timed."""
    instances = [instance for document in documents for instance in document.instances]
    copies = [instance for instance in instances for _ in range(instance.repeats or 1)]
    batch = int(model.batch_size) if str(getattr(model, "batch_size", "")).isdigit() else 1
    first = _seconds(model, _WRITE, [_shortened(instances[0], _SHORT)])
    most = token_likelihoods.everywhere(model, min(batch, len(copies)))
    number = min(most, max(1, int(budget / 2 / first))) if _can_go_on(model) else 1
    sample = (copies * number)[:: max(1, len(copies) // number)][:number]
    one_token, short_text = (_seconds(model, _WRITE, [_shortened(i, length) for i in sample]) for length in (1, _SHORT))
    longest = max(_longest_text(model, instance) for instance in instances)
    per_text = one_token + max(0.0, short_text - one_token) / (_SHORT - 1) * (longest - 1)
    return per_text * len(copies) / number, 1 + 2 * number


def clock(seconds: float) -> str:
    """A duration for people, to two digits at most.

    >>> clock(0.4), clock(47.2), clock(95), clock(1234), clock(8000), clock(400_000)
    ('a second', '47 s', '2 min', '21 min', '2 h 13 min', '111 h')
    """
    if seconds < 1.5:
        return "a second"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 600 else f"{round(minutes / 60)} h"


def estimate(model: Any, instances: Sequence[Any]) -> str:
    """What is to be said about the time that requests will take, measured on a few of them.

    Args:
        model: The loaded model.
        instances: All requests of the run on this rank.
    """
    groups = grouped(instances)
    start = time.perf_counter()
    seconds: dict[tuple[str, bool], float] = {}
    timed = 0
    for (benchmark, kind, _), documents in groups.items():
        is_text = kind == GENERATED
        budget = SECONDS / len(groups)
        took, requests = (
            _generation_time(model, documents, budget) if is_text else _scoring_time(model, kind, documents, budget)
        )
        seconds[benchmark, is_text] = seconds.get((benchmark, is_text), 0.0) + took
        timed += requests
    parts = ", ".join(
        f"{benchmark}{' from texts at most' if is_text else ''} {clock(took)}"
        for (benchmark, is_text), took in seconds.items()
    )
    most = "at most (texts may end early) " if any(is_text for _, is_text in seconds) else "about "
    return (
        f"Expected time: {most}{clock(sum(seconds.values()))} ({parts}); measured on {timed:,} requests in "
        f"{clock(time.perf_counter() - start)}. Answers that --use_cache holds already take none."
    )


def unmeasured(model: Any) -> str:
    """Why a model is asked nothing before its run; empty where it is."""
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

    hook, sizes = model.cache_hook, dict(getattr(model, "batch_sizes", {}))
    python, arrays = random.getstate(), np.random.get_state()
    model.set_cache_hook(internals.no_cache())
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


def announce(model: Any, instances: Sequence[Any], stop: bool = False) -> None:
    """Say how long requests will take, or why that isn't measured.

    Args:
        model: The loaded model.
        instances: All requests of the run on this rank.
        stop: Whether that is all that is wanted.

    Raises:
        Stop: That was all.
    """
    reason = unmeasured(model)
    if reason:
        text = f"No estimate of the time: {reason}."
    else:
        with unchanged(model):
            text = estimate(model, instances)
    if distributed.first():
        print(text, flush=True)
    if stop:
        raise Stop
