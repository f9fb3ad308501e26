"""Intervals, Student's t, permutation, Cramér's V and Holm against independent computations."""

import itertools
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
    t = stats.t.ppf(0.975, max(dof, 1.0)) if dof < math.inf else stats.norm.ppf(0.975)
    z = 0.5 * math.log((1 + 0.6) / (1 - 0.6))
    ends = [
        (math.exp(2 * end) - 1) / (math.exp(2 * end) + 1)
        for end in (z - 0.3 * t, z + 0.3 * t)
    ]
    assert c.fisher(0.6, 0.3, dof) == pytest.approx(ends, abs=1e-12)
    assert c.fisher(-0.6, 0.3, dof) == pytest.approx(
        [-end for end in ends[::-1]], abs=1e-12
    )


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


def exact_p(table):
    """P of a chi-square as large when the texts' genders are dealt out in every possible way."""
    totals, size = np.sum(table, axis=0), sum(table[0])
    women = [
        dealt
        for dealt in itertools.product(*(range(n + 1) for n in totals))
        if sum(dealt) == size
    ]
    values = [
        c.chi_square((dealt, tuple((totals - dealt).tolist())))[0] for dealt in women
    ]
    large = np.array(values) >= c.chi_square(table)[0] - 1e-9
    return stats.multivariate_hypergeom.pmf(np.array(women)[large], totals, size).sum()


@pytest.mark.parametrize(
    "table", [((1, 4, 2), (4, 2, 1)), ((0, 5, 2), (3, 3, 1)), ((2, 0, 5), (5, 0, 2))]
)
def test_permutation_is_near_the_exact_p(table):
    exact = exact_p(table)
    assert 0.05 < exact < 0.95
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


def slow_score_test(candidate, b, c_, n):
    """The statistic of Tango's test of a difference, with the likeliest share of the second found on a grid."""
    from scipy import optimize

    def against(
        q,
    ):  # minus log-likelihood of b + c + rest with p_12 = q + candidate, p_21 = q
        terms = [(b, q + candidate), (c_, q), (n - b - c_, 1 - 2 * q - candidate)]
        return -sum(k * math.log(max(p, 1e-300)) for k, p in terms if k)

    low, high = max(0.0, -candidate), (1 - candidate) / 2
    q = optimize.minimize_scalar(against, bounds=(low, high), method="bounded",
                                 options={"xatol": 1e-12}).x  # fmt: skip
    return (b - c_ - n * candidate) / math.sqrt(n * (2 * q + candidate - candidate**2))


@pytest.mark.parametrize(
    ("b", "c_", "n"), [(5, 2, 40), (12, 0, 50), (0, 3, 21), (1, 1, 25), (30, 5, 60)]
)
def test_the_score_interval_ends_where_the_score_test_rejects(b, c_, n):
    low, high = c.score_interval((b - c_) / n, (b + c_) / n, n)
    z = stats.norm.ppf(0.975)
    if high < 1:
        assert slow_score_test(high, b, c_, n) == pytest.approx(-z, abs=1e-3)
    if low > -1:
        assert slow_score_test(low, b, c_, n) == pytest.approx(z, abs=1e-3)


@pytest.mark.parametrize("n", [3, 21, 400])
@pytest.mark.parametrize("dof", [math.inf, 4.0])
def test_score_intervals_know_what_can_vary(n, dof):
    unanimous = c.score_interval(0.0, 0.0, n, dof)
    # without a deviation it is Wilson's of no hits, both ways
    reach = c.wilson(0, n, dof)[1]
    assert unanimous == pytest.approx((-reach, reach), abs=1e-6)
    for differing, difference in ((0.2, 0.2), (0.2, -0.1), (1.0, 0.0), (1.0, 1.0)):
        low, high = c.score_interval(difference, differing, n, dof)
        assert -1 <= low <= difference <= high <= 1
        mirrored = c.score_interval(-difference, differing, n, dof)
        assert mirrored == pytest.approx((-high, -low), abs=1e-9)
        more = c.score_interval(difference, differing, 4 * n, dof)
        assert more[1] - more[0] < high - low


def test_degrees_of_freedom_know_skewed_clusters():
    ones = np.ones(20)
    even = np.tile([-1.0, 1.0], 10)
    assert c.skewed_dof(even, 19.0, ones) == 19.0
    spike = np.where(np.arange(20) == 3, 19.0, -1.0)
    excess = stats.kurtosis(spike, bias=False)
    assert c.skewed_dof(spike, 19.0, ones) == pytest.approx(
        2 / (2 / 19 + excess / 20), rel=1e-9
    )
    # one large cluster deviates more because it is large, and not only for that
    sizes = np.where(np.arange(20) == 3, 16.0, 1.0)
    assert c.skewed_dof(np.where(sizes > 1, 4.0, even), 5.0, sizes) > c.skewed_dof(
        np.where(sizes > 1, 4.0, even), 5.0, ones
    )
    assert c.skewed_dof(np.array([1.0, -1.0, 0.5]), 2.0, np.ones(3)) == 2.0
    assert c.skewed_dof(np.zeros(9), 8.0, np.ones(9)) == 8.0


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
    # what moves both alike cancels
    alike = c.interval_of_difference(first, second, 1.0)
    assert alike == pytest.approx((0.4 - 0.05, 0.4 + 0.1), abs=1e-12)
    opposed = c.interval_of_difference(first, second, -1.0)
    assert opposed == pytest.approx((0.4 - 0.15, 0.4 + 0.3), abs=1e-12)
