"""Intervals and tests that are closed formulas: Wilson, Fisher's z, chi-square with Cramér's V, Holm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.score import ROUNDING, Bounds, t_factor

SEED = 20230823
PERMUTATIONS = 9999
ALMOST_PERFECT = 0.9999  # a correlation
FEW_FOR_KURTOSIS = 8  # values
Array = NDArray[Any]
Table = tuple[tuple[int, ...], ...]


def wilson(hits: float, total: float, dof: float = math.inf) -> Bounds:
    """Return the 95% Wilson interval of a share.

    Args:
        hits: Number of hits, perhaps an effective one.
        total: Of how many.
        dof: Degrees of freedom of what it rests on.

    >>> [round(end, 4) for end in wilson(0, 10)]
    [0.0, 0.2775]
    """
    share = hits / total
    square = t_factor(dof) ** 2 / total
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    # the share lies within, whatever is rounded
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def wilson_of(p: float, stderr: float, dof: float, most: float = math.inf) -> Bounds:
    """Return a share's Wilson interval with the effective sample size of its standard error, at most ``most``."""
    size = min(most, p * (1 - p) / stderr**2)
    return wilson(p * size, size, dof)


def score_interval(
    difference: float, differing: float, n: float, dof: float = math.inf
) -> Bounds:
    """Return the 95% score interval of a difference of two shares of the same observations.

    All differences that a score test doesn't reject. It knows that a difference can't vary by more than the share of
    observations in which the two differ, as Wilson's interval knows the ends of a share: that is its case where all
    differences go one way.

    Source: Tango (1998), Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design.

    Args:
        difference: First share minus second one, -1..1.
        differing: Share of the observations that are hits of one and not of the other, from ``|difference|`` to 1.
        n: Number of observations, perhaps an effective one.
        dof: Degrees of freedom of what it rests on.

    >>> [round(end, 3) for end in score_interval(0.0, 0.0, 21)]
    [-0.155, 0.155]
    >>> [round(end, 3) for end in score_interval(0.1, 0.3, 100)]
    [-0.008, 0.208]
    """
    from scipy import optimize

    reach = t_factor(dof) / math.sqrt(n)
    against = (differing - difference) / 2

    def excess(candidate: float, sign: float) -> float:
        """Return the margin by which the test of a candidate doesn't reject."""
        # the likeliest share of the hits of the second alone, if the candidate is true
        linear = (2 - difference) * candidate - differing
        root = linear**2 + 8 * against * candidate * (1 - candidate)
        second = max(0.0, (math.sqrt(max(0.0, root)) - linear) / 4)
        variance = max(0.0, 2 * second + candidate * (1 - candidate))
        return reach * math.sqrt(variance) - sign * (difference - candidate)

    ends = []
    for sign in (1.0, -1.0):
        end = -sign
        # a difference is never rejected itself, even where nothing varies
        beside = difference - sign * ROUNDING
        if excess(end, sign) < 0 < excess(beside, sign):
            end = float(optimize.brentq(excess, end, beside, args=(sign,)))
        ends.append(end)
    return min(ends[0], difference), max(ends[1], difference)


def skewed_dof(
    deviations: Array, dof: float, sizes: Array, known: float = 0.0, fixed: float = 0.0
) -> float:
    """Return the degrees of freedom of a variance, adjusted for skewness and kurtosis.

    Few large deviations tell less of a variance: ``2 / (2 / dof + k sum(n) / sum(sqrt(n))^2)`` with their excess
    kurtosis ``k``, corrected for their number, as far as the value itself doesn't tell it. Deviations grow with their
    cluster's size, by how much depends on what its items share: here they are divided by the fourth root of ``n`` and
    weigh its square root, which held best in simulations. Never more than ``dof``, which stays of fewer than eight
    clusters.

    Source: the variance of a variance, such as in Cramér (1946), Mathematical Methods of Statistics, section 27.4.

    Args:
        deviations: Of the score without each of the clusters.
        dof: Degrees of freedom that it would have otherwise.
        sizes: Of the clusters, from 1.
        known: The excess kurtosis that the value tells, as a share of hits tells that of independent ones.
        fixed: Share of the variance that the value determines, 0..1.
    """
    n = len(deviations)
    weights = np.sqrt(sizes) / np.sqrt(sizes).sum()
    scaled = deviations / sizes**0.25
    centred = scaled - weights @ scaled
    square = float(weights @ centred**2)
    if n < FEW_FOR_KURTOSIS or square == 0:
        return dof
    plain = float(weights @ centred**4) / square**2 - 3
    found = (n + 1) * plain + 6 - fixed * ((n + 1) * known + 6)
    kurtosis = (n - 1) / ((n - 2) * (n - 3)) * max(0.0, found)
    return 2 / (2 / dof + kurtosis * float(weights @ weights))


def three_point_moments(difference: float, differing: float) -> tuple[float, float]:
    """Return the variance and the fourth central moment of a variable with values 1, 0 and -1.

    Args:
        difference: Its mean.
        differing: How often it isn't 0.

    >>> three_point_moments(0.0, 0.5)
    (0.5, 0.5)
    >>> three_point_moments(0.5, 0.5)
    (0.25, 0.0625)
    """
    above = (differing + difference) / 2
    below = (differing - difference) / 2
    fourth = above * (1 - difference) ** 4 + below * (1 + difference) ** 4
    return differing - difference**2, fourth + (1 - differing) * difference**4


def interval_of_difference(
    first: tuple[float, Bounds], second: tuple[float, Bounds], correlation: float
) -> Bounds:
    """Return the interval of a difference from those of both sides.

    Source: Zou & Donner (2008), Construction of confidence limits about effect measures: a general approach (MOVER).

    Args:
        first: A value with its interval.
        second: What is subtracted, with its interval.
        correlation: Of the two estimates.
    """
    (a, (a_low, a_high)), (b, (b_low, b_high)) = first, second

    def reach(one: float, other: float) -> float:
        square = one**2 + other**2 - 2 * correlation * one * other
        return math.sqrt(max(0.0, square))

    return a - b - reach(a - a_low, b_high - b), a - b + reach(a_high - a, b - b_low)


def scaled(ends: Bounds, bounds: Bounds) -> Bounds:
    """Rescale an interval from 0..1 to the given bounds."""
    low, high = bounds
    return low + (high - low) * ends[0], low + (high - low) * ends[1]


def agreed(value: float, bounds: Bounds, n: int) -> Bounds | None:
    """Return the 95% interval of a unanimous mean at an end of its range, from n observations; else ``None``.

    However alike the items behind an observation are, they all agree with a probability of at most ``p^n``: Wilson's.

    >>> [round(end, 2) for end in agreed(1.0, (-1.0, 1.0), 21)], agreed(0.5, (-1.0, 1.0), 21)
    ([0.69, 1.0], None)
    """
    if n < 2 or value not in bounds:
        return None
    return scaled(wilson(n * (value == bounds[1]), n), bounds)


def fisher_z(correlations: Array) -> Array:
    """Return Fisher's z; a perfect correlation is clipped."""
    return np.arctanh(np.clip(correlations, -ALMOST_PERFECT, ALMOST_PERFECT))


def fisher(correlation: float, stderr: float, dof: float) -> Bounds:
    """Return the 95% interval of a correlation whose Fisher's z has this standard error.

    Source: Fisher (1921), On the "probable error" of a coefficient of correlation deduced from a small sample.

    >>> [round(end, 4) for end in fisher(0.5, 0.2, math.inf)]
    [0.156, 0.7358]
    """
    z = float(fisher_z(np.array(correlation)))
    half = t_factor(dof) * stderr
    low = math.tanh(z - half)
    high = math.tanh(z + half)
    return min(low, correlation), max(high, correlation)


def student_p(value: float, stderr: float, dof: float) -> float:
    """Return Student's two-sided p-value, with at least one degree of freedom; ``nan`` without a standard error.

    >>> round(student_p(1.96, 1.0, math.inf), 4), round(student_p(-12.7062, 1.0, 1.0), 4)
    (0.05, 0.05)
    """
    from scipy import special

    t = -abs(value) / stderr
    return 2 * float(
        special.ndtr(t) if math.isinf(dof) else special.stdtr(max(dof, 1.0), t)
    )


def tails(t: Array, dof: Array) -> Array:
    """Return the probability of Student's t below ``t``; the normal distribution's where ``dof`` is infinite."""
    from scipy import special

    return np.asarray(special.stdtr(np.maximum(dof, 1.0), t))


def _chi_square(table: Table, **options: object) -> Any:
    """Test a table without its empty classes, by SciPy."""
    from scipy import stats

    array = np.array(table)
    counted = array[:, array.sum(axis=0) > 0]
    return stats.chi2_contingency(counted, correction=False, **options)


@lru_cache(maxsize=64)
def chi_square(table: Table) -> tuple[float, float, int, float]:
    """Return Pearson's chi-square of a table with two rows, its p, its dof, and the smallest expected count.

    Classes that no text has are left out (they would divide by zero) and lower the degrees of freedom; no continuity
    correction. By ``scipy.stats.chi2_contingency``.

    >>> [round(float(x), 3) for x in chi_square(((217, 535, 248), (253, 562, 185)))]
    [12.588, 0.002, 2.0, 216.5]
    """
    test = _chi_square(table)
    smallest = float(test.expected_freq.min())
    return float(test.statistic), float(test.pvalue), int(test.dof), smallest


@lru_cache(maxsize=64)
def permutation_p(table: Table) -> float:
    """Return the permutation p-value of chi-square (9,999 permutations, fixed seed)."""
    from scipy import stats

    rng = np.random.default_rng(SEED)
    method = stats.MonteCarloMethod(n_resamples=PERMUTATIONS, rng=rng)
    return float(_chi_square(table, method=method).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm (1979); ``nan`` stays ``nan`` and counts as no test.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03, math.nan])]
    [0.03, 0.06, 0.06, nan]
    """
    tests = [i for i, p in enumerate(p_values) if not math.isnan(p)]
    adjusted = list(p_values)
    highest = 0.0
    for rank, i in enumerate(sorted(tests, key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(tests) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted
