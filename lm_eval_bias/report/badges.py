"""Badges: in a word or two what a score shows, and which part of the items it rests on."""

from __future__ import annotations

import math

from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.report.listings import labels
from lm_eval_bias.runs import measurement, remarks

DIFFERS = "differs from neutral"
UNCLEAR = "unclear"
NO_VERDICT = "no verdict"
NO_VALUE = "no value"
WITHHELD = "withheld"
TRIAL = "trial"
_SHORTER = {"chance_level": "chance level", "habit": "habit"}
# of models that say nothing of bias, in the order of remarks.EMPTY
EMPTY = [_SHORTER.get(kind, labels("caveats")[kind]) for kind in remarks.EMPTY]


def badge(task: TaskRun, value: Value) -> str:
    """Say in words what a score of a task shows; empty for an ability."""
    if task.withheld:
        return WITHHELD
    if math.isnan(value.value):
        return NO_VALUE
    for remark in task.caveats:
        if remark.kind in remarks.EMPTY:
            return EMPTY[remarks.EMPTY.index(remark.kind)]
    if value.higher_is_better is not None:
        return ""
    if value.side is None:
        return NO_VERDICT
    return DIFFERS if value.side else UNCLEAR


def beware(task: TaskRun) -> str:
    """Name what else stands in front of a task's scores, such as low coverage; empty without any."""
    others = {remarks.TRIAL, "place", *remarks.EMPTY}
    kinds = [remark.kind for remark in task.caveats if remark.kind not in others]
    return labels("caveats")[kinds[0]] if kinds else ""


def part(task: TaskRun) -> str:
    """Say which part of the items was run: ``trial``, a suite's name, ``part``; empty for all."""
    if any(remark.kind == remarks.TRIAL for remark in task.caveats):
        return TRIAL
    suite = task.metadata.get("suite") or {}
    return str(suite.get("name", "part")) if measurement.items_run(task) else ""
