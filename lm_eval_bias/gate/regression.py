"""A run against an earlier one: is it shown to be worse?

In come two runs on the same items; out goes a finding for each primary score and each ability, by the paired test that
``compare`` uses, corrected for the number of all of them.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping
from dataclasses import replace

from lm_eval_bias.comparing import power
from lm_eval_bias.comparing.findings import Choice, Finding, compare_pairs, corrected
from lm_eval_bias.comparing.pairing import beside_the_model, pairs, why_not_paired
from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.run_data import Run
from lm_eval_bias.custom_metrics.differences import LEVEL
from lm_eval_bias.custom_metrics.intervals import holm
from lm_eval_bias.custom_metrics.score import ScoreSpec, t_factor
from lm_eval_bias.gate.policy_file import Percent, in_unit
from lm_eval_bias.gate.verdict import Change, GateFinding, information

WORSE, NOT_WORSE, NOT_SHOWN, NO_VALUE = ("worse", "not worse", "not shown", "no value")


def _judge(
    finding: Finding, margin: float, worse: float, outside: float, shown: bool
) -> GateFinding:
    """Judge a score: violated where it is shown to be worse by more than the margin, or has no value on both sides.

    Args:
        finding: The score on both sides.
        margin: By how much it may be worse, in its unit.
        worse: The corrected p-value of "it isn't further from neutral by more than the margin".
        outside: That of "it is".
        shown: Whether it has to be shown that it isn't.
    """
    difference = finding.difference
    problem = ""
    if math.isnan(difference.value) or finding.no_claim_reason:
        outcome = NO_VALUE
        problem = finding.verdict
    elif worse <= LEVEL and math.prod(moved for moved, _ in finding.moves()) > 0:
        outcome = WORSE
    else:
        outcome = NOT_WORSE if outside <= LEVEL else NOT_SHOWN
    change = Change(
        finding.base_value,
        difference.value,
        margin,
        outcome,
        math.nan if problem else minimum_detectable(finding, margin),
    )
    passes = outcome == NOT_WORSE or (outcome == NOT_SHOWN and not shown)
    return GateFinding(
        finding.subject,
        finding.score.name,
        passes,
        f"not worse than the base{f' by more than {margin:g}' if margin else ''}",
        problem,
        finding.other_value,
        difference.interval,
        change=change,
    )


def minimum_detectable(finding: Finding, margin: float) -> float:
    """Return the worsening that would be detected with 80% probability.

    Returns:
        The worsening, in the score's unit; ``nan`` where none that is possible would be found.
    """
    score = finding.score
    base = finding.base_value
    start = math.inf
    room = base - score.low if score.higher_is_better else score.high - base
    if score.higher_is_better is None:
        neutral = score.neutral or 0.0
        total = finding.difference.sum_value - finding.difference.value
        reach = t_factor(finding.difference.dof) * finding.difference.stderr
        start = abs(total - 2 * neutral)
        if start / 2 <= reach:  # it can't be told from neutral
            start = 0.0
        room = max(score.high - neutral, neutral - score.low) - abs(base - neutral)
    if room <= 0:
        return math.nan
    return power.smallest_worsening(
        finding.difference, finding.level, start, margin, room
    )


def regressions(
    run: Run,
    base: Run,
    margin: float,
    margins: Mapping[str, float],
    shown: bool = False,
) -> list[GateFinding]:
    """Check that no primary score and no ability of a run is shown to be worse than an earlier run's.

    Args:
        run: The run.
        base: The earlier one.
        margin: By how much a score may be worse, where 1 is 100 percent.
        margins: In the score's unit, by pattern of scores' names; the first that fits counts.
        shown: Whether what isn't shown to be within its margin is a violation, too.

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
                findings.append(information(pair.subject, "base", note))
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
    family = corrected(family)
    allowed = [_margin(finding.score, margin, margins) for finding in family]
    both = list(zip(family, allowed, strict=True))
    worse = holm([finding.p_further(most) for finding, most in both])
    outside = holm([finding.p_not_within(most) for finding, most in both])
    for finding, most, p_worse, p_not_within in zip(
        family, allowed, worse, outside, strict=True
    ):
        findings.append(_judge(finding, most, p_worse, p_not_within, shown))
    return findings


def _margin(score: ScoreSpec, margin: float, margins: Mapping[str, float]) -> float:
    """Return by how much a score may be worse, in its unit.

    Raises:
        BiasError: No value could be worse by more.
    """
    fitting = (m for p, m in margins.items() if fnmatch.fnmatchcase(score.name, p))
    allowed = in_unit(next(fitting, Percent(margin)), score)
    room = score.high - score.low
    if score.neutral is not None:  # of an ability it is one of the ends
        room = max(score.high - score.neutral, score.neutral - score.low)
    if not 0 <= allowed < room:
        raise BiasError(
            f"a margin of {allowed:g} for {score.name}, which can be worse by at most {room:g}: it would never be "
            "violated"
        )
    return allowed
