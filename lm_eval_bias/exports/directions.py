"""Scores as formats want them that know no neutral value: with a direction, where there is one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lm_eval_bias import registry
from lm_eval_bias.runs.run_data import Run, TaskRun, Value

NO_DIRECTION = "no direction: neither high nor low values are better, and no neutral value lies within its range"
_NO_VALUE = "no value: "
_SUFFIX = "_distance"


@dataclass(frozen=True)
class Directed:
    """A score of which less, or more, is better over its whole range.

    Where its neutral value lies in the middle, this is the distance from there. What was measured stays beside it.

    Attributes:
        task: The task.
        value: The score as it was measured.
        name: Of what goes out.
        number: The score, or its distance from the neutral value.
        interval: Its 95% interval, ``None`` where there is none.
        low: Smallest possible number.
        high: Largest possible number.
        lower_is_better: The direction.
        is_distance: Whether it is a distance.
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
class LeftOut:
    """A score that a format has no place for.

    Attributes:
        task: The task.
        value: The score.
        reason: Why it is left out.
    """

    task: TaskRun
    value: Value
    reason: str


def directed(task: TaskRun, value: Value) -> Directed | LeftOut:
    """A score with its direction, or why it can't have one."""
    if math.isnan(value.value):
        return LeftOut(task, value, f"{_NO_VALUE}{value.note or 'the file gives no reason'}")
    if value.higher_is_better is not None:
        better = not value.higher_is_better
        return Directed(task, value, value.name, value.value, value.interval, value.low, value.high, better)
    if value.neutral is None or not value.low < value.neutral < value.high:
        return LeftOut(task, value, NO_DIRECTION)
    neutral, largest = value.neutral, max(value.high - value.neutral, value.neutral - value.low)
    distance = abs(value.value - neutral)
    ends = None
    if value.interval is not None:
        off = [abs(end - neutral) for end in value.interval]
        ends = (0.0 if value.interval[0] <= neutral <= value.interval[1] else min(off), max(off))
    # some model families leave a score's range upwards
    return Directed(task, value, value.name + _SUFFIX, distance, ends, 0.0, max(largest, distance), True, True)


def is_main(task: TaskRun, score: str) -> bool:
    """Whether findings rest on a score; all do where the benchmark names none, or isn't known."""
    benchmark = registry.by_name().get(task.benchmark)
    return benchmark is None or not benchmark.main or score in benchmark.main


def values(run: Run, main_only: bool) -> list[tuple[TaskRun, Value]]:
    """A run's scores with their tasks."""
    return [
        (task, value)
        for task in run.tasks.values()
        for value in task.scores.values()
        if not main_only or is_main(task, value.name)
    ]


def split(run: Run, main_only: bool) -> tuple[list[Directed], list[LeftOut]]:
    """A run's scores that have a direction, and those that have none or no value."""
    parts = [directed(task, value) for task, value in values(run, main_only)]
    return [p for p in parts if isinstance(p, Directed)], [p for p in parts if isinstance(p, LeftOut)]


def with_value(run: Run, main_only: bool) -> tuple[list[tuple[TaskRun, Value]], list[LeftOut]]:
    """A run's scores that have a value, and those that have none."""
    every = values(run, main_only)
    return [pair for pair in every if not math.isnan(pair[1].value)], [
        LeftOut(task, value, f"{_NO_VALUE}{value.note or 'the file gives no reason'}")
        for task, value in every
        if math.isnan(value.value)
    ]


def names(left_out: Sequence[LeftOut]) -> dict[str, list[str]]:
    """Scores by the reason why they are left out, each with its task."""
    by_reason: dict[str, list[str]] = {}
    for one in left_out:
        by_reason.setdefault(one.reason, []).append(f"{one.task.task} {one.value.name}")
    return by_reason


def without_value(lacking: Sequence[LeftOut]) -> dict[str, list[str]]:
    """Scores without a value by the reason, each with its task."""
    return {reason.removeprefix(_NO_VALUE): named for reason, named in names(lacking).items()}


def summary(sent: Sequence[Directed]) -> str:
    """A line per score that goes out: its number, its interval, its direction, and what was measured."""
    lines = []
    for one in sent:
        ends = f" [{one.interval[0]:.6g}, {one.interval[1]:.6g}]" if one.interval is not None else ""
        measured = f" ({one.value.name} = {one.value.value:.6g})" if one.is_distance else ""
        better = "lower" if one.lower_is_better else "higher"
        lines.append(f"{one.task.task} {one.name} = {one.number:.6g}{ends}, {better} is better{measured}\n")
    return "".join(lines)
