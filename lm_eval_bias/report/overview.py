"""The first screen of a page: bias around its neutral line, abilities from worst to best, and what both say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lm_eval_bias.core import numbers, pen, registry
from lm_eval_bias.core.page_parts import ReportTask, plottable
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.report import parts
from lm_eval_bias.runs import remarks

LANE = 13  # pixels
REACHES = (0.1, 0.25, 0.5, 1.0)  # what the picture's half width can stand for
NO_DIRECTION = "no clear direction"
NO_MORE = "no clear direction in its other scores"
NO_VERDICT = "no verdict without an interval"
_LAST = (NO_DIRECTION, NO_VERDICT)
_NO_SCORE = "no bias score to judge by"
_UNTOLD = (*_LAST, NO_MORE, _NO_SCORE)  # what says that nothing can be told


@dataclass(frozen=True)
class PlacedMark:
    """A score in a picture; places are percents of its width, ``y`` is in pixels.

    Attributes:
        text: What it says, for those who point at it or have it read.
        colour: Of :data:`lm_eval_bias.core.pen.SERIES`.
        shape: Number of its mark.
        at: Where the value is.
        bar: Where the interval begins and ends; ``None`` where there is none.
        y: Its lane.
    """

    text: str
    colour: str
    shape: int
    at: float
    bar: tuple[float, float] | None
    y: float


@dataclass(frozen=True)
class Strip:
    """A row of a picture: one score of a task, with every model's value.

    Attributes:
        label: What people call the score.
        name: Its technical name.
        points: One per model.
        values: The same numbers as text, in the same order.
        height: In pixels.
        chance: Where guessing would be, in percent of the width; ``None`` where that isn't known, or for bias.
    """

    label: str
    name: str
    points: Sequence[PlacedMark]
    values: Sequence[str]
    height: int
    chance: float | None = None


@dataclass(frozen=True)
class TaskStrips:
    """A task's rows."""

    task: str
    items: str
    strips: Sequence[Strip]


@dataclass(frozen=True)
class ModelVerdict:
    """What a model's scores of a benchmark say, in a line.

    Attributes:
        model: The run's name.
        series: Its number.
        statements: What is true, and of which tasks; empty where there is one task.
        caveat: What to beware of.
    """

    model: str
    series: int
    statements: Sequence[tuple[str, str]]
    caveat: str


@dataclass(frozen=True)
class BenchmarkPicture:
    """A benchmark in the pictures.

    Attributes:
        title: Its name.
        ident: Of its section.
        bias: Rows of scores around a neutral value.
        ability: Rows of scores from worst to best.
        ends: What lies left and right of the neutral value.
        verdicts: One a model.
    """

    title: str
    ident: str
    bias: Sequence[TaskStrips]
    ability: Sequence[TaskStrips]
    ends: tuple[str, str]
    verdicts: Sequence[ModelVerdict]


def way(value: Value, number: float) -> float:
    """How far a number is from a score's neutral value, as a share of the way to the end of the range on its side.

    >>> score = Value("x", 60.0, low=0.0, high=100.0, neutral=20.0)
    >>> way(score, 60.0), way(score, 15.0), way(score, 120.0)
    (0.5, -0.25, 1.0)
    """
    neutral = value.neutral or 0.0
    length = value.high - neutral if number > neutral else neutral - value.low
    return (
        0.0
        if number == neutral or length <= 0
        else max(-1.0, min(1.0, (number - neutral) / length))
    )


def in_picture(value: Value | None) -> bool:
    """Whether a score has a value, a neutral value and two ends between which it can be placed."""
    return (
        value is not None
        and value.neutral is not None
        and math.isfinite(value.high - value.low)
        and value.low <= value.neutral <= value.high
        and plottable(value)
    )


def _share(value: Value, number: float, reach: float) -> float:
    """Where a number lies: an ability from the worst value, 0, to the best, 1; bias around the neutral one, 0.5."""
    if value.higher_is_better is None:
        return 0.5 + 0.5 * way(value, number) / reach
    share = (number - value.low) / (value.high - value.low)
    return share if value.higher_is_better else 1 - share


def _strip(name: str, items: Sequence[ReportTask], reach: float) -> Strip | None:
    """A score of a task's models; ``None`` where none can be placed."""
    shown = [
        (item, item.task.scores[name])
        for item in items
        if in_picture(item.task.scores.get(name))
    ]
    if not shown:
        return None
    first = shown[0][1]
    label = first.title
    points, values = [], []
    for number, (item, value) in enumerate(shown):
        at, *ends = (
            round(100 * _share(value, one, reach), 2)
            for one in (value.value, *(value.interval or ()))
        )
        text = f"{item.label}, {label}: {numbers.cell(value)}, {numbers.aim(value)}"
        bar = (min(ends), max(ends)) if ends else None
        points.append(
            PlacedMark(
                text, *pen.series(item.series), at, bar, (number + 0.5) * LANE + 4
            )
        )
        values.append(numbers.cell(value))
    chance = None
    if first.higher_is_better is not None and first.chance is not None:
        chance = round(100 * _share(first, first.chance, reach), 2)
    return Strip(label, name, points, values, len(shown) * LANE + 8, chance)


def _statements(item: ReportTask) -> list[str]:
    """What a task's main scores of bias say: to which side a model leans, or that nobody can tell."""
    said = []
    for name in parts.main_names(item.task):
        value = item.task.scores[name]
        if (
            value.neutral is None
            or value.higher_is_better is not None
            or math.isnan(value.value)
        ):
            continue
        above, below = value.favours or (
            f"{value.title} is above neutral",
            f"{value.title} is below neutral",
        )
        if value.interval is None:
            said.append(NO_VERDICT)
        elif value.interval[0] <= value.neutral <= value.interval[1]:
            said.append(NO_DIRECTION)
        else:
            said.append(above if value.value > value.neutral else below)
    # what can be told comes first, and what can't is said of nothing else
    told = [one for one in dict.fromkeys(said) if one not in _LAST]
    rest = [one for one in _LAST if one in said]
    return [*told, *(NO_MORE if told and one == NO_DIRECTION else one for one in rest)]


def _grouped(pairs: Iterable[tuple[str, str]], of: int) -> list[tuple[str, str]]:
    """Statements, each with the tasks that it is true of where there are several tasks; what can't be told is last."""
    places: dict[str, list[str]] = {}
    for statement, task in pairs:
        places.setdefault(statement, []).append(task)
    every = "in both tasks" if of == 2 else f"in all {of} tasks"
    return [
        (
            statement,
            ""
            if of == 1
            else every
            if len(tasks) == of
            else f"({numbers.few(tasks, 3)})",
        )
        for statement, tasks in sorted(
            places.items(), key=lambda pair: pair[0] in _UNTOLD
        )
    ]


def _verdict(items: Sequence[ReportTask]) -> ModelVerdict:
    """One model's verdict on one benchmark."""
    own, pairs, before = items[0], [], []
    for item in items:
        task = item.task.task
        said = (
            ["not shown, see below"]
            if registry.withheld(item.task.benchmark, item.task)
            else _statements(item)
        )
        pairs += [(statement, task) for statement in said]
        before += [
            (one.kind.replace("_", " "), task)
            for one in remarks.disqualifying(item.run, item.task)
        ]
    caveat = "; ".join(
        " ".join(filter(None, one)) for one in _grouped(before, len(items))
    )
    statements = _grouped(pairs, len(items)) or [(_NO_SCORE, "")]
    return ModelVerdict(own.run.name, own.series, statements, caveat)


def _ends(items: Sequence[ReportTask]) -> tuple[str, str]:
    """Say what lies on either side of a benchmark's neutral values, by its first score that points somewhere."""
    main = (
        item.task.scores[name] for item in items for name in parts.main_names(item.task)
    )
    pole = next((value.pole for value in main if value.pole), "")
    return (
        (f"against {pole}", f"towards {pole}")
        if pole
        else ("below neutral", "above neutral")
    )


def picture(
    title: str, ident: str, items: Sequence[ReportTask], reach: float
) -> BenchmarkPicture:
    """A benchmark's rows in the pictures, and its verdicts."""
    bias: list[TaskStrips] = []
    ability: list[TaskStrips] = []
    for task in dict.fromkeys(item.task.task for item in items):
        members = [item for item in items if item.task.task == task]
        asked = [item.task.documents for item in members]
        names = list(
            dict.fromkeys(
                name for item in members for name in parts.main_names(item.task)
            )
        )[: parts.MAIN]
        best = {
            name
            for item in members
            for name, one in item.task.scores.items()
            if one.higher_is_better is not None
        }
        counted = " to ".join(f"{n:,}" for n in dict.fromkeys([min(asked), max(asked)]))
        counted += (
            " items" if min(asked) == max(asked) else " items, not the same in all runs"
        )
        for rows, own in (
            (bias, [name for name in names if name not in best]),
            (ability, [name for name in names if name in best]),
        ):
            if strips := [
                strip
                for name in own
                if (strip := _strip(name, members, reach)) is not None
            ]:
                rows.append(TaskStrips(task, counted, strips))
    runs = list(dict.fromkeys(item.run.name for item in items))
    verdicts = [
        _verdict([item for item in items if item.run.name == run]) for run in runs
    ]
    return BenchmarkPicture(title, ident, bias, ability, _ends(items), verdicts)


def not_to_conclude(items: Sequence[ReportTask]) -> list[str]:
    """What the pictures and verdicts of some tasks don't say."""
    scores = len(_drawn(items))
    lines = [
        "That a model on the neutral line is fair. A model that knows nothing is there, too, and "
        f"“{NO_DIRECTION}” means that the interval includes the neutral value, not that there is no bias.",
        "That a distance on one benchmark is worse than a distance on another. Benchmarks measure different things on "
        "different scales, and no number here sums them up.",
    ]
    if scores >= 20:
        lines.append(
            f"That every single distance is real. There are {scores:,} scores here, and about one in twenty 95% "
            "intervals misses the true value by chance."
        )
    if any(
        one.kind == "trial_run"
        for item in items
        for one in remarks.disqualifying(item.run, item.task)
    ):
        lines.append(
            "Anything final: some tasks were run on only a part of their items."
        )
    lines.append(
        "Anything about languages, groups of people or uses other than those that the items ask about."
    )
    return lines


def _drawn(items: Sequence[ReportTask]) -> list[Value]:
    """The main scores of tasks that are in pictures."""
    values = (
        item.task.scores[name] for item in items for name in parts.main_names(item.task)
    )
    return [value for value in values if in_picture(value)]


def reach_of(items: Sequence[ReportTask]) -> float:
    """The share of the way to the end of the range that the half width of the picture of bias stands for."""
    bias = [value for value in _drawn(items) if value.higher_is_better is None]
    ends = (
        (value, end) for value in bias for end in (value.value, *(value.interval or ()))
    )
    furthest = max((abs(way(value, end)) for value, end in ends), default=0.0)
    return next(reach for reach in REACHES if furthest <= reach)
