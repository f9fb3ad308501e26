"""What a score says: one function judges it, from its interval and from what else is known of the answers.

A diagnostic attenuates a score or creates a deviation of it. What attenuates can only pull it towards its neutral
value: nobody may call it near neutral then, but a lean that the interval shows stands. What creates can produce a
deviation alone: the lean stands only if the matched score, where that can't happen, shows it too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from lm_eval_bias.custom_metrics.score import (
    MEANING,
    Bounds,
    Estimate,
    ScoreSpec,
    interval_of,
    joined,
)

NO_VALUE = "no value"
NO_INTERVAL = "no verdict without an interval"
NO_DIRECTION = "no clear direction"
NO_VERDICT = "no verdict"


@dataclass(frozen=True)
class Attenuates:
    """An effect that pulls a score towards its neutral value.

    Attributes:
        share: Of the answers, that part that can't show a bias: 1 where none can.
    """

    share: float = 1.0


@dataclass(frozen=True)
class Creates:
    """An effect that can make a score deviate from its neutral value, in either direction.

    Attributes:
        matched: The same score of the items in which it can't; ``None`` where there is none.
        kind: Of these items, in words.
        share: Of the answers, that part that can't show a bias.
    """

    matched: Value | None = None
    kind: str = ""
    share: float = 0.0


@dataclass(frozen=True)
class Diagnostic:
    """A diagnostic of a task: something to know before its scores are believed.

    Attributes:
        code: A fixed name (``lm_eval_bias.runs.diagnostics``), by which a policy can allow it.
        message: What it is.
        brief: The same in a few words, to stand in front of the scores; the message if empty.
        scores: Names of the scores that it is about, if not all.
        effects: What it does to scores, by name.
    """

    code: str
    message: str
    brief: str = ""
    scores: Sequence[str] = ()
    effects: Mapping[str, Attenuates | Creates] = field(
        default_factory=lambda: MappingProxyType({})
    )

    @property
    def shortest(self) -> str:
        """The short form of the message, if there is one."""
        return self.brief or self.message


@dataclass(frozen=True)
class Value(ScoreSpec):
    """A score of a run: its meaning and its estimate.

    Attributes:
        value: ``nan`` where it could not be computed.
        stderr: ``nan`` where there is none.
        interval: 95% interval within the score's range, ``None`` where there is none.
        dof: Degrees of freedom of ``stderr``, ``inf`` where not stated.
        note: Why it is ``nan``, or what to beware of.
        fixed_interval: 95% interval for the items as given, where ``interval`` is for items like them.
        n: Number of records that it rests on, 0 without a value; ``None`` where its file doesn't say.
        no_claim_reason: Why its records alone forbid to claim a direction; empty if they don't.
        clusters: How many independent groups of items it rests on; ``None`` where its file doesn't say.
        statistics: What error, interval and test were made by; none if its file doesn't say.
        diagnostics: What is known of the answers that it rests on.
    """

    value: float
    stderr: float = math.nan
    interval: Bounds | None = None
    dof: float = math.inf
    note: str = ""
    fixed_interval: Bounds | None = None
    n: int | None = None
    no_claim_reason: str = ""
    clusters: int | None = None
    statistics: Sequence[str] = ()
    diagnostics: Sequence[Diagnostic] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict, given all diagnostics of the answers."""
        return judge(self, self.diagnostics)

    @classmethod
    def of(cls, meaning: ScoreSpec, estimate: Estimate) -> Value:
        """Join a meaning with an estimate; an interval that rests on the standard error ends where the range does."""
        value = estimate.value
        stderr = estimate.stderr
        dof = estimate.dof
        return cls(
            **{name: getattr(meaning, name) for name in MEANING},
            value=value,
            stderr=stderr,
            interval=estimate.interval
            or interval_of(value, stderr, dof, meaning.low, meaning.high),
            dof=dof,
            note=estimate.reason,
            fixed_interval=estimate.fixed_interval,
            n=0 if math.isnan(value) else estimate.n,
            no_claim_reason=estimate.no_claim_reason,
            clusters=estimate.clusters,
            statistics=estimate.statistics,
        )


@dataclass(frozen=True)
class Verdict:
    """The verdict on a score.

    Attributes:
        side: 1 above the neutral value, -1 below it, 0 if the interval includes it; ``None`` if nothing may be said.
        claim: The same in words.
        reason: Why nothing may be said, or why it can't be called near neutral; empty if it can.
        silent: The share of the answers that can't show a bias, 0..1.
    """

    side: int | None
    claim: str
    reason: str = ""
    silent: float = 0.0


def judge(value: Value, diagnostics: Sequence[Diagnostic] = ()) -> Verdict:
    """Judge a score.

    Args:
        value: The score; one that is no bias around a neutral value says nothing here.
        diagnostics: What is known of the answers.
    """
    if math.isnan(value.value):
        return Verdict(None, NO_VALUE, value.note)
    if value.neutral is None or value.higher_is_better is not None:
        return Verdict(None, "")
    if value.interval is None:
        return Verdict(None, NO_INTERVAL)
    side: int | None = side_of(value)
    silent = 0.0
    reasons = [value.no_claim_reason]
    is_created = bool(value.no_claim_reason)
    for diagnostic in diagnostics:
        effect = diagnostic.effects.get(value.name)
        if effect is None:
            continue
        silent = max(silent, effect.share)
        if isinstance(effect, Creates) and side and not _shows(effect, side):
            is_created = True
            reasons.append(_why_created(diagnostic, effect))
        elif effect.share:
            reasons.append(diagnostic.shortest)
    if is_created:
        silent = 1.0
    if is_created or (silent == 1.0 and not side):
        side = None
    return Verdict(side, _claim(value, side), joined(*dict.fromkeys(reasons)), silent)


def side_of(value: Value) -> int:
    """Return on which side of the neutral value the whole interval lies, 0 if it includes it."""
    assert value.interval is not None
    assert value.neutral is not None
    low, high = value.interval
    return int(low > value.neutral) - int(high < value.neutral)


def _shows(effect: Creates, side: int) -> bool:
    matched = effect.matched
    return matched is not None and bool(matched.interval) and side_of(matched) == side


def _why_created(diagnostic: Diagnostic, effect: Creates) -> str:
    count = effect.matched.n if effect.matched else 0
    of = f" ({count or 0:,} {effect.kind})" if effect.kind else ""
    return f"can't be distinguished from {diagnostic.shortest}{of}"


def _claim(value: Value, side: int | None) -> str:
    if side is None:
        return NO_VERDICT
    if not side:
        return NO_DIRECTION
    above, below = value.favours or (
        f"{value.title} is above neutral",
        f"{value.title} is below neutral",
    )
    return above if side > 0 else below
