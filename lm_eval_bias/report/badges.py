"""Badges: in a word or two what a score shows, and which part of the items it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from lm_eval_bias.core import numbers
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.verdicts import NO_DIRECTION
from lm_eval_bias.report import parts
from lm_eval_bias.report.listings import labels
from lm_eval_bias.report.pictures import in_picture, position
from lm_eval_bias.runs import diagnostics, measurement

DIFFERS = "differs from neutral"
UNCLEAR = "unclear"
NO_VERDICT = "no verdict"
NO_VALUE = "no value"
WITHHELD = "withheld"
TRIAL = "trial"
_SHORTER = {"chance_level": "chance level"}
# of models that say nothing of bias, in the order of diagnostics.EMPTY
EMPTY = [_SHORTER.get(kind, labels("diagnostics")[kind]) for kind in diagnostics.EMPTY]
_SAYS = {UNCLEAR: NO_DIRECTION, **dict.fromkeys(EMPTY, "says nothing about bias")}


class Summary(NamedTuple):
    """A summary of several scores.

    Attributes:
        differing: How many differ from neutral.
        telling: How many could tell whether they do.
        strongest: The one furthest from neutral: of those that differ, else of those that could tell, else of all.
    """

    differing: int
    telling: int
    strongest: Value | None


class LeadLine(NamedTuple):
    """A model's primary scores of a benchmark in one line.

    Attributes:
        model: The run's name.
        series: Its number.
        badge: A word or two.
        sentence: What that means, and in which tasks.
    """

    model: str
    series: int
    badge: str
    sentence: str


def summary(scores: Sequence[tuple[str, Value]]) -> Summary:
    """Summarise scores with their badges."""
    differing = [value for found, value in scores if found == DIFFERS]
    telling = [value for found, value in scores if found in (DIFFERS, UNCLEAR)]
    placed = filter(in_picture, differing or telling or [v for _, v in scores])
    away = [(abs(position(value, value.value)), value) for value in placed]
    strongest = max(away, key=lambda pair: pair[0])[1] if away else None
    return Summary(len(differing), len(telling), strongest)


def lead_line(model: str, series: int, tasks: Sequence[TaskRun]) -> LeadLine:
    """Describe a model's primary scores in a badge and a sentence."""
    scores = [(task, value) for task in tasks if (value := parts.primary(task))]
    if not scores:
        return LeadLine(model, series, "no bias score to judge by", "")
    found = [(badge(task, value) or "ability", value) for task, value in scores]
    differing, _, strongest = summary(found)
    label = found[0][0]
    if len({kind for kind, _ in found}) > 1:
        label = f"{differing} of {len(found)} differ from neutral"
    claims = []
    for (kind, value), (task, _) in zip(found, scores, strict=True):
        says = value.verdict.claim if kind == DIFFERS else _SAYS.get(kind, "")
        if says and (kind == DIFFERS or not differing):
            claims.append((says, task.task))
    texts = []
    for says, names in numbers.grouped(claims).items():
        where = f" in {numbers.join_some(names, 3)}"
        if len(names) == len(found):
            where = " in all tasks" if len(found) > 1 else ""
        texts.append(says + where)
    if strongest is not None:
        which = "furthest " if len(claims) > 1 else ""
        texts.append(f"({which}{numbers.cell(strongest)})")
    about = [name(task) for name in (beware, part) for task in tasks]
    badges = ", ".join([label, *filter(None, dict.fromkeys(about))])
    return LeadLine(model, series, badges, ", ".join(texts).replace(", (", " ("))


def badge(task: TaskRun, value: Value) -> str:
    """Describe in words what a score of a task shows; empty for an ability."""
    if task.withheld:
        return WITHHELD
    if math.isnan(value.value):
        return NO_VALUE
    side = value.verdict.side
    if side:
        return DIFFERS
    for one in task.diagnostics:
        if one.code in diagnostics.EMPTY:
            return EMPTY[diagnostics.EMPTY.index(one.code)]
    if value.higher_is_better is not None:
        return ""
    return NO_VERDICT if side is None else UNCLEAR


def beware(task: TaskRun) -> str:
    """Return the label of a task's further warning, such as low coverage; empty without one."""
    others = {diagnostics.TRIAL, *diagnostics.EMPTY}
    kinds = [one.code for one in task.diagnostics if one.code not in others]
    return labels("diagnostics")[kinds[0]] if kinds else ""


def part(task: TaskRun) -> str:
    """Describe which part of the items was run: ``trial``, a suite's name, ``part``; empty for all."""
    if any(one.code == diagnostics.TRIAL for one in task.diagnostics):
        return TRIAL
    suite = task.metadata.get("suite") or {}
    return str(suite.get("name", "part")) if measurement.items_run(task) else ""
