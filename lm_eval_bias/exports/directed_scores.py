"""Scores for formats that have no notion of a neutral value: each gets a direction if it has one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.data.sources import hashes

NO_DIRECTION = "no direction: neither high nor low values are better, and no neutral value lies within its range"
PIN = re.compile(r"[\w.-]+/[\w.-]+@([0-9a-f]{40})/.")  # of a file, owner/name@commit/path


@dataclass(frozen=True)
class Directed:
    """A score of which less, or more, is better over its whole range: itself, or its distance from a neutral value.

    ``value`` is the score as it was measured; all that follows, with the 95% interval, is of the number that goes out.
    """

    task: TaskRun
    value: Value
    name: str
    number: float
    interval: tuple[float, float] | None
    low: float
    high: float
    lower_is_better: bool
    is_distance: bool = False


@dataclass(frozen=True)
class Omitted:
    """A score that a format has no place for, and why."""

    task: TaskRun
    value: Value
    reason: str


class Export(NamedTuple):
    """What an export writes.

    Attributes:
        files: Texts by their path below the output; the one under the empty path is the output itself.
        scores: How many scores go out.
        left_out: Those that don't, and why.
        remarks: What else to know, a sentence each.
    """

    files: Mapping[str, str]
    scores: int
    left_out: Sequence[Omitted] = ()
    remarks: Sequence[str] = ()


class MeasureSettings(NamedTuple):
    """What the user says beyond the run: the command's options, empty where not given."""

    scores: str
    name: str = ""
    no_items: bool = False
    organization: str = "unknown"
    relationship: str = "other"
    dataset: str = ""
    allow_trial: bool = False


def directed(task: TaskRun, value: Value) -> Directed | Omitted:
    """Give a score its direction, or say why it can't have one."""
    if math.isnan(value.value):
        return Omitted(task, value, f"no value: {value.note or 'the file gives no reason'}")
    if value.higher_is_better is not None:
        lower = not value.higher_is_better
        return Directed(task, value, value.name, value.value, value.interval, value.low, value.high, lower)
    if value.neutral is None or not value.low < value.neutral < value.high:
        return Omitted(task, value, NO_DIRECTION)
    neutral, distance = value.neutral, abs(value.value - value.neutral)
    ends = None
    if value.interval is not None:
        off = [abs(end - neutral) for end in value.interval]
        ends = (0.0 if value.interval[0] <= neutral <= value.interval[1] else min(off), max(off))
    largest = max(value.high - neutral, neutral - value.low, distance)  # some models leave a score's range upwards
    return Directed(task, value, f"{value.name}_distance", distance, ends, 0.0, largest, True, True)


def is_main(task: TaskRun, score: str) -> bool:
    """Tell whether findings rest on a score; all do where the benchmark names none, or isn't known."""
    benchmark = registry.by_name().get(task.benchmark)
    return benchmark is None or not benchmark.main or score in benchmark.main


def values(run: Run, scores: str) -> list[tuple[TaskRun, Value]]:
    """List a run's scores with their tasks, ``all`` or the ``main`` ones."""
    every = [(task, value) for task in run.tasks.values() for value in task.scores.values()]
    return [(task, value) for task, value in every if scores == "all" or is_main(task, value.name)]


def split(run: Run, scores: str) -> tuple[list[Directed], list[Omitted]]:
    """Divide a run's scores into those that have a direction, and those that have none or no value."""
    parts = [directed(task, value) for task, value in values(run, scores)]
    return [p for p in parts if isinstance(p, Directed)], [p for p in parts if isinstance(p, Omitted)]


def by_reason(left_out: Sequence[Omitted]) -> dict[str, list[str]]:
    """Group scores by the reason why they are left out, each with its task."""
    reasons: dict[str, list[str]] = {}
    for one in left_out:
        reasons.setdefault(one.reason, []).append(f"{one.task.task} {one.value.name}")
    return reasons


def plain(facts: dict[str, Any]) -> dict[str, Any]:
    """Leave out what isn't known."""
    return {key: value for key, value in facts.items() if value not in (None, "", [], {})}


def data_files(task: TaskRun) -> dict[str, str]:
    """Give the SHA-256 of each file of data that a task read; none where its data are the package's or the user's."""
    if "files" in task.inputs:
        return dict(task.inputs["files"])
    entry = catalog.entries().get(task.base)
    return hashes(entry.data) if entry is not None and "dataset_used" not in task.metadata else {}


def title(task: TaskRun) -> str:
    """Give the name of a task's benchmark for people."""
    benchmark = registry.family(task.benchmark)
    return (benchmark.title or benchmark.name) if benchmark is not None else task.benchmark


def stderr_method(task: TaskRun) -> str:
    """Say what the standard errors of a task's scores rest on, as its card does; empty where that isn't known."""
    benchmark = registry.by_name().get(task.benchmark)
    return benchmark.card.uncertainty if benchmark is not None and benchmark.card is not None else ""
