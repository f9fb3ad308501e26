"""The suites: which tasks, and which of their items, as suites.yaml says it; what of it fits a run, and its size."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import (
    REQUIRED,
    Benchmark,
    Size,
    folder_of,
    options_for,
)
from lm_eval_bias.core.errors import BiasError, ask, did_you_mean, fault
from lm_eval_bias.core.files import packaged_text
from lm_eval_bias.evaluation import preflight

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

FILE = "_suites_yaml"  # of another package, beside its tasks: the harness takes every *.yaml there for a task
OWN: dict[str, Any] = yaml.safe_load(packaged_text("lm_eval_bias", "suites.yaml"))
NAMES = tuple(OWN)
PURPOSES: dict[str, str] = {
    name: str(fields["purpose"]) for name, fields in OWN.items()
}  # in one line
Documents = Sequence[Mapping[str, Any]]
# a change of seed, rule or number is a new version: its scores are of other items
VERSION = 4
SEED = "quick-1"


class Sampling(NamedTuple):
    """A part of a task's documents.

    Attributes:
        rule: What the choice is called in result files and in ``ls --suites``.
        choose: Name of a function, ``package.module.name``, that gives the indices of the chosen documents, given all
            of them, the suites' seed, ``number`` and ``arguments``.
        number: The size that it takes.
        items: How many documents that is, of the released data.
        repeats: How many texts of each prompt are drawn; ``None``: as many as the task's YAML says.
        arguments: What else it takes.
    """

    rule: str
    choose: str
    number: int
    items: int | None = None
    repeats: int | None = None
    arguments: Mapping[str, Any] = {}

    def indices(self, docs: Documents) -> list[int]:
        """Return the places of the chosen documents."""
        function = pkgutil.resolve_name(self.choose)
        return list(function(docs, SEED, self.number, **self.arguments))


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

    def choose(self, task: str, docs: Documents) -> list[int] | None:
        """The indices of a task's items that belong to the suite, in order; ``None`` for all."""
        sampling = self.parts[task].sampling
        if sampling is None:
            return None
        indices = sampling.indices(docs)
        if not indices:
            raise BiasError(
                f"--suite {self.name}: {task} has no items to choose from: its data set is empty"
            )
        return indices

    def label(self, task: str, docs: Documents) -> dict[str, Any]:
        """What a result file says about the suite: which one, which part of the items, what was left out."""
        facts: dict[str, Any] = {
            "name": self.name,
            "version": VERSION,
            "tasks_left_out": sorted(self.left_out),
        }
        indices, sampling = self.choose(task, docs), self.parts[task].sampling
        if indices is not None and sampling is not None:
            facts |= {
                "documents": len(indices),
                "of": len(docs),
                "rule": sampling.rule,
                "seed": SEED,
            }
            facts["items_sha256"] = fingerprint([docs[i] for i in indices])
        return facts


def fingerprint(docs: Documents) -> str:
    """A hash of what documents are named by, in which two runs of the same items agree, also in two languages."""
    names = sorted(registry.get(str(doc["benchmark"])).key(doc) for doc in docs)
    return hashlib.sha256(json.dumps(names, ensure_ascii=False).encode()).hexdigest()[
        :16
    ]


@cache
def load(name: str) -> Suite:
    """The suite of that name, with ``+NAME`` for every benchmark of another package that belongs to it.

    Raises:
        BiasError: There is no such suite or benchmark.
    """
    base, *more = name.split("+")
    others = [one.name for one in registry.benchmarks() if not registry.is_own(one)]
    for given, known in ((base, NAMES), *((one, others) for one in more)):
        if given not in known:
            raise BiasError(
                f"--suite {name}: {given!r} is unknown.{did_you_mean(given, known)} Known: {', '.join(known)}"
            )
    files = [OWN, *(definitions(registry.by_name()[one]) for one in more)]
    wanted = [file.get(base) or {} for file in files]
    chosen: dict[str, Sampling | None] = {}
    for file in files:
        part = file.get("standard" if base == "full" else base) or {}
        for task, fields in part.get("tasks", {}).items():
            if task in catalog.entries():
                chosen[task] = fields and Sampling(**fields)
            else:
                fault(
                    f"{FILE}: {base} names {task}, which is not a task: it is left out"
                )
    if base == "full":
        without = [pattern for part in wanted for pattern in part.get("without", ())]
        families = [
            one
            for one in registry.benchmarks()
            if registry.is_own(one) or one.name in more
        ]
        for entry in catalog.entries().values():
            needs_a_file = options_for(registry.get(entry.benchmark), REQUIRED)
            is_in = (
                registry.family(entry.benchmark) in families
                and entry.kind == "task"
                and not needs_a_file
            )
            if is_in and not any(
                fnmatch.fnmatchcase(entry.name, pattern) for pattern in without
            ):
                chosen.setdefault(entry.name)
    parts = {}
    for task, sampling in chosen.items():
        entry = catalog.entries()[task]
        documents = entry.items if sampling is None else sampling.items
        own = registry.get(entry.benchmark)
        size: Size = ask(
            Size(None), own, own.size, {"asks": entry.asks, **entry.metadata}
        )
        repeats = (sampling.repeats if sampling else None) or entry.repeats or 1
        requests = documents and size.requests and documents * size.requests * repeats
        parts[task] = SuitePart(sampling, documents, requests)
    leaves_out = [text for part in wanted for text in part.get("leaves_out", ())]
    return Suite(name, "; ".join(leaves_out) or "nothing", parts)


def definitions(benchmark: Benchmark) -> dict[str, Any]:
    """Read what a benchmark of another package adds to the suites; empty where it has no such file."""
    path = folder_of(benchmark) / FILE
    return (
        yaml.safe_load(path.read_text(encoding="utf-8")) or {} if path.exists() else {}
    )


def listing() -> list[dict[str, Any]]:
    """All suites as plain data."""
    return [
        {
            "name": suite.name,
            "version": VERSION,
            "purpose": PURPOSES[suite.name],
            "leaves_out": suite.leaves_out,
            "documents": catalog.total(part.documents for part in suite.parts.values()),
            "requests": catalog.total(part.requests for part in suite.parts.values()),
            "tasks": {
                task: {
                    "documents": documents,
                    "requests": requests,
                    "rule": sampling.rule if sampling else None,
                }
                for task, (sampling, documents, requests) in suite.parts.items()
            },
        }
        for suite in map(load, NAMES)
    ]


def apply(
    config: EvaluatorConfig, name: str, entries: Mapping[str, catalog.Entry]
) -> Suite:
    """Name a suite's tasks in a configuration; returns the suite, a BiasError where flags or model don't fit it."""
    suite = load(name)
    given = {
        "--tasks": preflight.split_tasks(config.tasks),
        "--limit": config.limit,
        "--samples": config.samples,
    }
    for flag, value in given.items():
        if value:
            raise BiasError(
                f"{flag} with --suite {name}: a suite already chooses the items: leave out one of the two"
            )
    preflight.check_model(config)
    # once for all tasks that ask the same: a checkpoint's configuration is read, perhaps from the network
    kinds = {
        task: (entries[task].benchmark, entries[task].asks) for task in suite.parts
    }
    firsts = {kind: task for task, kind in reversed(kinds.items())}
    reasons = {
        kind: preflight.misfit(config, [entries[task]]) for kind, task in firsts.items()
    }
    left_out = {
        task: str(reasons[kind]) for task, kind in kinds.items() if reasons[kind]
    }
    config.tasks = [task for task in suite.parts if task not in left_out]
    if not config.tasks:
        reason = next(iter(left_out.values()))
        chat = any(
            preflight.misfit(config, [entries[task]]) is None
            for task in load("quick-chat").parts
        )
        advice = (
            ": run --suite quick-chat, which asks for written answers" if chat else ""
        )
        raise BiasError(
            f"--suite {name}: --model {config.model} can answer none of its tasks ({reason}){advice}"
        )
    if repeats := {
        part.sampling.repeats for part in suite.parts.values() if part.sampling
    } - {None}:
        config.metadata = {
            "repeats": max(filter(None, repeats)),
            **(config.metadata or {}),
        }
    return replace(suite, left_out=left_out)


def describe(suite: Suite) -> str:
    """What a suite is, how many requests it makes of the released data, and which of its tasks are left out."""
    parts = [part for task, part in suite.parts.items() if task not in suite.left_out]
    items = catalog.total(part.documents for part in parts)
    requests = catalog.total(part.requests for part in parts)
    purpose = PURPOSES[suite.name.partition("+")[0]]
    lines = [
        f"Suite {suite.name} (version {VERSION}): {purpose}.",
        f"Not in it: {suite.leaves_out}.",
    ]
    if items and requests:
        lines.append(f"{items:,} items, {requests:,} requests.")
    for reason in dict.fromkeys(suite.left_out.values()):
        tasks = ", ".join(task for task, why in suite.left_out.items() if why == reason)
        lines.append(
            f"Left out, because they don't fit this model or these flags: {tasks} ({reason})"
        )
    return "\n".join(lines)
