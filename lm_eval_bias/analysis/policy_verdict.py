"""Runs held against a policy: what can't be told is a violation, never a pass."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lm_eval_bias import catalog
from lm_eval_bias.analysis import policy_targets
from lm_eval_bias.analysis.policy_file import Bound, Policy
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.errors import BiasError
from lm_eval_bias.runs.run_data import Run, TaskRun, Value


@dataclass(frozen=True)
class Finding:
    """What came of one bound on one score, or of one requirement on one task.

    Attributes:
        task: Task name, a pattern that nothing fits, or empty for the run as a whole.
        score: Score name, or what is required.
        holds: Whether it is met.
        says: What is the matter, in words; empty where it is met.
        bound: What is asked for.
        value: The score, ``nan`` where there is none.
        interval: Its 95% interval.
        excess: By how much it is violated, in the score's unit; ``nan`` where that can't be told.
        why: What the bound is for.
    """

    task: str
    score: str
    holds: bool
    says: str
    bound: str
    value: float = math.nan
    interval: tuple[float, float] | None = None
    excess: float = math.nan
    why: str = ""


def number(value: float) -> str:
    """A number for people.

    >>> number(56.7041), number(0.000123), number(100.0)
    ('56.7', '0.000123', '100')
    """
    return f"{value:.4g}" if abs(value) < 1 else f"{value:.6g}" if value.is_integer() else f"{value:.1f}"


def allowed(bound: Bound, value: Value) -> tuple[float, float]:
    """The least and the largest value that a bound allows a score.

    Raises:
        BiasError: A distance from a neutral value that the score doesn't have; a bound that every value of the score
            would meet, or none.
    """
    low, high = bound.low, bound.high
    if math.isfinite(bound.distance):
        if value.neutral is None:
            raise BiasError(f"{bound.place}: {value.name} has no neutral value: give min and max")
        low, high = max(low, value.neutral - bound.distance), min(high, value.neutral + bound.distance)
    said = f"{bound.place}: {value.name} goes from {number(value.low)} to {number(value.high)}"
    if low <= value.low and high >= value.high:
        raise BiasError(f"{said}: this bound could never be violated")
    if low > high or low > value.high or high < value.low:
        raise BiasError(f"{said}: this bound could never be met")
    return low, high


_LONG = {"interval": "the whole interval", "point": "the value", "evidence": "a part of the interval"}


def _asked(bound: Bound, low: float, high: float) -> str:
    if math.isinf(low):
        return f"{_LONG[bound.on]} at most {number(high)}"
    if math.isinf(high):
        return f"{_LONG[bound.on]} at least {number(low)}"
    return f"{_LONG[bound.on]} within {number(low)} and {number(high)}"


def judge(bound: Bound, task: str, value: Value) -> Finding:
    """One bound on one score."""
    low, high = allowed(bound, value)
    asked = _asked(bound, low, high)
    ends = value.interval if value.interval and not any(map(math.isnan, value.interval)) else None

    def found(holds: bool, says: str = "", excess: float = math.nan) -> Finding:
        return Finding(task, value.name, holds, says, asked, value.value, ends, excess, bound.why)

    if math.isnan(value.value):
        return found(False, f"no value ({value.note or 'no reason given'})")
    if bound.on != "point" and ends is None:
        return found(False, f"no interval ({value.note or 'no standard error'})")
    if bound.on == "point" or ends is None:
        first = last = value.value
    else:
        # evidence asks of the end that is nearest to what is allowed, interval of the farthest
        first, last = ends if bound.on == "interval" else ends[::-1]
    excess = max(low - first, last - high)
    if excess <= 0:
        return found(True)
    side = "below" if low - first >= last - high else "above"
    what = {"interval": "reaches", "point": "is", "evidence": "lies, as a whole,"}[bound.on]
    return found(False, f"{what} {number(excess)} {side}", excess)


def share(task: TaskRun) -> float:
    """The share of a task's items that were scored, 0…1; ``nan`` where the number of items isn't known.

    Where a prompt is sampled several times, fewer samples are a smaller share.
    """
    if not task.items:
        return math.nan
    part = min(1.0, task.documents / task.items)
    entry = catalog.entries().get(policy_targets.base(task.task))
    usual = entry.repeats if entry and not entry.members else None
    repeats = task.metadata.get("repeats")
    return part * min(1.0, repeats / usual) if usual and isinstance(repeats, int) else part


def _requirements(run: Run, policy: Policy) -> Iterator[Finding]:
    """What a run has to be like, apart from its scores."""
    if policy.dtypes:
        dtype = run.provenance.get("dtype")
        holds = dtype in policy.dtypes
        says = "" if holds else f"it is {dtype}" if dtype else "the run doesn't tell"
        yield Finding("", "dtype", holds, says, f"one of {', '.join(policy.dtypes)}")
    judged = {task.task: task for bound in policy.bounds for task in policy_targets.tasks(run, bound)}
    for name, task in judged.items() if policy.share else ():
        part = share(task)
        holds = part >= policy.share
        says = f"{task.documents:,} of {task.items:,} items" if task.items else "the number of its items isn't known"
        says += f", {part:.0%} of what a full run asks" if part != 1 and not math.isnan(part) else ""
        yield Finding(name, "items", holds, "" if holds else says, f"at least {policy.share:.0%} of the items")


def _warnings(run: Run, policy: Policy) -> Iterator[Finding]:
    asked = "no warning"
    seen = set()
    for bound in policy.bounds:
        for task in policy_targets.tasks(run, bound):
            warning = (task.metadata.get("classifier_used") or {}).get("warning")
            pairs = [(value.name, value.note) for value in policy_targets.scores(task, bound) if value.note]
            for score, note in [*([("classifier", str(warning))] if warning else []), *pairs]:
                if (task.task, score) not in seen:
                    seen.add((task.task, score))
                    yield Finding(task.task, score, False, note, asked)


def check(run: Run, policy: Policy) -> list[Finding]:
    """All bounds and requirements of a policy on one run.

    Raises:
        BiasError: A bound that can't be meant so, see :func:`allowed`.
    """
    found = list(_requirements(run, policy))
    for bound in policy.bounds:
        for missing in policy_targets.unmeasured(run, bound):
            asked = f"{bound.task}: {bound.score}"
            found.append(Finding(missing, bound.score, False, "not measured", asked, why=bound.why))
        found += [
            judge(bound, task.task, value)
            for task in policy_targets.tasks(run, bound)
            for value in policy_targets.scores(task, bound)
        ]
    return found + (list(_warnings(run, policy)) if not policy.allow_warnings else [])


def as_data(finding: Finding) -> dict[str, Any]:
    """A finding as plain data; ``null`` for what isn't there."""
    return {
        "task": finding.task or None,
        "score": finding.score,
        "holds": finding.holds,
        "says": finding.says,
        "bound": finding.bound,
        "value": finite(finding.value),
        "interval": None if finding.interval is None else list(finding.interval),
        "excess": finite(finding.excess),
        "why": finding.why,
    }
