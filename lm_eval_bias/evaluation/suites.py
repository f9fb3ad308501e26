"""The suites: which tasks, and which of their items, as the benchmarks say it; what of it fits a run, and its size."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import REQUIRED, Sampling, Size, options_for
from lm_eval_bias.core.errors import BiasError, ask, did_you_mean, fault, kind_of
from lm_eval_bias.evaluation import preflight

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

# what each is for, in one line
PURPOSES = {
    "quick": "a first look, or a check for every build - a fixed, balanced part of the items, with wider intervals",
    "quick-chat": "a first look at chat models and servers without log-likelihoods - answers that they write to a "
    "fixed, balanced part of the items",
    "english": "the main tasks in English with all their items - sentences, texts and question answering",
    "standard": "the main tasks of every benchmark with all their items",
    "full": "every task - the main tasks and all their variants",
}
NAMES = tuple(PURPOSES)
Documents = Sequence[Mapping[str, Any]]
# a change of seed, rule or number is a new version: its scores are of other items
VERSION = 4
SEED = "quick-1"


class SuitePart(NamedTuple):
    """One task of a suite: how its items are chosen (``None``: all), how many they and their requests are."""

    sampling: Sampling | None
    documents: int | None
    requests: int | None


@dataclass(frozen=True)
class Suite:
    """A named set of tasks; ``left_out`` are those that a run's model can't answer, and why not."""

    name: str
    leaves_out: str
    parts: Mapping[str, SuitePart]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def purpose(self) -> str:
        """What it is for, in one line."""
        return PURPOSES[self.name.partition("+")[0]]

    def choose(self, task: str, docs: Documents) -> list[int] | None:
        """The indices of a task's items that belong to the suite, in order; ``None`` for all."""
        sampling = self.parts[task].sampling
        if sampling is None:
            return None
        try:
            indices = sampling.choose(docs, SEED, sampling.number)
        except Exception as error:  # other people's code can fail in any way
            raise BiasError(f"--suite {self.name}: {task}: its items can't be chosen ({kind_of(error)})") from error
        if not indices:
            raise BiasError(f"--suite {self.name}: {task} has no items to choose from: its data set is empty")
        return indices

    def label(self, task: str, docs: Documents) -> dict[str, Any]:
        """What a result file says about the suite: which one, which part of the items, what was left out."""
        facts: dict[str, Any] = {"name": self.name, "version": VERSION, "tasks_left_out": sorted(self.left_out)}
        indices, sampling = self.choose(task, docs), self.parts[task].sampling
        if indices is not None and sampling is not None:
            facts |= {"documents": len(indices), "of": len(docs), "rule": sampling.rule, "seed": SEED}
            facts["items_sha256"] = fingerprint([docs[i] for i in indices])
        return facts


def fingerprint(docs: Documents) -> str:
    """A hash of what documents are named by, in which two runs of the same items agree, also in two languages."""
    names = sorted(registry.get(str(doc["benchmark"])).key(doc) for doc in docs)
    return hashlib.sha256(json.dumps(names, ensure_ascii=False).encode()).hexdigest()[:16]


@cache
def load(name: str) -> Suite:
    """The suite of that name, with ``+NAME`` for every benchmark of another package that belongs to it.

    Raises:
        BiasError: There is no such suite or benchmark.
    """
    base, *more = name.split("+")
    others = [one.name for one in registry.benchmarks() if not registry.is_own(one)]
    for given, known, kind in (
        (base, NAMES, "suite"),
        *((one, others, "benchmark of another package") for one in more),
    ):
        if given not in known:
            listed = f" Known: {', '.join(known)}" if known else ""
            raise BiasError(f"--suite {name}: unknown {kind}.{did_you_mean(given, known)}{listed}")
    benchmarks = [one for one in registry.benchmarks() if registry.is_own(one) or one.name in more]
    chosen: dict[str, Sampling | None] = {}
    for benchmark in benchmarks:
        tables = {"quick": benchmark.quick, "quick-chat": benchmark.quick_chat}
        for task, sampling in tables.get(base, dict.fromkeys(benchmark.standard)).items():
            if task in catalog.entries():
                if base != "english" or catalog.entries()[task].language == "en":
                    chosen[task] = sampling
            else:
                fault(f"the benchmark {benchmark.name}: {base} names {task}, which is not a task: it is left out")
    if base == "full":  # everything that no other of its tasks contains already
        contained = {task for own in benchmarks if base in own.left_out for task in own.left_out[base].tasks}
        for entry in catalog.entries().values():
            needs_a_file = options_for(registry.get(entry.benchmark), REQUIRED)
            is_in = registry.family(entry.benchmark) in benchmarks
            if is_in and entry.kind == "task" and entry.name not in contained and not needs_a_file:
                chosen.setdefault(entry.name)
    parts = {}
    for task, sampling in chosen.items():
        entry = catalog.entries()[task]
        documents, own = entry.items if sampling is None else sampling.items, registry.get(entry.benchmark)
        size: Size = ask(Size(None), own, own.size, {"asks": entry.asks, **entry.metadata})
        repeats = (sampling.repeats if sampling else None) or entry.repeats or 1
        requests = documents and size.requests and documents * size.requests * repeats
        parts[task] = SuitePart(sampling, documents, requests)
    whole = "standard" if base == "english" else base
    chosen_from = {registry.family(catalog.entries()[task].benchmark) for task in chosen}
    left_out = ["all other languages"] if base == "english" else []
    for own in benchmarks:
        if whole in own.left_out and (whole == base or own in chosen_from):
            left_out.append(own.left_out[whole].words)
    return Suite(name, "; ".join(filter(None, left_out)) or "nothing", parts)


def listing() -> list[dict[str, Any]]:
    """All suites as plain data."""
    return [
        {
            "name": suite.name,
            "version": VERSION,
            "purpose": suite.purpose,
            "leaves_out": suite.leaves_out,
            "documents": catalog.total(part.documents for part in suite.parts.values()),
            "requests": catalog.total(part.requests for part in suite.parts.values()),
            "tasks": {
                task: {"documents": documents, "requests": requests, "rule": sampling.rule if sampling else None}
                for task, (sampling, documents, requests) in suite.parts.items()
            },
        }
        for suite in map(load, NAMES)
    ]


def apply(config: EvaluatorConfig, name: str, entries: Mapping[str, catalog.Entry]) -> Suite:
    """Name a suite's tasks in a configuration; returns the suite, a BiasError where flags or model don't fit it."""
    suite = load(name)
    given = {"--tasks": preflight.split_tasks(config.tasks), "--limit": config.limit, "--samples": config.samples}
    for flag, value in given.items():
        if value:
            raise BiasError(f"{flag} with --suite {name}: a suite already chooses the items: leave out one of the two")
    preflight.check_model(config)
    kinds = {task: (entries[task].benchmark, entries[task].asks) for task in suite.parts}
    firsts = {kind: task for task, kind in reversed(kinds.items())}
    reasons = {kind: str(preflight.misfit(config, [entries[task]]) or "") for kind, task in firsts.items()}
    left_out = {task: reasons[kind] for task, kind in kinds.items() if reasons[kind]}
    config.tasks = [task for task in suite.parts if task not in left_out]
    if not config.tasks:
        reason = next(iter(left_out.values()))
        chat = any(preflight.misfit(config, [entries[task]]) is None for task in load("quick-chat").parts)
        advice = ": run --suite quick-chat, which asks for written answers" if chat else ""
        raise BiasError(f"--suite {name}: --model {config.model} can answer none of its tasks ({reason}){advice}")
    if repeats := {part.sampling.repeats for part in suite.parts.values() if part.sampling} - {None}:
        config.metadata = {"repeats": max(filter(None, repeats)), **(config.metadata or {})}
    return replace(suite, left_out=left_out)


def describe(suite: Suite) -> str:
    """What a suite is, how many requests it makes of the released data, and which of its tasks are left out."""
    parts = [part for task, part in suite.parts.items() if task not in suite.left_out]
    items, requests = (catalog.total(column) for column in ([p.documents for p in parts], [p.requests for p in parts]))
    lines = [f"Suite {suite.name} (version {VERSION}): {suite.purpose}.", f"Not in it: {suite.leaves_out}."]
    if items and requests:
        lines.append(f"{items:,} items, {requests:,} requests.")
    for reason in dict.fromkeys(suite.left_out.values()):
        tasks = ", ".join(task for task, why in suite.left_out.items() if why == reason)
        lines.append(f"Left out, because they don't fit this model or these flags: {tasks} ({reason})")
    return "\n".join(lines)
