"""Rank correlations: against scipy and tables, by hand, and how often their intervals cover."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.custom_metrics import rank_correlations
from lm_eval_bias.custom_metrics.rank_correlations import KINDS, least_significant, rank_correlation

STATISTICS = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}


@pytest.fixture(autouse=True, scope="module")
def nothing_kept():
    """What was computed before is computed again: a test checks the module as it stands."""
    rank_correlations._exact_p.cache_clear()
    least_significant.cache_clear()


def _pairs(seed, n, ties=False):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, n))
    return (np.round(x), np.round(y + x)) if ties else (x, y + x / 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [4, 6, 8, 10, 40])
@pytest.mark.parametrize("ties", [False, True])
def test_values_are_scipy_s(kind, n, ties):
    for seed in range(5):
        x, y = _pairs(seed, n, ties)
        expected = STATISTICS[kind](x, y).statistic if np.ptp(x) and np.ptp(y) else math.nan
        assert rank_correlation(x, y, kind).value == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("kind", KINDS)
def test_p_of_few_pairs_is_the_share_of_all_orders(kind):
    for n, ties in ((4, False), (5, True), (6, False), (6, True)):
        x, y = _pairs(n, n, ties)
        own = abs(STATISTICS[kind](x, y).statistic)
        others = [abs(STATISTICS[kind](x, order).statistic) for order in itertools.permutations(y)]
        found = rank_correlation(x, y, kind)
        assert found.test == "exact: all orders"
        assert found.p == pytest.approx(np.mean([other >= own - 1e-9 for other in others]))
    for seed in range(2):
        x, y = _pairs(seed, 9)
        assert rank_correlation(x, y, "kendall").p == pytest.approx(stats.kendalltau(x, y, method="exact").pvalue)


@pytest.mark.parametrize("kind", KINDS)
def test_up_to_nine_pairs_all_orders_are_gone_through(kind):
    # of 9 pairs with two neighbours exchanged 8 orders each are as near to 1 and to -1, and the same and the reverse
    x, y = list(range(9)), [1, 0, *range(2, 9)]
    found = rank_correlation(x, y, kind)
    assert found.test == "exact: all orders"
    assert found.p == pytest.approx(2 * 9 / math.factorial(9), rel=1e-12)
    more = rank_correlation([*x, 9], [*y, 9], kind)
    assert more.test == {"spearman": "Student's t", "kendall": "normal"}[kind]


def test_truth_values_are_0_and_1():
    x, y = [True, False, True, True, False], [0.5, 0.1, 0.7, 0.2, 0.3]
    for kind in KINDS:
        for first, second in ((x, y), (y, x)):
            expected = rank_correlation(list(map(float, first)), list(map(float, second)), kind)
            assert rank_correlation(first, second, kind) == expected
            assert 0 < expected.value < 1


def test_p_of_many_pairs_is_scipy_s():
    x, y = _pairs(2, 30)
    assert rank_correlation(x, y).p == pytest.approx(stats.spearmanr(x, y).pvalue)
    assert rank_correlation(x, y, "kendall").p == pytest.approx(stats.kendalltau(x, y, method="asymptotic").pvalue)


def test_intervals_by_hand():
    # 5 pairs, one exchange of neighbours: rho 0.9, tau 0.8
    x, y = [1, 2, 3, 4, 5], [2, 1, 3, 4, 5]
    rho, tau = rank_correlation(x, y), rank_correlation(x, y, "kendall")
    assert (rho.value, tau.value) == (pytest.approx(0.9), pytest.approx(0.8))
    half = 1.959963984540054 * math.sqrt((1 + 0.81 / 2) / 2)
    assert rho.interval == pytest.approx([math.tanh(math.atanh(0.9) + sign * half) for sign in (-1, 1)])
    half = 1.959963984540054 * math.sqrt(0.437 / 1)
    assert tau.interval == pytest.approx([math.tanh(math.atanh(0.8) + sign * half) for sign in (-1, 1)])
    assert (rho.n, tau.n, rho.reason, tau.reason) == (5, 5, "", "")
    # 8 of 120 orders are as near to 1 or -1 as one exchange of neighbours, and 2 are the same or reversed
    assert (rho.p, tau.p) == (pytest.approx(10 / 120), pytest.approx(10 / 120))


def test_a_longer_interval_by_hand():
    # 8 pairs, one exchange of neighbours: rho 1 - 6 * 2 / (8 * 63) = 41 / 42, tau 26 / 28
    x, y = list(range(8)), [1, 0, *range(2, 8)]
    half = 1.959963984540054 * math.sqrt((1 + (41 / 42) ** 2 / 2) / 5)
    expected = [math.tanh(math.atanh(41 / 42) + sign * half) for sign in (-1, 1)]
    assert rank_correlation(x, y).interval == pytest.approx(expected)
    half = 1.959963984540054 * math.sqrt(0.437 / 4)
    expected = [math.tanh(math.atanh(26 / 28) + sign * half) for sign in (-1, 1)]
    assert rank_correlation(x, y, "kendall").interval == pytest.approx(expected)


def test_what_cannot_be_had_is_said():
    three = rank_correlation([1, 2, 3], [1, 2, 3], pairs="models")
    assert math.isnan(three.value)
    assert math.isnan(three.p)
    assert three.reason == "a rank correlation needs at least 4 models, there are 3"
    assert three.n == 3
    assert rank_correlation([1, 2], [1, 2]).reason == "a rank correlation needs at least 4 pairs, there are 2"
    for x, y in (([1, 1, 1, 1, 1], [1, 2, 3, 4, 5]), ([1, 2, 3, 4, 5], [1, 1, 1, 1, 1])):
        alike = rank_correlation(x, y, pairs="models")
        assert alike.reason == "all models have the same value on one side"
        assert math.isnan(alike.value)
        assert math.isnan(alike.p)
        assert (alike.n, alike.interval, alike.test) == (5, None, "")
    # a side whose values are 1 apart has two values
    assert rank_correlation([0, 1, 1, 0, 1], [1, 1, 2, 2, 2]).value == pytest.approx(1 / 6)
    same = rank_correlation([1, 2, 3, 4], [-1, -2, -3, -4], pairs="models")
    assert (same.value, same.interval, same.p) == (-1.0, None, pytest.approx(2 / 24))
    assert same.reason == "all models have the same order on both sides, or in reverse: no interval"
    assert (same.n, same.test) == (4, "exact: all orders")
    assert rank_correlation(range(30), range(30)).p == 0.0
    four = rank_correlation([1, 2, 3, 4], [2, 1, 3, 4], "kendall", "models")
    assert four.interval is None
    assert four.reason == "Kendall's interval needs at least 5 models, there are 4"
    assert (four.n, four.value, four.test) == (4, pytest.approx(2 / 3), "exact: all orders")
    assert rank_correlation([1, 2, 3, 4], [2, 1, 3, 4]).interval is not None


@pytest.mark.parametrize(
    ("kind", "table"),  # printed in tables of critical values, two-sided 5%
    [
        ("spearman", {4: math.nan, 5: 1.0, 6: 0.886, 7: 0.786, 8: 0.738, 9: 0.700}),
        ("kendall", {4: math.nan, 5: 1.0, 6: 0.867, 7: 0.714, 8: 0.643, 9: 0.556}),
    ],
)
def test_the_least_correlation_that_is_told_from_0_is_the_tables(kind, table):
    for n, printed in table.items():
        assert least_significant(n, kind) == pytest.approx(printed, abs=6e-4, nan_ok=True)
    assert math.isnan(least_significant(3, kind))
    for n in (10, 20, 50):
        assert least_significant(n, kind) < least_significant(n - 1, kind)
    # of 20 pairs: Student's t gives 0.444, exact tables 0.447
    assert least_significant(20) == pytest.approx(0.444, abs=1e-3)


def test_equal_orders_are_rejected_as_seldom_as_the_level_says():
    rng = np.random.default_rng(4)
    p = np.array([rank_correlation(*rng.normal(size=(2, 7))).p for _ in range(400)])
    assert (p <= 0.05).mean() <= 0.08
    x, y = np.arange(7.0), np.array([0, 1, 2, 3, 4, 6, 5.0])
    assert rank_correlation(x, y).value >= least_significant(7)
    assert rank_correlation(x, y).p <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
@pytest.mark.parametrize("n", [5, 8, 21, 79])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover(kind, n, rho):
    rng = np.random.default_rng(8)
    true = 6 / math.pi * math.asin(rho / 2) if kind == "spearman" else 2 / math.pi * math.asin(rho)
    covered = []
    for _ in range(600):
        x, y = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=n).T
        interval = rank_correlation(x, y, kind).interval
        if interval is not None:  # the same order on both sides has none
            covered.append(interval[0] <= true <= interval[1])
    assert len(covered) > 300
    assert np.mean(covered) >= (0.91 if kind == "spearman" else 0.87)  # of tau 0.89 at 8 pairs and rho 0.9
