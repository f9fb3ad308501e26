"""Intervals of rank from estimates with standard errors (Mogstad, Romano, Shaikh & Wilhelm 2024, Inference for ranks).

A model's rank is one more than the number of models that are better. Each pair of models is tested in both directions,
all tests together by Holm at 5%; a model's interval reaches from one more than the number of models that are
significantly better to the number of models less those that are significantly worse. With probability 95% or more the
intervals of all models hold all true ranks at once, ties included, whatever the dependence between the tests.

Better is a higher value (or a lower one), or, where a score has a neutral value in the middle, a smaller distance from
it. Two models on the same side of the neutral value differ in distance if their values differ; two on opposite sides if
their mirrored values do. Which of the two it is isn't known, so that both must hold: a is further from the neutral
value n than b only if a - b and a + b - 2n both differ from 0, both upwards or both downwards.

Where both models' answers to the same items are there, a - b and a + b - 2n have the standard errors that ``compare``
computes. Otherwise the models' errors are treated as independent: a - b has sqrt(se_a^2 + se_b^2), which is too large
where errors are positively correlated, as they rather are, and too small where they are negatively correlated (at -0.8
the intervals hold all ranks in 85 to 87% of simulations). a + b - 2n has se_a + se_b, which holds for any correlation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lm_eval_bias.custom_metrics.differences import Design, pairwise
from lm_eval_bias.custom_metrics.intervals import Array, holm, tails

LEVEL = 0.95


@dataclass(frozen=True)
class Point:
    """An estimate that can be ranked.

    Attributes:
        value: In the score's unit.
        stderr: Above 0, same unit.
        dof: Its degrees of freedom, at least 1; ``inf`` where it is known.
        design: The score as a function of the items' answers; ``None`` where these aren't there.
        silent: The share of the answers that can't show a bias, 0..1: the others have to be nearer, too.
    """

    value: float
    stderr: float
    dof: float = math.inf
    design: Design | None = field(default=None, compare=False)
    silent: float = 0.0


@dataclass(frozen=True)
class Rank:
    """An interval of rank.

    Attributes:
        low: Best rank that is left open, from 1.
        high: Worst rank that is left open, at most ``of``.
        of: How many models were ranked.
        apart: From how many of them it was told as if the two errors were independent.
        more: How many times the items, where these tell no two models apart, tell two of them; ``inf`` where none do.
    """

    low: int
    high: int
    of: int
    apart: int = field(default=0, compare=False)
    more: float = field(default=1.0, compare=False)

    @property
    def tells_none(self) -> bool:
        """Whether the items tell no two of the models apart."""
        return self.more > 1

    def __str__(self) -> str:
        """Write ``2–4``, or ``2`` where it is settled."""
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"


def p_values(
    points: Sequence[Point],
    neutral: float | None,
    higher_is_better: bool | None,
    pairs: Array,
) -> Array:
    """Return p-values of "the row's model is better than the column's", shape (models, models); the diagonal is 1.

    One-sided for values. For distances the larger of the two-sided p-values of difference and sum, 1 where their signs
    say otherwise: at the neutral value itself either sign may come up, and a one-sided p-value would be too small.
    ``pairs`` (:func:`.pairwise`) have an error of their own; all others treat the two errors as independent, by
    Welch's t.
    """
    value, stderr, dof = np.array([(p.value, p.stderr, p.dof) for p in points]).T
    variance = stderr**2
    middle = neutral or 0.0
    total = np.add.outer(variance, variance)
    parts = variance**2 / np.maximum(dof, 1.0)
    with np.errstate(divide="ignore"):
        welch = total**2 / np.add.outer(parts, parts)
    t = np.subtract.outer(value, value) / np.sqrt(total)
    if higher_is_better is not None:
        p = tails(-t if higher_is_better else t, welch)
    else:
        shifted = value - middle
        s = np.add.outer(shifted, shifted) / np.add.outer(stderr, stderr)
        sum_tails = tails(-abs(s), np.minimum.outer(dof, dof))
        p = np.where(t * s < 0, 2 * np.maximum(tails(-abs(t), welch), sum_tails), 1.0)
    difference, of_pair, sums, sum_stderr, pair_dof = pairs
    if higher_is_better is not None:
        better = (difference > 0) == higher_is_better
        own = np.where(better, of_pair / 2, 1 - of_pair / 2)
    else:
        mirrored = sums - 2 * middle
        p_of_sum = 2 * tails(-abs(mirrored) / sum_stderr, pair_dof)
        # the sum of the same answers may have no error
        own = np.where(difference * mirrored <= 0, np.fmax(of_pair, p_of_sum), 1.0)
    p = np.where(np.isnan(of_pair), p, own)
    np.fill_diagonal(p, 1.0)
    return np.asarray(p)


def times(p: float, level: float, sides: int) -> float:
    """Return the factor of items at which a p-value reaches a level, with the same difference.

    >>> round(times(0.05, 0.05 / 462, 2), 2), times(1.0, 0.05, 2)
    (3.9, inf)
    """
    from scipy import special

    reached, needed = -special.ndtri(np.array([p, level]) / sides)
    return float((needed / reached) ** 2) if reached > 0 else math.inf


def intervals(
    points: Sequence[Point], neutral: float | None, higher_is_better: bool | None
) -> list[Rank]:
    """Return an interval of rank per model; together they hold all true ranks with 95% probability.

    Args:
        points: Estimates of one score, one a model.
        neutral: The value nearest to which is best, where ``higher_is_better`` is ``None``.
        higher_is_better: Whether the highest value is best, or the lowest.

    >>> three = [Point(0.0, 0.1), Point(5.0, 0.1), Point(-5.1, 0.1)]
    >>> [str(rank) for rank in intervals(three, neutral=0.0, higher_is_better=None)]
    ['1', '2–3', '2–3']
    """
    n = len(points)
    compared = pairwise([point.design for point in points])
    if higher_is_better is None:
        # distances are told apart by both the difference and the sum
        difference, _, _, sum_stderr, _ = compared
        compared[:, ~((difference == 0) | (sum_stderr > 0))] = math.nan
    p = p_values(points, neutral, higher_is_better, compared)
    pairs = np.nonzero(~np.eye(n, dtype=bool))
    together = (~np.isnan(compared[1])).sum(axis=0)
    better = np.zeros((n, n), dtype=bool)
    better[pairs] = np.array(holm(p[pairs].tolist())) <= 1 - LEVEL
    if higher_is_better is None:
        distance = abs(np.array([point.value for point in points]) - (neutral or 0.0))
        room = 1 - np.array([point.silent for point in points])
        better &= distance[:, None] <= np.outer(room, distance)
    more = 1.0
    if n > 1 and not better.any():
        sides = 2 if higher_is_better is None else 1
        more = times(p[pairs].min(), (1 - LEVEL) / len(pairs[0]), sides)
    return [
        Rank(
            1 + int(better[:, i].sum()),
            n - int(better[i].sum()),
            n,
            n - 1 - int(together[i]),
            more,
        )
        for i in range(n)
    ]
