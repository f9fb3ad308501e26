"""Checks runs against a policy. Anything that can't be determined counts as a violation."""

from __future__ import annotations

import fnmatch
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import progress
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.gate.policy_file import Bound, Policy
from lm_eval_bias.harness import run_inputs
from lm_eval_bias.runs import remarks, rescoring, settings, soundness
from lm_eval_bias.runs.settings import ChangedOption


def _fits(task: TaskRun, pattern: str) -> bool:
    return fnmatch.fnmatchcase(task.task, pattern)


def patterns(bound: Bound) -> tuple[str, ...]:
    """Patterns of tasks each of which a run has to have: of a group, all its tasks."""
    entry = catalog.entries().get(bound.task)
    return entry.members if entry and entry.members else (bound.task,)


def tasks(run: Run, bound: Bound) -> Iterator[TaskRun]:
    """The tasks of a run that a bound is about."""
    for task in run.tasks.values():
        if any(_fits(task, pattern) for pattern in patterns(bound)):
            yield task


def scores(task: TaskRun, bound: Bound) -> Iterator[Value]:
    """The scores of a task that a bound is about."""
    for name, value in task.scores.items():
        if fnmatch.fnmatchcase(name, bound.score):
            yield value


def unmeasured(run: Run, bound: Bound) -> list[str]:
    """What a bound names and a run doesn't have."""
    missing = []
    for pattern in patterns(bound):
        fitting = [task for task in run.tasks.values() if _fits(task, pattern)]
        if not fitting:
            missing.append(pattern)
        elif not any(True for task in fitting for _ in scores(task, bound)):
            missing.append(", ".join(task.task for task in fitting))
    return missing


_MOST_LINES = 3
# what is asked for where a remark would unmake the verdict; parts of the items and unanswered ones have limits
_NEEDED = {
    "chance_level": "better than by guessing",
    "low_coverage": "scores that cover the answers",
}


@dataclass(frozen=True)
class GateFinding:
    """What came of one bound on one score, or of one requirement on one task.

    Attributes:
        task: Task name, or a pattern that nothing fits.
        score: Score name, or what is required.
        holds: Whether it is met.
        required: A bound with the ends that it allows the score, or in words what is asked for.
        problem: What is the matter; empty where it is met, or missed by the ``excess``.
        value: The score, ``nan`` where there is none.
        interval: Its 95% interval.
        excess: By how much it is violated, in the score's unit; ``nan`` where that can't be told.
        side: On which side, ``below`` or ``above``.
        why: What the bound is for.
    """

    task: str
    score: str
    holds: bool
    required: Bound | str
    problem: str = ""
    value: float = math.nan
    interval: tuple[float, float] | None = None
    excess: float = math.nan
    side: str = ""
    why: str = ""


def limits(bound: Bound, value: Value) -> tuple[float, float]:
    """The least and the largest value that a bound allows a score.

    Raises:
        BiasError: A distance from a neutral value that the score doesn't have; a bound that every value of the score
            would meet, or none.
    """
    low, high = bound.low, bound.high
    if math.isfinite(bound.distance):
        if value.neutral is None:
            raise BiasError(
                f"{bound.place}: {value.name} has no neutral value: give min and max instead"
            )
        low, high = (
            max(low, value.neutral - bound.distance),
            min(high, value.neutral + bound.distance),
        )
    meaning = f"{bound.place}: {value.name} goes from {value.low:g} to {value.high:g}"
    if low <= value.low and high >= value.high:
        raise BiasError(f"{meaning}: this bound could never be violated")
    if low > high or low > value.high or high < value.low:
        raise BiasError(f"{meaning}: this bound could never be met")
    return low, high


def judge(bound: Bound, task: str, value: Value) -> GateFinding:
    """One bound on one score."""
    low, high = limits(bound, value)
    ends = (
        value.interval
        if value.interval and not any(map(math.isnan, value.interval))
        else None
    )
    required = replace(bound, low=low, high=high)
    finding = GateFinding(
        task,
        value.name,
        False,
        required,
        value=value.value,
        interval=ends,
        why=bound.why,
    )
    if math.isnan(value.value):
        return replace(finding, problem=f"no value ({value.note or 'no reason given'})")
    if bound.on == "point":
        first = last = value.value
    elif ends is None:
        return replace(
            finding, problem=f"no interval ({value.note or 'no standard error'})"
        )
    else:
        # evidence asks of the end that is nearest to what is allowed, interval of the farthest
        first, last = ends if bound.on == "interval" else ends[::-1]
    below, above = low - first, last - high
    if max(below, above) <= 0:
        return replace(finding, holds=True)
    return replace(
        finding, excess=max(below, above), side="below" if below >= above else "above"
    )


def _requirements(run: Run, policy: Policy) -> Iterator[GateFinding]:
    """What a run has to be like, apart from its scores."""
    judged = {task.task: task for bound in policy.bounds for task in tasks(run, bound)}
    for name, task in judged.items():
        yield from _changes(run, task, policy)
        yield from _unanswered(task, policy)
        if policy.share is None:
            continue
        part = task.share
        holds = part >= policy.share
        problem = (
            f"{task.documents:,} of {task.items:,} items"
            if task.items
            else "its number of items is unknown"
        )
        problem += (
            f", {part:.0%} of what a full run asks"
            if part != 1 and not math.isnan(part)
            else ""
        )
        yield GateFinding(
            name,
            "items",
            holds,
            f"at least {policy.share * 100:.12g}% of the items",
            "" if holds else problem,
        )


def _changes(run: Run, task: TaskRun, policy: Policy) -> Iterator[GateFinding]:
    """What was changed of a task, and what leaves no verdict on its scores: violated unless it is allowed by name.

    A share of the items that a policy asks for settles which part may do.
    """
    changed = [
        (one, "the unchanged task") for one in settings.changed_options(run, task)
    ]
    for remark in remarks.disqualifying(run, task):
        if remark.kind in _NEEDED:
            changed.append(
                (ChangedOption(remark.kind, "", remark.text), _NEEDED[remark.kind])
            )
    for one, needed in changed:
        if one.name in settings.PART and (
            policy.share is not None or "trial_run" in policy.allow
        ):
            continue
        if {one.name, one.exact} & set(policy.allow):
            yield GateFinding(task.task, one.name, True, f"allowed: {one.exact}")
        else:
            line = f"allow: {json.dumps([one.exact], ensure_ascii=False)}"
            problem = f"{one.problem or f'it is {one.value}'}; to allow it, add to the policy: {line}"
            yield GateFinding(task.task, one.name, False, needed, problem)
    here, there = (
        run_inputs.code_hash(registry.get(task.benchmark)),
        task.inputs.get("package_code"),
    )
    if there not in (None, here):
        hashes = f"{str(there)[:12]}, here {here[:12]}"
        said = f"made by other code ({hashes}): --strict tells whether the scores are the same"
        yield GateFinding(task.task, "package_code", True, "for information", said)


def _unanswered(task: TaskRun, policy: Policy) -> Iterator[GateFinding]:
    """Whether enough documents were answered: a model that answers nothing favours nobody."""
    name = registry.get(task.benchmark).unanswered
    if not name:
        return
    value = task.scores.get(name)
    share = math.nan if value is None else value.value
    holds = share <= policy.unanswered or "unanswered" in policy.allow
    problem = (
        f"{100 * share:.3g}% of them weren't answered"
        if not math.isnan(share)
        else "the run doesn't say"
    )
    required = f"at most {100 * policy.unanswered:g}% of the documents unanswered"
    yield GateFinding(
        task.task,
        name,
        holds,
        required,
        "" if share <= policy.unanswered else problem,
        share,
    )


def check(run: Run, policy: Policy) -> list[GateFinding]:
    """All bounds and requirements of a policy on one run.

    Raises:
        BiasError: A bound that can't be meant so, see :func:`allowed`.
    """
    findings = list(_requirements(run, policy))
    for bound in policy.bounds:
        for name in unmeasured(run, bound):
            required = f"{bound.task}: {bound.score}"
            findings.append(
                GateFinding(
                    name, bound.score, False, required, "not measured", why=bound.why
                )
            )
        findings += [
            judge(bound, task.task, value)
            for task in tasks(run, bound)
            for value in scores(task, bound)
        ]
    return findings


def recomputed(run: Run, as_logged: bool = False) -> list[GateFinding]:
    """Tell whether the scores of each task of a run are those of its sample log; without a log nobody can.

    Args:
        run: The run.
        as_logged: Whether to keep what was read from logged texts when the run was made.
    """
    findings = []
    for task in progress(list(run.tasks.values()), f"Recomputing {run.name}"):
        otherwise = 0
        try:
            values, otherwise = rescoring.recompute(task, as_logged)
            lines = soundness.differences(task.scores, values)
        except BiasError as error:
            lines = [f"they can't be recomputed: {error}"]
        more = (
            [f"and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
        )
        if otherwise:
            more.append(rescoring.said_otherwise(otherwise))
        problem = "; ".join([*lines[:_MOST_LINES], *more])
        findings.append(
            GateFinding(
                task.task,
                "samples",
                not lines,
                "the same scores as its sample log",
                problem,
            )
        )
    return findings
