"""Rank correlations of few pairs: exact p-values, and intervals on the scale of Fisher's z."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.designs import Array
from lm_eval_bias.custom_metrics.resampling import LEVEL, student_p
from lm_eval_bias.custom_metrics.score import t_factor

LEAST = 4  # pairs: of three, every third order at random is the same or the reverse
EXACT = 9  # pairs up to which all orders are gone through
KINDS = ("spearman", "kendall")
PERMUTED = "exact: all orders"
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class RankCorrelation:
    """A rank correlation with its uncertainty.

    Attributes:
        value: -1..1, ``nan`` where it cannot be computed.
        n: Number of pairs.
        interval: 95%; ``None`` where there is none.
        p: Two-sided p-value of no correlation; ``nan`` where ``value`` is.
        test: How ``p`` came about.
        reason: Why something is missing.
    """

    value: float
    n: int
    interval: tuple[float, float] | None = None
    p: float = math.nan
    test: str = ""
    reason: str = ""


def rank_correlation(
    x: Sequence[float], y: Sequence[float], kind: str = "spearman", pairs: str = "pairs"
) -> RankCorrelation:
    """Spearman's rho or Kendall's tau-b of paired values.

    Range: -1..1. Neutral value: 0. Direction: + both rise together. Undefined: fewer than four pairs, or all values of
    one side the same -> nan. Denominator: all pairs; ties have their mean rank (rho) or count in neither direction
    (tau-b).
    P-value: of up to nine pairs the share of all orders whose correlation is as far from 0, ties as they are; of more,
    Student's t with n - 2 degrees of freedom (rho) or the normal distribution of tau's numerator (tau-b).
    Interval: ``tanh(atanh(r) +- 1.96 s)``, with ``s^2 = (1 + r^2 / 2) / (n - 3)`` for rho and ``0.437 / (n - 4)`` for
    tau; none where the orders are the same or reversed, of which z has no end.
    Source: Bonett & Wright (2000), Sample size requirements for estimating Pearson, Kendall and Spearman correlations;
    the tau interval after Fieller, Hartley & Pearson (1957).

    Args:
        x: One side.
        y: The other.
        kind: ``spearman`` or ``kendall``.
        pairs: What the pairs are, for reasons.

    >>> found = rank_correlation([1, 2, 3, 4, 5], [2, 1, 3, 4, 5])
    >>> round(found.value, 12), round(found.p * 120)
    (0.9, 10)
    """
    from scipy import stats

    a, b, n = np.asarray(x, dtype=float), np.asarray(y, dtype=float), len(x)
    if n < LEAST:
        return RankCorrelation(math.nan, n, reason=f"a rank correlation needs at least {LEAST} {pairs}, there are {n}")
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return RankCorrelation(math.nan, n, reason=f"all {pairs} have the same value on one side")
    spearman = kind == "spearman"
    first, second = stats.rankdata(a), stats.rankdata(b)
    value = _rho(first, second) if spearman else float(stats.kendalltau(a, b).statistic)
    value = min(1.0, max(-1.0, value))
    if n <= EXACT:
        p, test = _exact_p(tuple(first), tuple(second), kind), PERMUTED
    elif spearman:
        stderr = math.sqrt((1 - value**2) / (n - 2))
        p, test = student_p(value, stderr, n - 2) if stderr else 0.0, "Student's t"
    else:
        p, test = float(stats.kendalltau(a, b, method="asymptotic").pvalue), "normal"
    if abs(value) > 1 - _TOLERANCE:
        reason = f"all {pairs} have the same order on both sides, or in reverse: no interval"
        return RankCorrelation(math.copysign(1.0, value), n, None, p, test, reason)
    if not spearman and n <= LEAST:
        return RankCorrelation(
            value, n, None, p, test, f"Kendall's interval needs at least {LEAST + 1} {pairs}, there are {n}"
        )
    variance = (1 + value**2 / 2) / (n - 3) if spearman else 0.437 / (n - 4)
    z, half = math.atanh(value), t_factor(math.inf) * math.sqrt(variance)
    return RankCorrelation(value, n, (math.tanh(z - half), math.tanh(z + half)), p, test)


def _rho(first: Array, second: Array) -> float:
    x, y = first - first.mean(), second - second.mean()
    return float(x @ y) / math.sqrt(float(x @ x) * float(y @ y))


@lru_cache(maxsize=2)
def _orders(n: int) -> NDArray[np.intp]:
    return np.array(list(itertools.permutations(range(n))))


def _numerators(first: Array, second: Array, kind: str) -> Array:
    """What of the correlation changes with the order of the second side, for all orders; the given one is the first."""
    orders = _orders(len(first))
    if kind == "spearman":
        return (second - second.mean())[orders] @ (first - first.mean())
    own, signs = (np.sign(side[:, None] - side).astype(np.int8) for side in (first, second))
    total = np.zeros(len(orders), dtype=np.int8)
    for i, j in itertools.combinations(range(len(first)), 2):
        total += own[i, j] * signs[orders[:, i], orders[:, j]]
    return total.astype(np.float64)


@lru_cache(maxsize=1024)
def _exact_p(first: tuple[float, ...], second: tuple[float, ...], kind: str) -> float:
    numerators = np.abs(_numerators(np.array(first), np.array(second), kind))
    return float((numerators >= numerators[0] - _TOLERANCE).mean())


@lru_cache(maxsize=64)
def least_significant(n: int, kind: str = "spearman", level: float = LEVEL) -> float:
    """The smallest correlation of n pairs without ties that is told from 0 at that level; ``nan`` where none can be.

    >>> least_significant(4), least_significant(5), round(least_significant(6), 3)
    (nan, 1.0, 0.886)
    """
    if n < LEAST:
        return math.nan
    if n > EXACT:
        if kind == "kendall":
            return t_factor(math.inf, 1 - level) * math.sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)))
        t = t_factor(n - 2, 1 - level)
        return t / math.sqrt(t**2 + n - 2)
    ranks = np.arange(n, dtype=float)
    sizes = np.abs(_numerators(ranks, ranks, kind))
    values, counts = np.unique(np.round(sizes / sizes[0], 9), return_counts=True)
    p = counts[::-1].cumsum()[::-1] / len(sizes)
    enough = values[p <= level]
    return float(enough[0]) if len(enough) else math.nan
