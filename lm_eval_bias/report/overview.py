"""The first screen of a page: bias around its neutral line, abilities from worst to best, and what both say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lm_eval_bias.core import catalog, numbers, pen
from lm_eval_bias.core.page_parts import (
    BEWARE,
    ReportTask,
    ReportTasks,
    plottable,
)
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.verdicts import NO_DIRECTION, NO_INTERVAL, NO_VERDICT
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.report import badges, parts
from lm_eval_bias.report.listings import diagnostic_label
from lm_eval_bias.runs import diagnostics

LANE = 13  # pixels
WORDS = 20  # of a sentence that is read at a glance
_SAYS = {
    badges.UNCLEAR: "no clear direction",
    badges.NO_VERDICT: "no verdict",
    badges.NO_VALUE: "no value",
    badges.WITHHELD: "not shown",
    "": "",
}
LIMITS = (
    0.1,
    0.25,
    0.5,
    1.0,
)  # shares of the range that the picture's half width can stand for
NO_MORE = "no clear direction in its other scores"
_LAST = (NO_DIRECTION, NO_INTERVAL, NO_VERDICT)
_NO_SCORE = "no bias score to judge by"
_UNTOLD = (*_LAST, NO_MORE, _NO_SCORE)  # what says that nothing can be told


@dataclass(frozen=True)
class PlacedMark:
    """A score in a picture; places are percents of its width, ``y`` is in pixels.

    Attributes:
        text: What it says, for those who point at it or have it read.
        value: The number as text.
        colour: Of :data:`lm_eval_bias.core.pen.SERIES`.
        shape: Number of its mark.
        at: Where the value is.
        bar: Where the interval begins and ends; ``None`` where there is none.
        y: Its lane.
    """

    text: str
    value: str
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
        height: In pixels.
        is_ability: Whether it goes from worst to best, not around a neutral value.
        line: Where the neutral value or guessing would be, in percent of the width; ``None`` where that isn't known.
    """

    label: str
    name: str
    points: Sequence[PlacedMark]
    height: int
    is_ability: bool
    line: float | None


@dataclass(frozen=True)
class TaskStrips:
    """A task's rows."""

    task: str
    items: str
    strips: Sequence[Strip]


@dataclass(frozen=True)
class ModelSummary:
    """A line on what a model's scores of a benchmark say.

    Attributes:
        model: The run's name.
        series: Its number.
        statements: What is true, and of which tasks; empty where there is one task.
        warning: What to beware of.
    """

    model: str
    series: int
    statements: Sequence[tuple[str, str]]
    warning: str


@dataclass(frozen=True)
class LeadLine:
    """What a model's primary scores of a benchmark say, at a glance.

    Attributes:
        model: The run's name.
        series: Its number.
        badge: A word or two.
        sentence: At most :data:`WORDS` words.
    """

    model: str
    series: int
    badge: str
    sentence: str


@dataclass(frozen=True)
class Lead:
    """A benchmark at a glance: its tasks' primary scores on one line for each model.

    Attributes:
        label: The score.
        height: In pixels.
        points: A mark for each task and model.
        line: Where the neutral value is, in percent of the width; ``None`` where that isn't known.
        said: One a model.
    """

    label: str
    height: int
    points: Sequence[PlacedMark]
    line: float | None
    said: Sequence[LeadLine]


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
        lead: Its primary scores at a glance.
    """

    title: str
    ident: str
    lead: Lead
    bias: Sequence[TaskStrips]
    ability: Sequence[TaskStrips]
    ends: tuple[str, str]
    verdicts: Sequence[ModelSummary]


def position(value: Value, number: float) -> float:
    """Scale a value to -1..1, with 0 at neutral and ±1 at the ends of the range.

    >>> score = Value("x", 60.0, low=0.0, high=100.0, neutral=20.0)
    >>> position(score, 60.0), position(score, 15.0), position(score, 120.0)
    (0.5, -0.25, 1.0)
    """
    neutral = value.neutral or 0.0
    length = value.high - neutral if number > neutral else neutral - value.low
    if number == neutral or length <= 0:
        return 0.0
    return max(-1.0, min(1.0, (number - neutral) / length))


def in_picture(value: Value | None) -> bool:
    """Say whether a score has a value, a neutral value and two ends between which it can be placed."""
    return (
        value is not None
        and value.neutral is not None
        and math.isfinite(value.high - value.low)
        and value.low <= value.neutral <= value.high
        and plottable(value)
    )


def percent(value: Value, number: float, limit: float) -> float:
    """Place a number on the width of a picture, in percent.

    An ability goes from the worst value at 0 to the best at 100; bias has its neutral value at 50.
    """
    if value.higher_is_better is None:
        share = 0.5 + 0.5 * position(value, number) / limit
    else:
        share = (number - value.low) / (value.high - value.low)
        share = share if value.higher_is_better else 1 - share
    return round(100 * share, 2)


def _mark(
    value: Value, text: str, shown: str, series: int, limit: float, lane: int
) -> PlacedMark:
    """Place a value with its interval in a lane, in its run's colour and shape."""
    ends = [percent(value, end, limit) for end in value.interval or ()]
    return PlacedMark(
        text,
        shown,
        *pen.series(series),
        percent(value, value.value, limit),
        (min(ends), max(ends)) if ends else None,
        (lane + 0.5) * LANE + 4,
    )


def _strip(name: str, items: ReportTasks, limit: float) -> Strip | None:
    """Draw one score of all models that ran a task; ``None`` where none can be placed."""
    shown = [item for item in items if in_picture(item.task.scores.get(name))]
    if not shown:
        return None
    first = shown[0].task.scores[name]
    points = []
    for number, item in enumerate(shown):
        value = item.task.scores[name]
        text = (
            f"{item.label}, {first.title}: {numbers.cell(value)}, n {numbers.count(value.n)}, "
            f"{numbers.target_text(value)}"
        )
        warning = item.task.warning(name) or value.verdict.reason
        shown_value = numbers.cell(value) + BEWARE * bool(warning)
        mark = _mark(
            value, joined(text, warning), shown_value, item.series, limit, number
        )
        points.append(mark)
    is_ability = first.higher_is_better is not None
    line: float | None = 50
    if is_ability:  # a verdict goes by the floor
        guess = first.chance if first.floor is None else first.floor
        line = None if guess is None else percent(first, guess, limit)
    height = len(shown) * LANE + 8
    return Strip(first.title, name, points, height, is_ability, line)


def _statements(item: ReportTask) -> list[str]:
    """Say to which side each main score of bias leans, or that nobody can tell."""
    said = []
    for value in item.task.with_verdicts():
        if value.neutral is None or value.higher_is_better is not None:
            continue
        if math.isnan(value.value):
            continue
        said.append(value.verdict.claim)
    # what can be told comes first, and what can't is said of nothing else
    told = [statement for statement in dict.fromkeys(said) if statement not in _LAST]
    if NO_DIRECTION in said:
        told.append(NO_MORE if told else NO_DIRECTION)
    told += [statement for statement in (NO_INTERVAL, NO_VERDICT) if statement in said]
    return told


def _grouped(pairs: Iterable[tuple[str, str]], of: int) -> list[tuple[str, str]]:
    """Pair each statement with the tasks that it is true of, if there are several; what can't be told comes last."""
    places = numbers.grouped(pairs)
    said = []
    for statement in sorted(places, key=lambda statement: statement in _UNTOLD):
        tasks = places[statement]
        where = f"({numbers.join_some(tasks, 3)})"
        if len(tasks) == of:
            where = "in both tasks" if of == 2 else f"in all {of} tasks"
        said.append((statement, "" if of == 1 else where))
    return said


def _verdict(items: ReportTasks) -> ModelSummary:
    """Sum up one model's verdict on one benchmark."""
    statements = []
    warnings = []
    for item in items:
        task = item.task.task
        said = ["not shown, see below"] if item.task.withheld else _statements(item)
        statements += [(statement, task) for statement in said]
        warnings += [(diagnostic_label(one), task) for one in item.task.diagnostics]
    warning = "; ".join(
        f"{kind} {where}".strip() for kind, where in _grouped(warnings, len(items))
    )
    return ModelSummary(
        items[0].run.name,
        items[0].series,
        _grouped(statements, len(items)) or [(_NO_SCORE, "")],
        warning,
    )


def _shown(items: Iterable[ReportTask]) -> list[Value]:
    """List the main scores of some tasks, and those that tell whether a model understands the items."""
    shown: list[Value] = []
    for item in items:
        main = {value.name: value for value in item.task.shown()}
        scores = item.task.scores
        telling = {name: v for name, v in scores.items() if v.floor is not None}
        shown += (main | telling).values()
    return shown


def picture(
    title: str, ident: str, items: ReportTasks, limit: float
) -> BenchmarkPicture:
    """Draw a benchmark's rows in the pictures, and give its verdicts."""
    bias: list[TaskStrips] = []
    ability: list[TaskStrips] = []
    by_task = numbers.grouped((item.task.task, item) for item in items)
    by_run = numbers.grouped((item.run.name, item) for item in items)
    for task, members in by_task.items():
        documents = [item.task.documents for item in members]
        fewest = min(documents)
        most = max(documents)
        asked = f"{most:,} items"
        if fewest < most:
            asked = f"{fewest:,} to {most:,} items, not the same in all runs"
        names = dict.fromkeys(value.name for value in _shown(members))
        drawn = [_strip(name, members, limit) for name in list(names)[: parts.MAIN]]
        kinds = numbers.grouped((strip.is_ability, strip) for strip in drawn if strip)
        for is_ability, strips in kinds.items():
            rows = ability if is_ability else bias
            rows.append(TaskStrips(task, asked, strips))
    # what lies on either side is said where all scores point the same way
    ends = "below neutral", "above neutral"
    of_bias_alone = (v for v in _shown(items) if v.favours)
    poles = list(dict.fromkeys(value.pole for value in of_bias_alone))
    if len(poles) == 1 and poles[0]:
        ends = f"against {poles[0]}", f"towards {poles[0]}"
    verdicts = [_verdict(members) for members in by_run.values()]
    lead = _lead(list(by_run.values()), reaching(_leading(items)))
    return BenchmarkPicture(title, ident, lead, bias, ability, ends, verdicts)


def primary(task: TaskRun) -> Value | None:
    """Return the score that a glance at a task shows: its first primary one, else its first main one."""
    names = catalog.primary(task.task, task.definition)
    listed = [task.scores[name] for name in names if name in task.scores]
    return next(iter([*listed, *task.main()]), None)


def _leading(items: Iterable[ReportTask]) -> list[Value]:
    """List the primary scores of some tasks that can be placed."""
    found = [primary(item.task) for item in items]
    return [value for value in found if value is not None and in_picture(value)]


def _lead(by_run: Sequence[ReportTasks], limit: float) -> Lead:
    """Set a benchmark's primary scores on one line for each model."""
    points = []
    said = []
    label = ""
    line: float | None = None
    for number, items in enumerate(by_run):
        scores = [(item.task, primary(item.task)) for item in items]
        known = [(task, value) for task, value in scores if value is not None]
        for task, value in known:
            label = label or value.title
            if not in_picture(value):
                continue
            if value.higher_is_better is None:
                line = 50
            points.append(_glance(items[0], task, value, limit, number))
        said.append(_said(items[0], known))
    return Lead(label, len(by_run) * LANE + 8, points, line, said)


def _glance(
    item: ReportTask, task: TaskRun, value: Value, limit: float, number: int
) -> PlacedMark:
    """Place a task's primary score on its model's line."""
    text = f"{item.run.name}, {task.task}: {numbers.cell(value)}, n {numbers.count(value.n)}"
    text = joined(text, task.warning(value.name) or value.verdict.reason)
    return _mark(value, text, numbers.cell(value), item.series, limit, number)


def _said(item: ReportTask, scores: Sequence[tuple[TaskRun, Value]]) -> LeadLine:
    """Say in a badge and a sentence what a model's primary scores show."""
    shown = [badges.badge(task, value) for task, value in scores]
    found = [b or "ability" for b in shown] or [_NO_SCORE]
    differing = found.count(badges.DIFFERS)
    label = found[0]
    if len(set(found)) > 1:
        label = f"{differing} of {len(found)} differ from neutral"
    texts = []
    for said, (_, value) in zip(shown, scores, strict=True):
        statement = _SAYS.get(said, "says nothing about bias")
        if said == badges.DIFFERS:
            statement = value.verdict.claim
        # where something differs, that is what is said
        if said == badges.DIFFERS or not differing:
            texts.append(statement or numbers.cell(value))
    counted = Counter(texts)
    parts = [f"{text} in {number}" for text, number in counted.most_common()]
    sentence = f"{', '.join(parts)} of {len(scores)} tasks"
    if len(counted) == 1 and counted.total() == len(scores):
        sentence = texts[0] + " in all tasks" * (len(scores) > 1)
    words = sentence.split()
    if len(words) > WORDS:
        sentence = " ".join(words[: WORDS - 1]) + " …"
    leaning = [
        v for b, (_, v) in zip(shown, scores, strict=True) if b == badges.DIFFERS
    ]
    placed = [v for v in leaning or [v for _, v in scores] if in_picture(v)]
    if placed:
        furthest = max(placed, key=lambda value: abs(position(value, value.value)))
        which = "furthest " if len(placed) > 1 else ""
        sentence += f" ({which}{numbers.cell(furthest)})"
    told = [badges.beware(task) for task, _ in scores]
    told += [badges.part(task) for task, _ in scores]
    label = ", ".join([label, *filter(None, dict.fromkeys(told))])
    return LeadLine(item.run.name, item.series, label, sentence)


def not_to_conclude(items: ReportTasks) -> list[str]:
    """List what the pictures and verdicts of some tasks don't say."""
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
    if any(diagnostics.trial(item.task) for item in items):
        lines.append(
            "Anything final: some tasks were run on only a part of their items."
        )
    lines.append(
        "Anything about languages, groups of people or uses other than those that the items ask about."
    )
    return lines


def _drawn(items: ReportTasks) -> list[Value]:
    """List the main scores that are in the pictures."""
    return [value for value in _shown(items) if in_picture(value)]


def axis_limit(items: ReportTasks) -> float:
    """Choose the x-axis limit for the bias picture: the smallest that fits all intervals."""
    return reaching(v for v in _drawn(items) if v.higher_is_better is None)


def reaching(values: Iterable[Value]) -> float:
    """Choose the share of the range that half a picture's width stands for: the smallest that all values fit in."""
    furthest = 0.0
    for value in values:
        for end in (value.value, *(value.interval or ())):
            if not math.isnan(end):
                furthest = max(furthest, abs(position(value, end)))
    return next(limit for limit in LIMITS if furthest <= limit)
