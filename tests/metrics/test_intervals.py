"""Intervals, Student's t, permutation, Cramér's V and Holm against independent computations."""

import math

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.custom_metrics import intervals as c


@pytest.fixture(autouse=True)
def _computed_anew():
    for cached in (c.chi_square, c.permutation_p):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("hits", "total"), [(0, 10), (3, 20), (20, 20), (1, 1000), (0, 1)]
)
def test_wilson_is_scipys_and_ends_exactly_at_the_range(hits, total):
    expected = stats.binomtest(hits, total).proportion_ci(method="wilson")
    assert c.wilson(hits, total) == pytest.approx(
        (expected.low, expected.high), abs=1e-12
    )
    for n in range(1, 99):
        ends = [
            (c.wilson(0, n, t)[0], c.wilson(n, n, t)[1]) for t in (1.96, 2.57, 12.7)
        ]
        assert all(low == 0.0 and 1.0 - 1e-15 <= high <= 1.0 for low, high in ends)


@pytest.mark.parametrize("dof", [math.inf, 7.3, 0.4])
def test_fishers_z(dof):
    half = 0.3 * stats.t.ppf(0.975, max(dof, 1.0))
    low, high = np.tanh(np.arctanh(0.6) + [-half, half])
    assert c.fisher(0.6, 0.3, dof) == pytest.approx((low, high), abs=1e-12)
    assert c.fisher(-0.6, 0.3, dof) == pytest.approx((-high, -low), abs=1e-12)


def test_p_values_of_students_t():
    assert (
        c.student_p(-0.3, 0.1, 4)
        == c.student_p(0.3, 0.1, 4)
        == pytest.approx(2 * stats.t.sf(3, 4), rel=1e-9)
    )
    assert c.student_p(0.3, 0.1, math.inf) == pytest.approx(
        2 * stats.norm.sf(3), rel=1e-9
    )
    assert c.student_p(0.0, 0.1, 4) == 1
    assert c.student_p(0.3, 0.1, 0.4) == c.student_p(
        0.3, 0.1, 1.0
    )  # as few as intervals take
    assert c.student_p(0.3, 0.1, 1.1) < c.student_p(0.3, 0.1, 1.0)
    assert math.isnan(c.student_p(0.3, math.nan, 4))


@pytest.mark.parametrize(
    ("table", "exact"),
    [
        (((1, 4, 2), (4, 2, 1)), 0.3881118881118883),
        (((0, 5, 2), (3, 3, 1)), 0.33916083916083956),
    ],
)
def test_permutation_is_near_the_exact_p(table, exact):
    """Of a chi-square as large when the texts' genders are dealt out in every possible way."""
    # four standard errors of 9,999 draws
    assert c.permutation_p(table) == pytest.approx(
        exact, abs=4 * math.sqrt(exact * (1 - exact) / c.PERMUTATIONS)
    )


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        (
            [0.01, 0.04, 0.03],
            [0.03, 0.06, 0.06],
        ),  # 3 * 0.01, 2 * 0.03 and 0.04, none of which is below one before it
        ([0.2, 0.2, 0.001, 0.5], [0.6, 0.6, 0.004, 0.6]),
        ([0.9, 0.8], [1, 1]),
        ([0.01, 0.011, 0.4], [0.03, 0.03, 0.4]),
        (
            [math.nan, 0.02, 0.6, math.nan],
            [math.nan, 0.04, 0.6, math.nan],
        ),  # no test that wasn't made is counted
        ([], []),
    ],
)
def test_holm_by_hand(p_values, adjusted):
    assert c.holm(p_values) == pytest.approx(adjusted, abs=1e-12, nan_ok=True)


def test_ends_of_ranges():
    assert (
        c.permutation_p(((40, 0, 0), (0, 0, 40))) == 1 / 10_000
    )  # the observed table is one of the draws


@pytest.mark.parametrize(
    ("b", "c_", "n", "low", "high"),
    [
        (5, 2, 40, -0.0656845931, 0.2233959145),
        (12, 0, 50, 0.1429739140, 0.3741268376),
        (0, 3, 21, -0.3463606130, 0.0338731653),
        (1, 1, 25, -0.1642447617, 0.1642447617),
    ],
)
def test_the_score_interval_ends_where_the_score_test_rejects(b, c_, n, low, high):
    """Tango's test, with the likeliest share of the second found by a numerical search."""
    ends = c.score_interval((b - c_) / n, (b + c_) / n, n)
    assert ends == pytest.approx((low, high), abs=1e-7)


def test_degrees_of_freedom_know_skewed_clusters():
    ones = np.ones(20)
    even = np.tile([-1.0, 1.0], 10)
    spike = np.where(np.arange(20) == 3, 19.0, -1.0)
    of_spike = 2 / (2 / 19 + stats.kurtosis(spike, bias=False) / 20)
    for deviations, dof, sizes, expected in (
        (even, 19.0, ones, 19.0),
        (spike, 19.0, ones, of_spike),
        (np.array([1.0, -1.0, 0.5]), 2.0, np.ones(3), 2.0),
        (np.zeros(9), 8.0, np.ones(9), 8.0),
    ):
        found = c.skewed_dof(deviations, dof, sizes)
        assert found == pytest.approx(expected, rel=1e-9)


def test_degrees_of_freedom_of_unequal_clusters_worked_by_hand():
    """Over the fourth root of its size, 16, the large cluster is like the 18 small ones; one small one sticks out."""
    sizes = np.array([16.0] + [1.0] * 19)
    deviations = np.array([-2.0, 10.0] + [-1.0] * 18)
    # a value of weight 1/23 among equal ones has the kurtosis 1 / (1/23 * 22/23) - 3
    excess = 529 / 22 - 6
    kurtosis = 19 / (18 * 17) * (21 * excess + 6)
    expected = 2 / (2 / 19 + kurtosis * 35 / 529)
    assert c.skewed_dof(deviations, 19.0, sizes) == pytest.approx(expected, rel=1e-12)


def test_an_interval_of_a_difference_joins_those_of_both_sides():
    first, second = (0.6, (0.5, 0.8)), (0.2, (0.1, 0.25))
    low, high = c.interval_of_difference(first, second, 0.0)
    assert (low, high) == pytest.approx(
        (0.4 - math.hypot(0.1, 0.05), 0.4 + math.hypot(0.2, 0.1)), abs=1e-12
    )
    alike = c.interval_of_difference(first, second, 1.0)
    assert alike == pytest.approx((0.4 - 0.05, 0.4 + 0.1), abs=1e-12)
    opposed = c.interval_of_difference(first, second, -1.0)
    assert opposed == pytest.approx((0.4 - 0.15, 0.4 + 0.3), abs=1e-12)
