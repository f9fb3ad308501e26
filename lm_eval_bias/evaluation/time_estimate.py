"""How long a run will take: a few of its own requests are timed on the loaded model before the first is scored.

That leaves the model as it was: nothing that is asked goes into the cache of ``--use_cache``, texts are generated
without sampling, and random numbers go on where they were.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import time
from collections.abc import Iterator, Mapping, Sequence
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
_BRIEF = 32  # tokens of a short text: an answer that ends, or is read, early
_WORTH_TELLING = 60.0  # seconds of a run that isn't a suite's
_SHARE = 0.01  # of such a run, which its estimate may cost beside the first request of each kind
_FEW = 40  # documents, or texts of as many tokens as are timed: their first requests would be more than that
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
    internals.ask_silently(model, kind, requests)
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
        if number == 1 and took > budget > 0:  # nothing else will be timed, and a first request is slow
            timed += len(requests)
            took = _seconds(model, kind, requests)
        remaining -= took
        # a first request is slow: what it took doesn't say that a few together would take too long
        affordable = max(int(number * remaining / took), _BLOCK if number == 1 and remaining > 0 else 0)
        if number >= most or affordable <= number or not _can_go_on(model):
            return took * _work(documents) / _work(sample), timed
        number = min(most, affordable, 8 * number)
        sample = spread(documents, number)


def _shortened(model: Any, instance: Any, length: int) -> Any:
    """A request for a text of so many tokens, the likeliest ones: no random numbers are used up."""
    # a text that ended before would tell less of the time
    fixed = {"min_new_tokens": length} if "HFLM" in {owner.__name__ for owner in type(model).__mro__} else {}
    context, short = instance.args[0], {"until": [], "do_sample": False, "max_gen_toks": length, **fixed}
    return dataclasses.replace(instance, arguments=(context, short), resps=[], filtered_resps={})


def _longest_text(model: Any, instance: Any) -> int:
    options = instance.args[1]
    return int(options.get("max_gen_toks") or options.get("max_new_tokens") or getattr(model, "max_gen_toks", 256))


def _generation_time(model: Any, documents: list[Document], budget: float) -> tuple[float, float, int]:
    """Seconds for all texts of a group if each is short, or as long as it may be, and how many requests were timed."""
    instances = [instance for document in documents for instance in document.instances]
    copies = [instance for instance in instances for _ in range(instance.repeats or 1)]
    batch = int(model.batch_size) if str(getattr(model, "batch_size", "")).isdigit() else 1
    # what a model does once, with its first text, isn't to be counted with every one
    _, first = (_seconds(model, _WRITE, [_shortened(model, instances[0], length)]) for length in (1, _SHORT))
    most = token_likelihoods.everywhere(model, min(batch, len(copies)))
    number = min(most, max(1, int(budget / 2 / first))) if _can_go_on(model) else 1
    sample = (copies * number)[:: max(1, len(copies) // number)][:number]
    one_token, short_text = (
        _seconds(model, _WRITE, [_shortened(model, i, length) for i in sample]) for length in (1, _SHORT)
    )
    longest = max(_longest_text(model, instance) for instance in instances)
    per_token = max(0.0, short_text - one_token) / (_SHORT - 1)
    brief, full = (
        (one_token + per_token * (length - 1)) * len(copies) / number for length in (min(longest, _BRIEF), longest)
    )
    return brief, full, 2 + 2 * number


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


def _is_few(model: Any, kind: str, documents: Sequence[Document]) -> bool:
    """Whether a group is so small that its first request would be a good part of it; the same on every rank."""
    amount = len(documents)
    if kind == GENERATED:
        instances = [instance for document in documents for instance in document.instances]
        amount = sum((one.repeats or 1) * _longest_text(model, one) for one in instances) // (2 * _SHORT)
    return token_likelihoods.everywhere(model, amount) < _FEW


class Times(NamedTuple):
    """What a run will take.

    Attributes:
        low: Seconds by benchmark and whether it is texts, if these are short.
        high: The same if each text is as long as it may be.
        timed: Number of requests that were timed.
    """

    low: dict[tuple[str, bool], float]
    high: dict[tuple[str, bool], float]
    timed: int

    @property
    def most(self) -> float:
        """Seconds in all, at most."""
        return sum(self.high.values())


def _times(model: Any, groups: Mapping[Group, list[Document]], budget: float) -> Times:
    """Measured on a few requests of each group.

    Args:
        model: The loaded model.
        groups: All requests of the run on this rank.
        budget: Seconds for all groups together, beside the first request of each.
    """
    low: dict[tuple[str, bool], float] = {}
    high: dict[tuple[str, bool], float] = {}
    timed = 0
    for (benchmark, kind, _), documents in groups.items():
        key = benchmark, kind == GENERATED
        if kind == GENERATED:
            brief, full, requests = _generation_time(model, documents, budget / len(groups))
        else:
            full, requests = _scoring_time(model, kind, documents, budget / len(groups))
            brief = full
        low[key], high[key] = low.get(key, 0.0) + brief, high.get(key, 0.0) + full
        timed += requests
    return Times(low, high, timed)


def _in_words(times: Times, took: float, lengths: str) -> str:
    """What is to be said about them.

    Args:
        times: The times.
        took: Seconds of measuring.
        lengths: In tokens, of texts.
    """

    def span(low: float, high: float) -> str:
        return clock(high) if clock(low) == clock(high) else f"{clock(low)} to {clock(high)}"

    parts = ", ".join(
        f"{benchmark}{' from texts' if is_text else ''} {span(times.low[benchmark, is_text], high)}"
        for (benchmark, is_text), high in times.high.items()
    )
    low, most = sum(times.low.values()), times.most
    has_texts = any(is_text for _, is_text in times.high)
    beginning = "at most (texts may end early) " if has_texts and clock(low) == clock(most) else ""
    ending = ""
    if clock(low) != clock(most):
        ending = (
            f" Texts of {lengths} tokens: a lower limit (--gen_kwargs max_gen_toks=64) takes less time, but cuts off "
            "what the model would have written after it."
        )
    return (
        f"Expected time: {beginning or ('' if ending else 'about ')}{span(low, most)} ({parts}); measured on "
        f"{times.timed:,} request{'' if times.timed == 1 else 's'} in {clock(took)}. Answers already in --use_cache "
        f"take no time.{ending}"
    )


def estimate(model: Any, instances: Sequence[Any], stop_below: float = 0.0) -> str:
    """What is to be said about the time that requests will take, measured on a few of them.

    Args:
        model: The loaded model.
        instances: All requests of the run on this rank.
        stop_below: Seconds of a run about which nothing is said; with some, the measuring costs a share of the run.
    """
    groups = grouped(instances)
    start = time.perf_counter()
    budget, times = SECONDS, None
    if stop_below:
        groups = {group: documents for group, documents in groups.items() if not _is_few(model, group[1], documents)}
        took = 0
        for _ in range(2):  # a fresh model's first requests are slow
            begin = time.perf_counter()
            times = _times(model, groups, 0.0)
            took = token_likelihoods.everywhere(model, int(1e6 * (time.perf_counter() - begin)))
            rough = token_likelihoods.everywhere(model, int(times.most))
            if rough < stop_below:
                return ""
            budget = min(SECONDS, _SHARE * rough)
        times = times if (1 + _BLOCK) * took > 1e6 * budget else None
    times = times or _times(model, groups, budget)
    texts = [one for (_, kind, _), documents in groups.items() if kind == GENERATED for one in documents]
    longest = max((_longest_text(model, one) for document in texts for one in document.instances), default=0)
    return _in_words(times, time.perf_counter() - start, f"{_BRIEF} to {longest:,}")


def unmeasured(model: Any) -> str:
    """Why a model is asked nothing before its run; empty where it is."""
    if not _LOCAL & {owner.__name__ for owner in type(model).__mro__}:
        return f"{type(model).__name__} may compute on another machine, where requests can cost money"
    accelerator = getattr(model, "accelerator", None)
    if str(getattr(accelerator, "distributed_type", "")).endswith("FSDP"):
        return "the model is sharded over several processes, which would have to run in step"
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


def announce(model: Any, instances: Sequence[Any], stop: bool = False, brief: bool = False) -> None:
    """Say how long requests will take, or why that isn't measured.

    Args:
        model: The loaded model.
        instances: All requests of the run on this rank.
        stop: Whether that is all that is wanted.
        brief: Whether that wasn't asked for: nothing is said of a run of less than a minute, of one that isn't
            measured, or where the model has to look for its batch size first.

    Raises:
        Stop: That was all.
    """
    reason = unmeasured(model)
    if brief and (reason or str(getattr(model, "batch_size", "")).startswith("auto")):
        return
    if reason:
        text = f"No time estimate: {reason}."
    else:
        with unchanged(model):
            text = estimate(model, instances, _WORTH_TELLING if brief else 0.0)
    if text and distributed.first():
        print(text, flush=True)
    if stop:
        raise Stop
