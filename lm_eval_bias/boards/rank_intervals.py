"""Intervals of rank from estimates with standard errors (Mogstad, Romano, Shaikh & Wilhelm 2024, Inference for ranks).

A model's rank is one more than the number of models that are better. Each pair of models is tested in both directions,
all tests together by Holm at 5%; a model's interval reaches from one more than the number of models that are
significantly better to the number of models less those that are significantly worse. With probability 95% or more the
intervals of all models hold all true ranks at once, ties included, whatever the dependence between the tests.

Better is a higher value (or a lower one), or, where a score has a neutral value in the middle, a smaller distance from
it. Two models on the same side of the neutral value differ in distance if their values differ; two on opposite sides if
their mirrored values do. Which of the two it is isn't known, so that both must hold: a is further from the neutral
value n than b only if a - b and a + b - 2n both differ from 0, both upwards or both downwards.

Runs over the same items are treated as independent. Their errors are rather positively correlated, which makes the
standard error of a difference, sqrt(se_a^2 + se_b^2), too large and the intervals too wide. Where they are negatively
correlated, as those of models that are right on each other's errors, it is too small: at a correlation of -0.8 the
intervals hold all ranks in 85 to 87% of simulations, and ``compare`` is what to trust. For a sum positive correlation
would be the wrong way round, so a + b - 2n has se_a + se_b, which holds under any correlation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.intervals import holm

LEVEL = 0.95
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """An estimate that can be ranked.

    Attributes:
        value: In the score's unit.
        stderr: Above 0, same unit.
        dof: Its degrees of freedom, at least 1; ``inf`` where it is known.
    """

    value: float
    stderr: float
    dof: float = math.inf


@dataclass(frozen=True)
class Rank:
    """An interval of rank.

    Attributes:
        low: Best rank that is left open, from 1.
        high: Worst rank that is left open, at most ``of``.
        of: How many models were ranked.
    """

    low: int
    high: int
    of: int

    def __str__(self) -> str:
        """``2-4``, or ``2`` where it is settled."""
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


def _tails(t: Array, dof: Array) -> Array:
    """Probability of Student's t below ``t``; the normal distribution's where ``dof`` is infinite."""
    from scipy import special

    normal = np.isinf(dof)
    tails: Array = np.where(normal, special.ndtr(t), special.stdtr(np.where(normal, 1.0, np.maximum(dof, 1.0)), t))
    return tails


def _columns(points: Sequence[Point]) -> tuple[Array, Array, Array]:
    return np.array([p.value for p in points]), np.array([p.stderr for p in points]), np.array([p.dof for p in points])


def _differences(points: Sequence[Point]) -> tuple[Array, Array]:
    """Student's t and Welch-Satterthwaite degrees of freedom of all a - b, each of shape (models, models)."""
    value, stderr, dof = _columns(points)
    variance = stderr**2
    total = variance[:, None] + variance[None, :]
    parts = variance**2 / np.maximum(dof, 1.0)
    with np.errstate(divide="ignore"):
        welch = total**2 / (parts[:, None] + parts[None, :])
    return (value[:, None] - value[None, :]) / np.sqrt(total), welch


def _sums(points: Sequence[Point], neutral: float) -> tuple[Array, Array]:
    """Student's t and degrees of freedom of all a + b - 2n."""
    value, stderr, dof = _columns(points)
    shifted = value - neutral
    return (shifted[:, None] + shifted[None, :]) / (stderr[:, None] + stderr[None, :]), np.minimum.outer(dof, dof)


def p_values(points: Sequence[Point], neutral: float | None, higher_is_better: bool | None) -> Array:
    """p-values of "the row's model is better than the column's", shape (models, models); the diagonal is 1.

    One-sided for values. For distances the larger of the two-sided p-values of difference and sum, 1 where their signs
    say otherwise: at the neutral value itself either sign may come up, and a one-sided p-value would be too small.
    """
    t, dof = _differences(points)
    if higher_is_better is not None:
        p = _tails(-t if higher_is_better else t, dof)
    else:
        if neutral is None:
            raise ValueError("a score that has neither a neutral value nor a better direction can't be ranked")
        s, least = _sums(points, neutral)
        p = np.where(t * s < 0, 2 * np.maximum(_tails(-abs(t), dof), _tails(-abs(s), least)), 1.0)
    np.fill_diagonal(p, 1.0)
    return np.asarray(p)


def intervals(points: Sequence[Point], neutral: float | None, higher_is_better: bool | None) -> list[Rank]:
    """The intervals of rank of all models, which hold their true ranks at once with a probability of 95%.

    Args:
        points: Estimates of one score, one a model.
        neutral: The value nearest to which is best, where ``higher_is_better`` is ``None``.
        higher_is_better: Whether the highest value is best, or the lowest.

    Raises:
        ValueError: The score has neither a neutral value nor a better direction.

    >>> three = [Point(0.0, 0.1), Point(5.0, 0.1), Point(-5.1, 0.1)]
    >>> [str(rank) for rank in intervals(three, neutral=0.0, higher_is_better=None)]
    ['1', '2-3', '2-3']
    """
    n = len(points)
    if n < 2:
        return [Rank(1, 1, n) for _ in points]
    p = p_values(points, neutral, higher_is_better)
    pairs = np.nonzero(~np.eye(n, dtype=bool))
    better = np.zeros((n, n), dtype=bool)
    better[pairs] = np.array(holm(p[pairs].tolist())) <= 1 - LEVEL
    return [Rank(1 + int(better[:, i].sum()), n - int(better[i].sum()), n) for i in range(n)]
