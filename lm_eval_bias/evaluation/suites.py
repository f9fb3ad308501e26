"""The suites: which tasks, and which of their items, as the benchmarks say it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from lm_eval_bias import catalog, registry
from lm_eval_bias.benchmark import Sampling
from lm_eval_bias.errors import BiasError, did_you_mean

# what each is for, in one line
PURPOSES = {
    "quick": "a first look, or a check for every build - a fixed, balanced part of the items, with wider intervals",
    "standard": "the main tasks of every benchmark with all their items",
    "full": "every task - the main tasks and all their variants",
}
NAMES = tuple(PURPOSES)
# a change of seed, rule or number is a new version: its scores are of other items
VERSION = 3
SEED = "quick-1"


@dataclass(frozen=True)
class Part:
    """One task of a suite.

    Attributes:
        task: Task name.
        sampling: How its items are chosen; ``None`` for all.
        documents: How many items that are, of the released data; ``None`` where that isn't known.
        requests: How many requests they make.
    """

    task: str
    sampling: Sampling | None
    documents: int | None
    requests: int | None


@dataclass(frozen=True)
class Suite:
    """A named set of tasks.

    Attributes:
        name: For ``--suite``.
        version: Goes up when other items are chosen.
        purpose: What it is for, in one line.
        leaves_out: Which tasks it does without, and why.
        seed: Of the choice of items.
        parts: By task.
    """

    name: str
    version: int
    purpose: str
    leaves_out: str
    seed: str
    parts: Mapping[str, Part]

    def choose(self, task: str, docs: Sequence[Mapping[str, Any]]) -> list[int] | None:
        """The indices of a task's items that belong to the suite, in order; ``None`` for all.

        Raises:
            BiasError: Documents without any that the rule could choose.
        """
        sampling = self.parts[task].sampling
        if sampling is None:
            return None
        indices = sampling.choose(docs, self.seed, sampling.number)
        if not indices:
            raise BiasError(f"--suite {self.name}: {task} has no items to choose from: its data set is empty")
        return indices

    def label(self, task: str, docs: Sequence[Mapping[str, Any]], left_out: Sequence[str]) -> dict[str, Any]:
        """What a result file says about the suite: which one, which part of the items, what was left out.

        Args:
            task: Task name.
            docs: All documents of the task.
            left_out: Tasks of the suite that this run does without.
        """
        indices = self.choose(task, docs)
        facts: dict[str, Any] = {"name": self.name, "version": self.version, "tasks_left_out": list(left_out)}
        sampling = self.parts[task].sampling
        if indices is not None and sampling is not None:
            facts |= {"documents": len(indices), "of": len(docs), "rule": sampling.rule, "seed": self.seed}
            facts["items_sha256"] = fingerprint([docs[i] for i in indices])
        return facts


def fingerprint(docs: Sequence[Mapping[str, Any]]) -> str:
    """A hash of what documents are named by, in which two runs of the same items agree, also in two languages."""
    names = sorted(registry.get(str(doc["benchmark"])).key(doc) for doc in docs)
    return hashlib.sha256(json.dumps(names, ensure_ascii=False).encode()).hexdigest()[:16]


@cache
def load(name: str) -> Suite:
    """The suite of that name.

    Raises:
        BiasError: There is none.
    """
    if name not in NAMES:
        raise BiasError(f"--suite {name}: unknown suite.{did_you_mean(name, NAMES)} Known: {', '.join(NAMES)}")
    members = {"quick": _quick, "standard": _standard, "full": _full}[name]
    parts = {task: _part(task, sampling) for task, sampling in members()}
    left_out = "; ".join(benchmark.left_out[name] for benchmark in registry.benchmarks() if name in benchmark.left_out)
    return Suite(name, VERSION, PURPOSES[name], left_out or "nothing", SEED if name == "quick" else "", parts)


def _quick() -> Iterable[tuple[str, Sampling | None]]:
    for benchmark in registry.benchmarks():
        yield from benchmark.quick.items()


def _standard() -> Iterable[tuple[str, None]]:
    return ((task, None) for benchmark in registry.benchmarks() for task in benchmark.standard)


def _full() -> Iterable[tuple[str, None]]:
    """Everything that no other task of the suite contains already, the tasks of ``standard`` first."""
    contained = {task for benchmark in registry.by_name().values() for task in benchmark.contained}
    yield from _standard()
    for entry in catalog.entries().values():
        if entry.kind == "task" and entry.name not in contained and not registry.get(entry.benchmark).required:
            yield entry.name, None


def _part(task: str, sampling: Sampling | None) -> Part:
    entry = catalog.entries()[task]
    documents = entry.items if sampling is None else sampling.items
    per_document = registry.get(entry.benchmark).requests({"asks": entry.asks, **entry.metadata})
    requests = None if documents is None or per_document is None else documents * per_document * (entry.repeats or 1)
    return Part(task, sampling, documents, requests)


def listing() -> list[dict[str, Any]]:
    """All suites as plain data."""
    return [
        {
            "name": suite.name,
            "version": suite.version,
            "purpose": suite.purpose,
            "leaves_out": suite.leaves_out,
            "documents": catalog.total(part.documents for part in suite.parts.values()),
            "requests": catalog.total(part.requests for part in suite.parts.values()),
            "tasks": {
                task: {
                    "documents": part.documents,
                    "requests": part.requests,
                    "rule": part.sampling.rule if part.sampling else None,
                }
                for task, part in suite.parts.items()
            },
        }
        for suite in map(load, NAMES)
    ]
