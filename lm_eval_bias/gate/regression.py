"""A run against an earlier one: is it shown to be worse?

In come two runs on the same items; out goes a finding for each primary score and each ability, by the paired test that
``compare`` uses, corrected for the number of all of them.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping
from dataclasses import replace

from lm_eval_bias.comparing.findings import Choice, Finding, compare_pairs, corrected
from lm_eval_bias.comparing.pairing import beside_the_model, pairs, why_not_paired
from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.numbers import significant
from lm_eval_bias.core.run_data import Run
from lm_eval_bias.gate.policy_file import Percent, in_unit
from lm_eval_bias.gate.verdict import GateFinding, told


def _worse(finding: Finding) -> tuple[float, float]:
    """Return by how much a score is worse, negative where it is better, and how far the corrected interval reaches.

    Worse is further from the neutral value, or a lower ability; ``nan`` where a score has neither. The distance from
    neutral changes by the difference of two values on one side of it, and by their sum where they are on two sides:
    the smaller of both.
    """
    moves = finding.moves()
    if not moves:
        return math.nan, math.nan
    moved, reach = min(moves, key=lambda move: abs(move[0]))
    return math.copysign(moved, math.prod(move for move, _ in moves)), reach


def _judge(finding: Finding, margin: float) -> GateFinding:
    """Judge a score: violated where it is shown to be worse by more than the margin."""
    worse, reach = _worse(finding)
    holds = True
    problem = ""
    if math.isnan(finding.difference.value) or finding.unsaid:
        holds = math.isnan(finding.base_value) and math.isnan(finding.other_value)
        problem = f"not measured: {finding.verdict}"
    elif worse - reach > margin:
        holds = False
        problem = (
            f"worse by {significant(worse)}, at least by {significant(worse - reach)}"
        )
    elif not worse + reach <= margin:
        least = finding.findable(margin)
        could = "nothing"
        if not math.isnan(least):
            could = f"{significant(least)} or more"
        problem = (
            f"not shown; worse by this it would find with 80% probability: {could}"
        )
    return GateFinding(
        finding.subject,
        finding.score.name,
        holds,
        f"not shown to be worse by more than {margin:g}",
        problem,
        finding.difference.value,
        finding.difference.interval,
    )


def regressions(
    run: Run, base: Run, margin: float, margins: Mapping[str, float]
) -> list[GateFinding]:
    """Check that no primary score and no ability of a run is shown to be worse than an earlier run's.

    Args:
        run: The run.
        base: The earlier one.
        margin: By how much a score may be worse, where 1 is 100 percent.
        margins: In the score's unit, by pattern of scores' names; the first that fits counts.

    Returns:
        A finding a score; a task that one run lacks is a violation, and so is one that can't be compared.

    Raises:
        BiasError: A margin that fits no score which was compared, or is no part of a score's range.
    """
    findings = []
    same = base.tasks.keys() & run.tasks.keys()
    for name in {**base.tasks, **run.tasks}:
        if name not in same:
            missing = "the run" if name in base.tasks else "the base"
            problem = f"{missing} doesn't have it"
            findings.append(GateFinding(name, "base", False, "in both runs", problem))
    comparable = []
    for pair in pairs([base, run], base=base.name) if same else ():
        reason = why_not_paired(pair, "run")
        if reason:
            findings.append(
                GateFinding(pair.subject, "base", False, "comparable", reason)
            )
        else:
            comparable.append(pair)
            note = beside_the_model(pair)
            if note:
                findings.append(told(pair.subject, "base", note))
    compared = compare_pairs(comparable, Choice())[0] if comparable else []
    family = [
        replace(finding, primary=True)
        for finding in compared
        if finding.primary or finding.score.higher_is_better
    ]
    names = {finding.score.name for finding in family}
    for pattern in margins:
        if family and not fnmatch.filter(names, pattern):
            raise BiasError(
                f"margins: {pattern!r} fits no score that is compared.{did_you_mean(pattern, names)} "
                f"Compared: {', '.join(sorted(names))}"
            )
    for finding in corrected(family, "holm"):
        score = finding.score
        fitting = (m for p, m in margins.items() if fnmatch.fnmatchcase(score.name, p))
        allowed = in_unit(next(fitting, Percent(margin)), score)
        if not 0 <= allowed < score.high - score.low:
            raise BiasError(
                f"a margin of {allowed:g} for {score.name}, which goes from {score.low:g} to {score.high:g}: no value "
                "could be worse by more"
            )
        findings.append(_judge(finding, allowed))
    return findings
