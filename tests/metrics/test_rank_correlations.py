"""Rank correlations: against scipy and tables, by hand, and how often their intervals cover."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.custom_metrics.rank_correlations import KINDS, least_significant, rank_correlation

STATISTICS = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}


def _pairs(seed, n, ties=False):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, n))
    return (np.round(x), np.round(y + x)) if ties else (x, y + x / 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [4, 6, 9, 10, 40])
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
    x, y = _pairs(1, 9)
    assert rank_correlation(x, y, "kendall").p == pytest.approx(stats.kendalltau(x, y, method="exact").pvalue)


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
    # 8 of 120 orders are as near to 1 or -1 as one exchange of neighbours, and 2 are the same or reversed
    assert (rho.p, tau.p) == (pytest.approx(10 / 120), pytest.approx(10 / 120))


def test_what_cannot_be_had_is_said():
    three = rank_correlation([1, 2, 3], [1, 2, 3], pairs="models")
    assert math.isnan(three.value)
    assert math.isnan(three.p)
    assert three.reason == "a rank correlation needs at least 4 models, there are 3"
    alike = rank_correlation([1, 1, 1, 1], [1, 2, 3, 4], pairs="models")
    assert alike.reason == "all models have the same value on one side"
    same = rank_correlation([1, 2, 3, 4], [-1, -2, -3, -4], pairs="models")
    assert (same.value, same.interval, same.p) == (-1.0, None, pytest.approx(2 / 24))
    assert same.reason == "all models have the same order on both sides, or in reverse: no interval"
    assert rank_correlation(range(30), range(30)).p == 0.0
    four = rank_correlation([1, 2, 3, 4], [2, 1, 3, 4], "kendall", "models")
    assert four.interval is None
    assert four.reason == "Kendall's interval needs at least 5 models, there are 4"


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
