"""Badges: in a word or two what a score shows, and which part of the items it rests on."""

from __future__ import annotations

import math

from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.report.listings import labels
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


def badge(task: TaskRun, value: Value) -> str:
    """Say in words what a score of a task shows; empty for an ability."""
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
    """Name what else stands in front of a task's scores, such as low coverage; empty without any."""
    others = {diagnostics.TRIAL, *diagnostics.EMPTY}
    kinds = [one.code for one in task.diagnostics if one.code not in others]
    return labels("diagnostics")[kinds[0]] if kinds else ""


def part(task: TaskRun) -> str:
    """Say which part of the items was run: ``trial``, a suite's name, ``part``; empty for all."""
    if any(one.code == diagnostics.TRIAL for one in task.diagnostics):
        return TRIAL
    suite = task.metadata.get("suite") or {}
    return str(suite.get("name", "part")) if measurement.items_run(task) else ""
