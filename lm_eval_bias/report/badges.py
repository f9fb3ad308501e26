"""Badges: in a word or two what a score shows, and which part of the items it rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lm_eval_bias.core import numbers
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.verdicts import NO_DIRECTION, NO_VALUE, NO_VERDICT
from lm_eval_bias.report import parts
from lm_eval_bias.report.listings import labels
from lm_eval_bias.runs import diagnostics, measurement

DIFFERS = "differs from neutral"
UNCLEAR = "unclear"
WITHHELD = "withheld"
TRIAL = "trial"
# of models that say nothing of bias, in the order of diagnostics.EMPTY
EMPTY = {code: labels("diagnostics")[code] for code in diagnostics.EMPTY}
EMPTY["chance_level"] = "chance level"
_SAYS = {UNCLEAR: NO_DIRECTION} | {
    kind: f"{kind}, says nothing about bias" for kind in EMPTY.values()
}


class LeadLine(NamedTuple):
    """A model's primary scores of a benchmark in one line.

    Attributes:
        model: The run's name.
        series: Its number.
        claims: In which tasks it is said, by what is said.
        about: The score, further warnings, and which part of the items was run.
    """

    model: str
    series: int
    claims: Mapping[str, str]
    about: str


def lead_line(model: str, series: int, tasks: Sequence[TaskRun]) -> LeadLine:
    """Describe a model's primary scores: each claim with its tasks, those of a difference first."""
    claims = []
    about = []
    for task in tasks:
        value = parts.primary(task)
        about.append(value.title if value else "")
        kind = (badge(task, value) or "ability") if value else "no bias score"
        says = _SAYS.get(kind, kind)
        if value and kind == DIFFERS:
            says = value.verdict.claim
        claims.append((kind != DIFFERS, says, task.task))
    claims.sort(key=lambda claim: claim[0])
    told = numbers.grouped((says, name) for _, says, name in claims)
    about += [name(task) for name in (beware, part) for task in tasks]
    where = {says: numbers.join_some(names, 3) for says, names in told.items()}
    return LeadLine(model, series, where, ", ".join(filter(None, dict.fromkeys(about))))


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
        if one.code in EMPTY:
            return EMPTY[one.code]
    if value.higher_is_better is not None:
        return ""
    return NO_VERDICT if side is None else UNCLEAR


def beware(task: TaskRun) -> str:
    """Return the label of a task's further warning, such as low coverage; empty without one."""
    others = {diagnostics.TRIAL, *EMPTY}
    kinds = [one.code for one in task.diagnostics if one.code not in others]
    return labels("diagnostics")[kinds[0]] if kinds else ""


def part(task: TaskRun) -> str:
    """Describe which part of the items was run: ``trial``, a suite's name, ``part``; empty for all."""
    if any(one.code == diagnostics.TRIAL for one in task.diagnostics):
        return TRIAL
    suite = task.metadata.get("suite") or {}
    return str(suite.get("name", "part")) if measurement.items_run(task) else ""
