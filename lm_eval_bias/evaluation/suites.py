"""The suites of suites.yaml: tasks and parts of their items, those that fit a run, and their size."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

from lm_eval_bias.core import Data, catalog, registry
from lm_eval_bias.core.benchmark import (
    DATA,
    REQUIRED,
    Documents,
    Size,
    options_for,
)
from lm_eval_bias.core.errors import BiasError, call_plugin, did_you_mean
from lm_eval_bias.core.files import packaged_yaml
from lm_eval_bias.evaluation import preflight
from lm_eval_bias.evaluation.planned import Planned, split_tasks

OWN = {name: part for name, part in catalog.suites().items() if name != "primary"}
NAMES = tuple(OWN)
PURPOSES = {name: fields["purpose"] for name, fields in OWN.items()}
# a change of the items is a new version: its scores are of others
VERSION = 7


class Sampling(NamedTuple):
    """A part of a task's documents.

    Attributes:
        rule: Which part it is, in words, for result files and ``ls --suites``.
        items: The places of its documents, from 0 and ascending: ``0-3,7``.
        of: Number of all documents of the task. The places say nothing of other data.
        repeats: Number of texts drawn for each prompt; ``None`` for as many as the task's YAML says.
    """

    rule: str
    items: str
    of: int
    repeats: int | None = None

    def places(self) -> list[int]:
        """Return the indices of its documents.

        Raises:
            BiasError: They aren't written as such, or aren't of as many documents.
        """
        places: list[int] = []
        try:
            for part in str(self.items).split(","):
                first, _, last = part.partition("-")
                places += range(int(first), int(last or first) + 1)
        except ValueError:
            places = []
        if not places or sorted({*places}) != places or places[-1] >= self.of:
            raise BiasError(
                f"items must be ascending places below {self.of}, such as 0-3,7"
            )
        return places


class SuitePart(NamedTuple):
    """One task of a suite: how its items are chosen (``None`` for all), and the numbers of items and requests."""

    sampling: Sampling | None
    documents: int | None
    requests: int | None


@dataclass(frozen=True)
class Suite:
    """A named set of tasks; ``left_out`` has those that a run's model can't answer, with the reasons.

    ``languages`` are those that were chosen; empty for all.
    """

    name: str
    leaves_out: str
    parts: Mapping[str, SuitePart]
    left_out: Mapping[str, str] = field(default_factory=dict)
    languages: Sequence[str] = ()

    def choose(self, task: str, docs: Documents) -> list[int] | None:
        """Return the indices of a task's items in the suite, ascending; ``None`` for all.

        Raises:
            BiasError: The documents are others than those of which the suite lists places.
        """
        sampling = self.parts[task].sampling
        if sampling is None:
            return None
        if len(docs) != sampling.of:
            raise BiasError(
                f"--suite {self.name}: {task}: its items are places of {sampling.of} documents, but there are "
                f"{len(docs)}"
            )
        return sampling.places()

    def label(self, task: str) -> Data:
        """Describe the suite for a result file: its name, the part of the items, tasks left out."""
        facts = {
            "name": self.name,
            "version": VERSION,
            "tasks_left_out": sorted(self.left_out),
        }
        sampling = self.parts[task].sampling
        if sampling is not None:
            facts |= {"documents": len(sampling.places()), "rule": sampling.rule}
            if sampling.repeats:
                facts["repeats"] = sampling.repeats
        return facts


@cache
def load(name: str) -> Suite:
    """Load the suite of that name.

    Raises:
        BiasError: There is no such suite.
    """
    if name not in NAMES:
        raise BiasError(
            f"--suite {name}: unknown.{did_you_mean(name, NAMES)} Known: {', '.join(NAMES)}"
        )
    suite = OWN[name]
    listed = OWN["standard" if name == "full" else name].get("tasks") or {}
    items = packaged_yaml("lm_eval_bias", "suite_items.yaml").get(name, {})
    parts = {}
    for task, fields in listed.items():
        sampling = fields and Sampling(**{**items.get(task, {}), **fields})
        parts[task] = _part(task, sampling)
    if name == "full":
        for task in _all_tasks():
            left_out = any(fnmatch.fnmatchcase(task, each) for each in suite["without"])
            if task not in parts and not left_out:
                parts[task] = _part(task, None)
    return Suite(name, "; ".join(suite.get("leaves_out", ())) or "nothing", parts)


def _all_tasks() -> Iterator[str]:
    """Yield all tasks of this package's benchmarks that need no file of the user's."""
    for entry in catalog.entries().values():
        is_own = registry.is_own(entry.definition.family)
        needs_file = options_for(entry.definition, REQUIRED)
        if is_own and entry.kind == "task" and not needs_file:
            yield entry.name


def _part(task: str, sampling: Sampling | None) -> SuitePart:
    entry = catalog.entries()[task]
    benchmark = entry.definition
    facts = {"asks": entry.asks, **entry.metadata}
    size = call_plugin(Size(None), benchmark, benchmark.size, facts)
    documents = entry.items if sampling is None else len(sampling.places())
    repeats = (sampling.repeats if sampling else None) or entry.repeats or 1
    requests = documents and size.requests and documents * size.requests * repeats
    return SuitePart(sampling, documents, requests)


def listing() -> list[Data]:
    """Return all suites as plain data."""
    suites = []
    for name, purpose in PURPOSES.items():
        suite = load(name)
        parts = suite.parts.values()
        tasks = {}
        for task, (sampling, documents, requests) in suite.parts.items():
            tasks[task] = {
                "documents": documents,
                "requests": requests,
                "rule": sampling.rule if sampling else None,
            }
        suites.append(
            {
                "name": name,
                "version": VERSION,
                "purpose": purpose,
                "leaves_out": suite.leaves_out,
                "documents": catalog.total(part.documents for part in parts),
                "requests": catalog.total(part.requests for part in parts),
                "tasks": tasks,
            }
        )
    return suites


def _in_languages(suite: Suite, given: str) -> Suite:
    """Return the tasks of a suite in languages whose codes are joined by commas.

    Raises:
        BiasError: The suite has no task in one of them.
    """
    languages = [code.strip() for code in given.split(",")]
    known = {task: catalog.entries()[task].language for task in suite.parts}
    for code in languages:
        if code not in known.values():
            codes = ", ".join(sorted(set(known.values())))
            raise BiasError(
                f"--language {given}: the suite {suite.name} has no task in {code!r}, only in {codes}"
            )
    parts = {
        task: part for task, part in suite.parts.items() if known[task] in languages
    }
    return replace(suite, parts=parts, languages=languages)


def chosen(run: Planned, name: str, language: str | None = None) -> Suite:
    """Return a suite; refuse flags that contradict it.

    Args:
        run: Its flags.
        name: The suite's.
        language: Codes of the languages whose tasks are wanted, joined by commas; ``None`` for all.

    Raises:
        BiasError: There is no such suite, or a flag chooses items as well.
    """
    suite = load(name) if language is None else _in_languages(load(name), language)
    given = {
        "--tasks": split_tasks(run.config.tasks),
        "--limit": run.config.limit,
        "--samples": run.config.samples,
    }
    for flag, value in given.items():
        if value:
            raise BiasError(
                f"{flag} with --suite {name}: a suite already chooses the items: leave out one of the two"
            )
    return suite


def fitted(suite: Suite, run: Planned) -> Suite:
    """Set ``--tasks`` to the suite's tasks that the model can answer; return the suite without the others.

    Raises:
        BiasError: The model can answer none.
    """
    reasons = {}
    left_out = {}
    for task in suite.parts:
        # once for all tasks that ask the same: a checkpoint's configuration is read, perhaps from the network
        asks = run.entries[task].asks
        if asks not in reasons:
            reasons[asks] = preflight.misfit(run, asks)
        if reasons[asks]:
            left_out[task] = str(reasons[asks])
    run.config.tasks = [task for task in suite.parts if task not in left_out]
    if not run.config.tasks:
        reason = next(iter(left_out.values()))
        advice = ""
        written = [run.entries[task].asks for task in load("quick-chat").parts]
        if any(preflight.misfit(run, asks) is None for asks in written):
            advice = ": run --suite quick-chat, which asks for written answers"
        raise BiasError(
            f"--suite {suite.name}: --model {run.config.model} can answer none of its tasks ({reason}){advice}"
        )
    samplings = [part.sampling for part in suite.parts.values() if part.sampling]
    repeats = [sampling.repeats for sampling in samplings if sampling.repeats]
    if repeats:
        run.config.metadata = {"repeats": max(repeats), **run.config.metadata}
    return replace(suite, left_out=left_out)


def choose_items(suite: Suite, run: Planned) -> None:
    """Select the suite's items of built tasks, and record the selection in the tasks' metadata.

    Raises:
        BiasError: A task has other data than those that the suite lists items of.
    """
    samples = {}
    for name, task in run.tasks.items():
        indices = suite.choose(name, task.eval_docs)
        own = [
            key
            for key in options_for(task.benchmark, DATA)
            if task.config.metadata.get(key)
        ]
        if own and indices is not None:
            raise BiasError(
                f"--metadata {own[0]}= with --suite {suite.name}: its items of {name} are those of the released data: "
                "name tasks by --tasks"
            )
        task.config.metadata["suite"] = suite.label(name)
        if indices is not None:
            samples[name] = indices
    run.config.samples = samples or None


def describe(suite: Suite) -> str:
    """Describe a suite: its purpose, the number of requests for the released data, tasks that are left out."""
    parts = [part for task, part in suite.parts.items() if task not in suite.left_out]
    items = catalog.total(part.documents for part in parts)
    requests = catalog.total(part.requests for part in parts)
    purpose = PURPOSES[suite.name]
    lines = [
        f"Suite {suite.name} (version {VERSION}): {purpose}.",
        f"Not in it: {suite.leaves_out}.",
    ]
    if suite.languages:
        lines.append(f"Only the tasks in: {', '.join(suite.languages)}.")
    if items and requests:
        lines.append(f"{items:,} items, {requests:,} requests.")
    for reason in dict.fromkeys(suite.left_out.values()):
        tasks = ", ".join(task for task, why in suite.left_out.items() if why == reason)
        lines.append(
            f"Left out, because they don't fit this model or these flags: {tasks} ({reason})"
        )
    return "\n".join(lines)
