"""Runs compared, from the choice of pairs to tested differences: what ``compare`` and the Python interface share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lm_eval_bias.comparing import pairing
from lm_eval_bias.comparing.findings import Choice, Finding, find
from lm_eval_bias.comparing.pairing import LANGUAGE, Pair
from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.run_data import Run


@dataclass(frozen=True)
class Refusal:
    """Two sides that can't be compared.

    Attributes:
        pair: The sides.
        reason: Why not.
    """

    pair: Pair
    reason: str

    def __str__(self) -> str:
        return f"{self.pair.subject}: {self.pair.other.label} and {self.pair.base.label}: {self.reason}"


class Comparison(NamedTuple):
    """What comparing some runs gave.

    Attributes:
        findings: A difference per pair and score.
        pairs: What was compared with what.
        refused: Pairs that were left out.
    """

    findings: list[Finding]
    pairs: list[Pair]
    refused: list[Refusal]


def ways() -> list[str]:
    """By what runs can be compared."""
    return ["run", *pairing.conditions(), LANGUAGE]


def check(choice: Choice) -> None:
    """Refuse a choice that no runs allow, before any are read.

    Raises:
        BiasError: The first thing that is wrong.
    """
    if choice.scores and choice.all_scores:
        raise BiasError("--scores and --all_scores can't be combined: give one of them")


def compare(runs: Sequence[Run], choice: Choice, leave_out: bool = False) -> Comparison:
    """Compare runs.

    Args:
        runs: Runs with names that tell them apart.
        choice: What to compare and how.
        leave_out: Leave out and list pairs that can't be compared where others can.

    Raises:
        BiasError: Nothing to compare, a pair that can't be compared (unless it is left out), or an unknown score.
    """
    check(choice)
    pairs = pairing.pairs(runs, choice.by, choice.base)
    refused: list[Refusal] = []
    try:
        findings = find(pairs, choice)
    except BiasError:
        refused = _refusals(pairs, choice) if leave_out and not choice.unpaired else []
        if len(refused) in (0, len(pairs)):
            raise
        pairs = [pair for pair in pairs if all(pair is not one.pair for one in refused)]
        findings = find(pairs, choice)
    _refuse_unknown(pairs, findings, choice.scores)
    return Comparison(findings, pairs, refused)


def _refusals(pairs: Sequence[Pair], choice: Choice) -> list[Refusal]:
    """The pairs that can't be compared item by item."""
    refused = []
    for pair in pairs:
        logs = pair.base.task.samples and pair.other.task.samples
        if reason := pairing.why_not_paired(pair, choice.by) if logs else "no sample logs":
            refused.append(Refusal(pair, reason))
    return refused


def _refuse_unknown(pairs: Sequence[Pair], findings: Sequence[Finding], scores: Sequence[str]) -> None:
    """Refuse a name of a score that no compared task has.

    Raises:
        BiasError: The first such name.
    """
    sides = [side for pair in pairs for side in (pair.base, pair.other)]
    known = {s.name for side in sides for s in side.benchmark.scores() if s.table is not None}
    known |= {finding.score.name for finding in findings}
    if unknown := next((name for name in scores if name not in known), None):
        raise BiasError(f"--scores {unknown}: no task in these runs has this score.{did_you_mean(unknown, known)}")
