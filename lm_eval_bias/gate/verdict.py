"""Checks of runs against a policy. Anything that can't be determined counts as a violation."""

from __future__ import annotations

import fnmatch
import json
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lm_eval_bias.core import __version__, catalog, content_hashes, redaction
from lm_eval_bias.core.answers import DAMAGE
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import progress
from lm_eval_bias.core.numbers import join_some
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.gate.policy_file import Bound, Policy, in_unit
from lm_eval_bias.harness import run_inputs
from lm_eval_bias.runs import (
    answer_files,
    diagnostics,
    harness_results,
    integrity,
    measurement,
    provenance,
    rescoring,
)
from lm_eval_bias.runs.measurement import ChangedOption


def patterns(bound: Bound) -> tuple[str, ...]:
    """List the task patterns that a run must match; a group stands for all its tasks."""
    entry = catalog.entries().get(bound.task)
    return entry.members if entry and entry.members else (bound.task,)


def tasks(run: Run, bound: Bound) -> Iterator[TaskRun]:
    """Yield the tasks of a run that a bound applies to."""
    for name, task in run.tasks.items():
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns(bound)):
            yield task


def scores(task: TaskRun, bound: Bound) -> list[str]:
    """List the scores of a task that a bound applies to."""
    return [name for name in task.scores if fnmatch.fnmatchcase(name, bound.score)]


def unmeasured(run: Run, bound: Bound) -> list[str]:
    """List the tasks and scores that a bound names and a run lacks."""
    missing = []
    for pattern in patterns(bound):
        names = [name for name in run.tasks if fnmatch.fnmatchcase(name, pattern)]
        if not any(scores(run.tasks[name], bound) for name in names):
            missing.append(", ".join(names) or pattern)
    return missing


_MOST_LINES = 3
INFORMATION, ALLOWED = ("for information", "allowed: ")
PROMPTS = "prompts"  # and that other code asked something else
PROVENANCE = "provenance"  # a policy may allow that a file has none


@dataclass(frozen=True)
class Change:
    """The change of a score against the base.

    Attributes:
        base: The base's value.
        difference: The run's value minus it.
        margin: By how much it may be worse, in its unit.
        outcome: One of ``worse``, ``not worse`` and ``not shown``, as to that margin; ``no value`` without a test.
        minimum_detectable: The smallest worsening that would be found with 80% probability; ``nan`` where none would.
    """

    base: float
    difference: float
    margin: float
    outcome: str
    minimum_detectable: float = math.nan


@dataclass(frozen=True)
class GateFinding:
    """The outcome of one bound on one score, or of one requirement on one task.

    Attributes:
        task: Task name, or a pattern that nothing fits.
        score: Score name, or the name of a requirement.
        passes: Whether it is met.
        required: A bound with the ends that it allows the score, or the requirement in words.
        problem: The problem in words; empty if it is met, or missed by the ``excess``.
        value: The score, ``nan`` where there is none.
        interval: Its 95% interval; against a base, that of the difference.
        excess: By how much the bound is violated, in the score's unit; ``nan`` where that isn't known.
        side: The side of the violation, ``below`` or ``above``.
        why: Reason for the bound.
        change: How it differs from the base's, where it is compared with it.
    """

    task: str
    score: str
    passes: bool
    required: Bound | str
    problem: str = ""
    value: float = math.nan
    interval: tuple[float, float] | None = None
    excess: float = math.nan
    side: str = ""
    why: str = ""
    change: Change | None = None

    @property
    def is_of_run(self) -> bool:
        """Whether it is a requirement rather than a bound on a score."""
        return self.change is None and isinstance(self.required, str)

    @property
    def is_checked(self) -> bool:
        """Whether it could have been violated: neither information only nor allowed."""
        required = str(self.required)
        return not required.startswith((INFORMATION, ALLOWED))


def information(task: str, name: str, text: str) -> GateFinding:
    """Make a finding for information only."""
    return GateFinding(task, name, True, INFORMATION, text)


def limits(bound: Bound, value: Value) -> tuple[float, float]:
    """Return the least and the largest value that a bound allows a score.

    Raises:
        BiasError: The bound is a distance and the score has no neutral value, it is in another unit, or every value of
            the score would meet the bound, or none.
    """
    try:
        low, high, distance = (
            in_unit(number, value) for number in (bound.low, bound.high, bound.distance)
        )
    except BiasError as error:
        raise BiasError(f"{bound.place}: {error}") from error
    if math.isfinite(distance):
        if value.neutral is None:
            raise BiasError(
                f"{bound.place}: {value.name} has no neutral value: give min and max instead"
            )
        low = max(low, value.neutral - distance)
        high = min(high, value.neutral + distance)
    meaning = f"{bound.place}: {value.name} goes from {value.low:g} to {value.high:g}"
    if low <= value.low and high >= value.high:
        raise BiasError(f"{meaning}: this bound could never be violated")
    if low > high or low > value.high or high < value.low:
        raise BiasError(f"{meaning}: this bound could never be met")
    return low, high


def judge(bound: Bound, task: str, value: Value) -> GateFinding:
    """Check one score against one bound.

    Where a part of the answers can't show a bias, the distance from neutral is that of the other answers.
    """
    low, high = limits(bound, value)
    ends = value.interval
    if ends is not None and any(map(math.isnan, ends)):
        ends = None
    verdict = value.verdict
    finding = GateFinding(
        task,
        value.name,
        False,
        replace(bound, low=low, high=high),
        value=value.value,
        interval=ends,
        why=bound.why,
    )
    if math.isnan(value.value):
        return replace(finding, problem=f"no value ({value.note or 'no reason given'})")
    if bound.on == "point":
        ends = value.value, value.value
    if ends is None:
        reason = value.note or "no standard error"
        return replace(finding, problem=f"no interval ({reason})")
    if verdict.silent == 1 and verdict.reason:
        return replace(finding, problem=f"can't be shown: {verdict.reason}")
    if bound.on == "evidence":  # looks at the end nearest to what is allowed
        last, first = ends
    else:
        middle = value.neutral or 0.0
        room = 1 - verdict.silent
        first, last = (middle + (end - middle) / room for end in ends)
    below = low - first
    above = last - high
    if max(below, above) <= 0:
        return replace(finding, passes=True)
    return replace(
        finding, excess=max(below, above), side="below" if below >= above else "above"
    )


def _requirements(
    task: TaskRun, policy: Policy, is_bound: bool
) -> Iterator[GateFinding]:
    """Check the policy's requirements for a task, apart from its scores.

    Of a task that is only compared, options may be other ones: what can be paired decides.
    """
    yield from _changes(task, policy, is_bound)
    yield from _unanswered(task, policy)


def _changes(task: TaskRun, policy: Policy, is_bound: bool) -> Iterator[GateFinding]:
    """Yield findings for changed options and warnings."""
    changed = [
        option
        for option in measurement.changed_options(task)
        if is_bound or option.name in (*measurement.PART, "package_data", "inputs")
    ]
    for one in task.diagnostics:
        if one.code == diagnostics.CUT_PROMPTS:
            changed.append(ChangedOption(one.code, "", one.message))
    allows_parts = "trial_run" in policy.allow
    for option in changed:
        if option.name in measurement.PART and allows_parts:
            continue
        if {option.name, option.exact} & set(policy.allow):
            yield GateFinding(task.task, option.name, True, f"{ALLOWED}{option.exact}")
        else:
            needed = "the unchanged task"
            if option.name == diagnostics.CUT_PROMPTS:
                needed = "prompts that the model reads whole"
            line = f"allow: {json.dumps([option.exact], ensure_ascii=False)}"
            problem = option.problem or f"it is {option.value}"
            problem = f"{problem}; to allow it, add to the policy: {line}"
            yield GateFinding(task.task, option.name, False, needed, problem)
    if _is_of_other_code(task):
        facts = (
            "made by other code: --strict tells whether prompts and scores are the same"
        )
        yield information(task.task, "package_code", facts)


def _is_of_other_code(task: TaskRun) -> bool:
    here = run_inputs.code_hash(task.definition)
    return task.inputs.get("package_code") not in (None, here)


def _unanswered(task: TaskRun, policy: Policy) -> Iterator[GateFinding]:
    """Check that enough documents were answered."""
    name = "unanswered"
    if name not in {score.name for score in task.definition.scores()}:
        return
    value = task.scores.get(name)
    share = math.nan if value is None else value.value
    problem = f"{100 * share:.3g}% of them weren't answered"
    if math.isnan(share):
        problem = "the run doesn't say"
    if share <= policy.unanswered:
        problem = ""
    passes = not problem or "unanswered" in policy.allow
    required = f"at most {100 * policy.unanswered:g}% of the documents unanswered"
    yield GateFinding(task.task, name, passes, required, problem, share)


def check(
    run: Run, policy: Policy, compared: Collection[str] = ()
) -> list[GateFinding]:
    """Check one run against all bounds and requirements of a policy.

    Args:
        run: The run.
        policy: The policy.
        compared: Names of tasks that are compared with an earlier run's, which have to be worth comparing.

    Raises:
        BiasError: A bound makes no sense for its score, see :func:`limits`.
    """
    judged = {task.task: task for bound in policy.bounds for task in tasks(run, bound)}
    findings: list[GateFinding] = []
    others = {
        name: task
        for name, task in run.tasks.items()
        if name in compared and name not in judged
    }
    for name, task in {**judged, **others}.items():
        findings += _requirements(task, policy, is_bound=name in judged)
    for task in judged.values():
        for one in diagnostics.about_texts(task):
            if one.code != diagnostics.CUT_PROMPTS:
                findings.append(information(task.task, one.code, one.message))
    for one in diagnostics.about_origin(run):
        passes = one.code not in policy.refuse
        required = INFORMATION if passes else "refused by the policy"
        findings.append(GateFinding("", one.code, passes, required, one.message))
    if diagnostics.CACHED in policy.refuse and None in [r.cache for r in run.records]:
        text = "its file doesn't say whether answers came from a file: run it again"
        required = "refused by the policy"
        findings.append(GateFinding("", diagnostics.CACHED, False, required, text))
    for name in run.tasks if policy.bounds else ():
        if name not in judged:
            text = "measured, and no bound is about it"
            findings.append(information(name, "bounds", text))
    for bound in policy.bounds:
        required = f"{bound.task}: {bound.score}"
        for name in unmeasured(run, bound):
            finding = GateFinding(name, bound.score, False, required, "not measured")
            findings.append(replace(finding, why=bound.why))
        for task in tasks(run, bound):
            for name in scores(task, bound):
                findings.append(judge(bound, task.task, task.scores[name]))
    return findings


def recomputed(run: Run, policy: Policy) -> list[GateFinding]:
    """Check that scores follow from the saved answers, and that the run's files match their checksums.

    Missing answers are a violation.

    Args:
        run: The run.
        policy: The policy, which may allow that there are no sums.
    """
    findings = []
    for task in progress(list(run.tasks.values()), f"Recomputing {run.name}"):
        items = measurement.items_run(task) or f"all {task.documents:,} items"
        required = f"the same scores as its saved answers ({items})"
        try:
            values = rescoring.recompute(task)
            lines = integrity.differences(task.scores, values)
        except BiasError as error:
            lines = [f"they can't be recomputed: {error}"]
        findings.append(proof(task.task, "samples", required, lines))
        if _is_of_other_code(task):
            findings.append(_prompts(task, policy))
    are_same = all(finding.passes for finding in findings)
    for name in dict.fromkeys(record.file for record in run.records):
        file = Path(name)
        faults = provenance.sum_faults(file, PROVENANCE in policy.allow)
        required = f"{file.name} and its answers and logs as the run wrote them"
        finding = proof("", PROVENANCE, required, faults)
        if not finding.passes and are_same and provenance.sums_beside(file).is_file():
            text = f"{finding.problem}; files differ, scores are the same"
            finding = replace(finding, problem=text)
        findings.append(finding)
    return [*_release(run), *findings]


def _prompts(task: TaskRun, policy: Policy) -> GateFinding:
    """Check that a task made by other code had the prompts that this code makes, as far as its data are here."""
    made = {
        name: value
        for name, value in task.metadata.items()
        if name in task.definition.options.roles
    }
    try:
        places = [saved.number for saved in answer_files.of_task(task)]
        here = run_inputs.asked_here(task.task, made, places)
    except BiasError as error:
        return information(
            task.task, PROMPTS, f"made by other code, and not compared: {error}"
        )
    lines = []
    if here not in (task.inputs.get("scored"), task.inputs.get("documents")):
        if PROMPTS in policy.allow:
            return GateFinding(task.task, PROMPTS, True, f"{ALLOWED}{PROMPTS}")
        lines = [f"it asked something else; to allow it: allow: [{PROMPTS}]"]
    required = "made by other code: what this package asks"
    return proof(task.task, PROMPTS, required, lines)


def _release(run: Run) -> Iterator[GateFinding]:
    """Describe the release that made a run, and whether its numbers should be equal."""
    release = run.record.code.lm_eval_bias
    if release in (None, __version__):
        return
    moved = [name for name, task in run.tasks.items() if measurement.old_version(task)]
    changed = "no task has another version: scores should be the same"
    if moved:
        changed = f"other versions of {join_some(moved)}: the changelog says which numbers moved"
    text = f"made by lm-eval-bias {release}, checked by {__version__}: {changed}"
    yield information("", "version", text)


def of_weights(run: Run, given: str) -> GateFinding:
    """Check that a run's recorded weights are the given ones, by content or by commit.

    It doesn't prove what answered: who writes a results file can write any hashes.

    Args:
        run: The run.
        given: Arguments of a model that name them, as of ``run --model_args``, or what ``pretrained=`` names alone.

    Raises:
        BiasError: Nothing there proves weights.
    """
    arguments = redaction.parsed(given)
    arguments.setdefault("pretrained", arguments.pop("", None))
    there = harness_results.proofs(provenance.weights(arguments), arguments)
    if not there:
        raise BiasError(
            f"--weights {given}: no folder or file of a checkpoint, and no model of the Hub in the cache"
        )
    lines = []
    for record in run.records:
        used = record.model.files
        if not used:
            lines.append("nothing proves which weights answered")
        for name, old, new in content_hashes.changed(used, there) if used else ():
            lines.append(f"{name}: {old} in the run, {new} there")
    return proof("", "weights", f"recorded hashes match the weights of {given}", lines)


def proof(task: str, name: str, required: str, lines: Iterable[str]) -> GateFinding:
    """Make a finding of the faults that a check yields; an error in reading is a fault, too."""
    try:
        found = list(lines)
    except (BiasError, *DAMAGE) as error:
        found = [f"parts of it are missing or damaged ({error})"]
    shown = found[:_MOST_LINES]
    if len(found) > _MOST_LINES:
        shown.append(f"and {len(found) - _MOST_LINES} more")
    return GateFinding(task, name, not found, required, "; ".join(shown))
