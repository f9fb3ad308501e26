"""Differences of scores between two sides, corrected for how many were looked at, and what each says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lm_eval_bias.comparing import power
from lm_eval_bias.comparing.pairing import (
    Pair,
    beside_the_model,
    conditions,
    why_not_paired,
)
from lm_eval_bias.comparing.pairing import pairs as make_pairs
from lm_eval_bias.core import catalog
from lm_eval_bias.core.benchmark import LANGUAGE, Benchmark
from lm_eval_bias.core.errors import BiasError, check_scores
from lm_eval_bias.core.files import progress
from lm_eval_bias.core.numbers import join_some
from lm_eval_bias.core.run_data import Problem, Run, Value
from lm_eval_bias.custom_metrics.differences import LEVEL, Difference, paired
from lm_eval_bias.custom_metrics.differences import unpaired as independent
from lm_eval_bias.custom_metrics.intervals import holm, student_p
from lm_eval_bias.custom_metrics.score import (
    Design,
    Score,
    ScoreSpec,
    Undefined,
    joined,
)
from lm_eval_bias.runs import answer_files

BETTER, WORSE, NOT_SHOWN = "better", "worse", "not shown"


@dataclass(frozen=True)
class Finding:
    """The comparison of one score between two sides.

    Attributes:
        subject: What was compared: a task, or a group of tasks.
        base: Label of the base.
        other: Label of what is compared with it.
        score: The score.
        base_value: The base's.
        other_value: The other's.
        difference: Other minus base.
        adjusted: ``difference.p`` corrected for all tests of its family.
        paired: Whether both sides answered the same items.
        items: How many items the score rests on, of those that both sides share, or of the base's where they are not
            paired; ``None`` where that isn't known.
        definition: The benchmark or variant that the score belongs to.
        note: What to beware of.
        level: At which this one test has to reject if it is to do so alone after correction: ``LEVEL`` over the number
            of tests (the first step of Holm).
        primary: Whether it is in the family that is tested first: scores that the suites' file lists.
        no_claim_reason: Why nobody may claim a difference, which isn't tested then; empty if one may.
        further: The corrected p-value of "one side is further from neutral, or of lower ability".
    """

    subject: str
    base: str
    other: str
    score: ScoreSpec
    base_value: float
    other_value: float
    difference: Difference
    adjusted: float
    paired: bool
    items: int | None
    definition: Benchmark
    note: str = ""
    level: float = LEVEL
    primary: bool = False
    no_claim_reason: str = ""
    further: float = math.nan

    @property
    def significant(self) -> bool:
        """Whether the difference is significant."""
        return self.adjusted <= LEVEL

    @property
    def minimum_detectable(self) -> float:
        """The minimum detectable effect; ``nan`` where it exceeds the score's range."""
        return power.smallest_difference(self.difference, self.level, self._room)

    @property
    def _room(self) -> float:
        """The largest possible distance of another value from the base's."""
        return max(self.score.high - self.base_value, self.base_value - self.score.low)

    @property
    def outcome(self) -> str:
        """Whether ``other`` is shown to be better or worse (worse: further from neutral, or of lower ability)."""
        if not (self.significant and self.further <= LEVEL):
            return NOT_SHOWN
        return WORSE if math.prod(moved for moved, _ in self.moves()) > 0 else BETTER

    def moves(self) -> list[tuple[float, float]]:
        """List the quantities that must differ from 0 if one side is worse, each with its standard error.

        ``other`` is worse where their product is positive: by a change of an ability; or by a change of value away from
        neutral, where of two values on different sides of neutral the sum tells which one is further away. Empty where
        a score has neither.
        """
        d = self.difference
        if self.score.higher_is_better is not None:
            fall = -d.value if self.score.higher_is_better else d.value
            return [(fall, d.stderr)]
        if self.score.neutral is None:
            return []
        total = d.sum_value - 2 * self.score.neutral
        return [(d.value, d.stderr), (total, d.sum_stderr)]

    def p_further(self, margin: float = 0.0) -> float:
        """Return the two-sided p-value of "neither side is further from neutral by more than a margin".

        Difference and sum must both exceed it. ``nan`` where nothing may be claimed, or there is no test.
        """
        moves = self.moves()
        if not moves or math.isnan(self.difference.p):
            return math.nan
        return max(self._p(abs(moved) - margin, stderr) for moved, stderr in moves)

    def p_not_within(self, margin: float) -> float:
        """Return the p-value of "``other`` is further from neutral by more than a margin" (non-inferiority).

        With the base on one side of neutral, the change of distance is the difference or the mirrored value less the
        base's, whichever is larger: both must stay below the margin.
        """
        moves = self.moves()
        if not moves or math.isnan(self.difference.p):
            return math.nan
        ups = moves
        if len(moves) > 1:
            (moved, stderr), (total, sum_stderr) = moves
            side = 1.0 if total >= moved else -1.0  # of the base: (total - moved) / 2
            ups = [(side * moved, stderr), (-side * total, sum_stderr)]
        return max(self._p(margin - up, stderr) for up, stderr in ups)

    def _p(self, beyond: float, stderr: float) -> float:
        """Return Student's p-value, two-sided as of an interval, of a distance that has to be above 0."""
        if beyond <= 0 or math.isnan(stderr):
            return 1.0
        return student_p(beyond, stderr, max(self.difference.dof, 1.0))

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        d = self.difference
        if self.no_claim_reason:
            return f"no verdict: {self.no_claim_reason}"
        if math.isnan(self.adjusted):
            return d.reason or self.note or "cannot be tested"
        if not self.significant:
            return f"no significant difference{f': {d.reason}' if d.reason else ''}"
        if self.outcome == NOT_SHOWN:
            higher = f"higher with {self.other if d.value > 0 else self.base}"
            if self.score.neutral is None:
                return higher
            return f"{higher}; which one is further from neutral is uncertain"
        better = self.other
        worse = self.base
        if self.outcome == WORSE:
            better, worse = worse, better
        if self.score.higher_is_better is not None:
            return f"better with {better}"
        return f"further from neutral with {worse}"


Compared = tuple[float, float, Difference, int | None]


def _unpaired(pair: Pair, score: ScoreSpec) -> Compared:
    """Return both values, their difference as independent runs, and the number of the base's items."""
    absent = Value(score.name, math.nan)
    base = pair.base.task.scores.get(score.name, absent)
    other = pair.other.task.scores.get(score.name, absent)
    if absent in (base, other):
        reason = f"{score.name} is not in both result files"
        difference = Difference(math.nan, reason=reason)
    else:
        difference = independent(
            (other.value, other.stderr, other.dof), (base.value, base.stderr, base.dof)
        )
        difference = replace(difference, clusters=base.clusters)
    return base.value, other.value, difference, base.n


def _paired(pair: Pair, score: Score) -> Compared:
    """Return both values over the shared items, their paired difference, and the number of items."""
    if score.design is None:
        raise BiasError(
            f"{score.name} can't be compared item by item: choose another score"
        )
    designs: list[Design] = []
    values = []
    reasons = []
    for side, records in zip((pair.base, pair.other), pair.records, strict=True):
        try:
            designs.append(score.design(records))
            values.append(designs[-1].value)
        except Undefined as error:
            values.append(math.nan)
            reasons.append(f"{side.label}: {error}")
    items: int | None = 0
    if not reasons:
        items = designs[0].estimate().n
        try:
            return values[0], values[1], paired(designs[1], designs[0]), items
        except ValueError as error:
            reasons.append(str(error))
    return values[0], values[1], Difference(math.nan, reason=reasons[0]), items


def _no_claim_reason(pair: Pair, score: ScoreSpec) -> str:
    """Explain why no difference of a score may be claimed; empty if it may.

    What attenuates the score of the side that is further from neutral takes nothing away: it would be further still. Of
    the nearer side, the answers that can show a bias have to be nearer, too.
    """
    sides = []
    for side in (pair.base, pair.other):
        value = side.task.scores.get(score.name)
        if value is None or value.neutral is None or value.higher_is_better is not None:
            return ""
        if not math.isnan(value.value):
            distance = abs(value.value - value.neutral)
            sides.append((distance, side.label, value.verdict))
    if len(sides) < 2:
        return ""
    nearer, further = sorted(sides, key=lambda side: side[0])
    reasons = {}
    for _, label, verdict in (nearer, further):
        if verdict.side is None and verdict.reason:
            reasons[label] = verdict.reason
    _, label, verdict = nearer
    if verdict.reason and nearer[0] >= (1 - verdict.silent) * further[0]:
        reasons[label] = verdict.reason
    if len(set(reasons.values())) == 1 < len(reasons):
        return next(iter(reasons.values()))
    return joined(*(f"{label}: {why}" for label, why in reasons.items()))


def _finding(
    pair: Pair,
    score: ScoreSpec,
    compared: Compared,
    paired: bool,
    note: str,
    primary: bool,
) -> Finding:
    """Make a finding, whose p-value isn't corrected yet."""
    base, other, difference, items = compared
    difference = replace(difference, span=score.high - score.low)
    no_claim_reason = _no_claim_reason(pair, score)
    if no_claim_reason:
        difference = replace(difference, p=math.nan)
    return Finding(
        pair.subject,
        pair.base.label,
        pair.other.label,
        score,
        base,
        other,
        difference,
        math.nan,
        paired,
        items,
        pair.base.task.definition,
        note,
        primary=primary,
        no_claim_reason=no_claim_reason,
    )


class Choice(NamedTuple):
    """Options of a comparison; see :func:`compare`.

    Attributes:
        by: One of :func:`axes`.
        base: What the others are compared with; ``None`` for the default (:func:`.pairing.pairs`).
        scores: Names of scores; each benchmark's main ones if empty.
        unpaired: Compare as independent what shares no items, seeds or versions.
    """

    by: str = "run"
    base: str | None = None
    scores: Sequence[str] = ()
    unpaired: bool = False


@dataclass(frozen=True)
class NotCompared:
    """A task or scores that were not compared.

    Attributes:
        subject: A task, or a group of tasks.
        base: Label of the base.
        other: Label of what would be compared with it.
        reason: Why not.
    """

    subject: str
    base: str
    other: str
    reason: str

    def __str__(self) -> str:
        sides = f"{self.other} and {self.base}: " if self.base else ""
        return f"{self.subject}: {sides}{self.reason}"


Comparison = tuple[list[Finding], list[NotCompared]]


def _not_compared(pair: Pair, reason: str) -> NotCompared:
    return NotCompared(pair.subject, pair.base.label, pair.other.label, reason)


def not_chosen(problems: Iterable[Problem]) -> list[NotCompared]:
    """List the tasks that were not selected, once for all runs."""
    reasons = dict.fromkeys(one.reason for one in problems if one.is_choice)
    return [NotCompared("other tasks", "", "", reason) for reason in reasons]


def _is_independent(pair: Pair, choice: Choice) -> bool:
    """Return whether sides without shared items may be compared as independent samples."""
    in_languages = choice.by == LANGUAGE and pair.is_logged and not pair.shared
    return choice.unpaired or in_languages


def _chosen(pair: Pair, defined: Mapping[str, Score], choice: Choice) -> list[Score]:
    """Choose the scores to compare: the named ones, else the main ones that aren't derived from others, else all."""
    if choice.scores:
        return [defined[name] for name in choice.scores if name in defined]
    benchmark: Benchmark = pair.base.task.definition
    names = list(benchmark.main)
    if choice.by == LANGUAGE:
        names = list(benchmark.presentation.across_languages) or names
    if choice.by in conditions():
        names += benchmark.presentation.beside_main
    main = [defined[name] for name in names if name in defined]
    return [score for score in main if not score.derived] or [
        score for score in defined.values() if score.design
    ]


def _note(pair: Pair, choice: Choice, reason: str) -> str:
    """Return the warnings about a pair's comparison."""
    note = f"unpaired: {reason}"
    if not reason:
        most = max(len(pair.base.records), len(pair.other.records))
        unmatched = most - len(pair.shared)
        note = f"{unmatched:,} unmatched items left out" if unmatched else ""
    sides = (pair.base, pair.other)
    warnings = [side.task.warning() for side in sides]
    if warnings[0] != warnings[1]:
        warnings = [
            warning and f"{side.label}: {warning}"
            for side, warning in zip(sides, warnings, strict=True)
        ]
    return joined(note, beside_the_model(pair, choice.by), *dict.fromkeys(warnings))


def _of_pair(
    pair: Pair, scores: Sequence[Score], choice: Choice, reason: str
) -> Iterator[Finding]:
    """Yield one finding per score, with uncorrected p-values; ``reason`` says why the sides are independent."""
    note = _note(pair, choice, reason)
    benchmark: Benchmark = pair.base.task.definition
    primary = catalog.primary(pair.base.task.task, benchmark)
    if choice.by == LANGUAGE:
        primary = benchmark.presentation.across_languages[:1] or primary
    for score in scores:
        compared = _unpaired(pair, score) if reason else _paired(pair, score)
        is_primary = score.name in primary and not choice.scores
        yield _finding(pair, score, compared, not reason, note, is_primary)


def _of_single_sides(pair: Pair, compared: set[str]) -> Iterator[NotCompared]:
    """Yield the scores that only one side has."""
    sides = (pair.base, pair.other)
    for side, beside in (sides, sides[::-1]):
        shared = {*compared, *beside.task.scores}
        names = [name for name in side.task.scores if name not in shared]
        if names:
            yield _not_compared(pair, f"only {side.label} has {', '.join(names)}")


def compare_pairs(pairs: Sequence[Pair], choice: Choice) -> Comparison:
    """Compare all pairs.

    Args:
        pairs: What with what, as ``choice.by`` and ``choice.base`` made them.
        choice: What to compare and how.

    Returns:
        A difference per pair and score, and what was not compared: pairs that can't be where others can, scores of one
        side alone.

    Raises:
        BiasError: No sides that can be paired, unless they may be compared unpaired; an unknown score; nothing to
            compare.
    """
    findings: list[Finding] = []
    refused = []
    single: list[NotCompared] = []
    known: set[str] = set()
    for pair in progress(pairs, "Comparing"):
        reason = why_not_paired(pair, choice.by)
        if reason and not _is_independent(pair, choice):
            refused.append(_not_compared(pair, reason))
            pair.forget()
            continue
        known_by = (pair.base.known or pair.other.known) if reason else pair.records[0]
        with answer_files.scored(pair.base.task):
            scores = pair.base.task.definition.scores(known_by)
        defined = {score.name: score for score in scores}
        known.update(defined)
        chosen = _chosen(pair, defined, choice)
        bare = [score.name for score in chosen if score.design is None]
        if bare and not (reason or choice.scores):
            chosen = [score for score in chosen if score.design]
            text = f"{join_some(bare)}: without a design no score can be compared item by item"
            single.append(_not_compared(pair, text))
        with answer_files.scored(pair.base.task), answer_files.scored(pair.other.task):
            findings += _of_pair(pair, chosen, choice, reason)
        if not choice.scores:
            single += _of_single_sides(
                pair, {score.name for score in chosen} | set(bare)
            )
        pair.forget()
    if refused and not findings:
        first = refused[0]
        raise BiasError(
            f"{first.subject}: {first.base} and {first.other} can't be compared item by item: {first.reason}; "
            "--unpaired compares them as independent runs"
        )
    check_scores(choice.scores, known)
    if not findings:
        reasons = join_some({str(each): None for each in single}, 3)
        raise BiasError(f"no score to compare{reasons and f' ({reasons})'}")
    made = corrected(findings)
    return made, refused + single


def corrected(findings: Sequence[Finding]) -> list[Finding]:
    """Correct the p-values of each family for its number of tests (Holm): of the primary scores, then of all others."""
    done = list(findings)
    for primary in (True, False):
        places = [i for i, f in enumerate(findings) if f.primary == primary]
        tests = [findings[i].difference.p for i in places]
        level = LEVEL / max(sum(not math.isnan(p) for p in tests), 1)
        further = holm([findings[i].p_further() for i in places])
        for i, p, q in zip(places, holm(tests), further, strict=True):
            done[i] = replace(findings[i], adjusted=p, further=q, level=level)
    return done


def axes() -> list[str]:
    """List the values of ``--by``."""
    return ["run", *conditions(), LANGUAGE]


def _in_one_run(pairs: Sequence[Pair], runs: Sequence[Run]) -> Iterator[NotCompared]:
    """Yield the tasks that only the base or only the other run has."""
    base = pairs[0].base.run
    for run in runs:
        for owner, beside in ((base, run), (run, base)):
            for task in owner.tasks:
                if task not in beside.tasks:
                    reason = f"only {owner.name} has this task"
                    yield NotCompared(task, base.name, run.name, reason)


def compare(runs: Sequence[Run], choice: Choice) -> Comparison:
    """Compare runs, which have names that distinguish them, as :func:`compare_pairs` compares pairs."""
    pairs = make_pairs(runs, choice.by, choice.base)
    findings, left_out = compare_pairs(pairs, choice)
    if choice.by == "run":
        left_out += _in_one_run(pairs, runs)
    return findings, left_out
