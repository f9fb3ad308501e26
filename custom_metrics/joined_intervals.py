"""The interval of a difference from the intervals of its two parts, which needn't be symmetric.

Source: Zou & Donner (2008), Construction of confidence limits about effect measures: a general approach; for
correlations Zou (2007), Toward using confidence intervals to compare correlations; for shares Newcombe (1998), Improved
confidence intervals for the difference between binomial proportions based on paired data.
"""

from __future__ import annotations

import math


def correlation_of(first: float, second: float, of_difference: float) -> float:
    """The correlation of two estimates from their standard errors and that of their difference; 0 where one is 0.

    >>> correlation_of(3.0, 4.0, 5.0), correlation_of(1.0, 1.0, 0.0), correlation_of(0.0, 1.0, 1.0)
    (0.0, 1.0, 0.0)
    """
    product = first * second
    rho = (first**2 + second**2 - of_difference**2) / (2 * product) if product > 0 else 0.0
    return min(1.0, max(-1.0, rho))


def interval_of_difference(
    values: tuple[float, float], intervals: tuple[tuple[float, float], tuple[float, float]], rho: float
) -> tuple[float, float]:
    """The interval of first minus second, of the same level as theirs.

    Lower end ``d - sqrt(a^2 - 2 rho a b + b^2)``, with ``a`` the first value minus its lower end and ``b`` the second's
    upper end minus its value; the upper end likewise.

    Args:
        values: First and second.
        intervals: Theirs.
        rho: The correlation of the two estimates.

    >>> interval_of_difference((0.5, 0.25), ((0.375, 0.75), (0.125, 0.375)), 1.0)
    (0.25, 0.375)
    """
    (first, second), ((low, high), (other_low, other_high)) = values, intervals

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(a**2 - 2 * rho * a * b + b**2, 0.0))

    d = first - second
    return d - reach(first - low, other_high - second), d + reach(high - first, second - other_low)
