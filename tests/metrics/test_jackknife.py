"""Standard errors over clusters: against slow formulas, where nothing varied, and how often the intervals cover."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from lm_eval_bias.custom_metrics import designs, stereoset
from lm_eval_bias.custom_metrics.clustered import clustered_mean
from lm_eval_bias.custom_metrics.jackknife import clustered_estimate, left_out, standard_error

# items per template in GG-BBQ's Subset-II
TEMPLATES = np.array([1600, 900, 900, 600, 200, 150, *[100] * 7, *[50] * 8])


def _share(hits, sizes) -> designs.Clusters:
    """A share from each cluster's hits."""
    names = [f"c{k:02d}" for k in range(len(sizes))]
    sizes = np.array(sizes, dtype=float)
    return designs.Clusters(names, sizes, np.stack([sizes, np.array(hits, dtype=float)], axis=1), designs.share_of)


def test_of_a_mean_over_equal_clusters_it_is_the_spread_of_their_means():
    hits = [3, 7, 5, 9]
    estimate = clustered_estimate(_share(hits, [10] * 4))
    assert estimate.value == pytest.approx(0.6, abs=1e-12)
    assert estimate.stderr == pytest.approx(np.std(np.array(hits) / 10, ddof=1) / 2, abs=1e-12)
    assert (estimate.n, estimate.interval, estimate.reason) == (40, None, "")
    assert estimate.dof == pytest.approx(3)


def test_unequal_clusters_are_left_out_one_by_one():
    hits, sizes = [3, 30, 2], [4, 50, 6]
    without = [(35 - h) / (60 - n) for h, n in zip(hits, sizes, strict=True)]
    expected = math.sqrt(2 / 3 * sum((v - 35 / 60) ** 2 for v in without))
    estimate = clustered_estimate(_share(hits, sizes))
    assert estimate.stderr == pytest.approx(expected, abs=1e-12)
    assert estimate.dof == pytest.approx(60**2 / (16 + 2500 + 36) - 1)


def test_a_share_s_interval_is_the_score_test_s():
    estimate = clustered_estimate(_share([3, 30, 2, 5], [4, 50, 6, 20]), whole=1.0)
    size = estimate.value * (1 - estimate.value) / estimate.stderr**2
    t = stats.t.ppf(0.975, estimate.dof)
    for end in estimate.interval:  # where the value is just t standard errors of that end away
        assert abs(estimate.value - end) == pytest.approx(t * math.sqrt(end * (1 - end) / size), rel=1e-9)
    percent = clustered_estimate(_share([300, 3000, 200, 500], [4, 50, 6, 20]), whole=100.0)
    assert percent.interval == pytest.approx([100 * end for end in estimate.interval])


@pytest.mark.parametrize("hits", [0, 1])
def test_where_nothing_varied_a_share_has_wilson_s_interval_over_clusters(hits):
    estimate = clustered_estimate(_share(hits * TEMPLATES, TEMPLATES), whole=1.0)
    expected = stats.binomtest(hits * 21, 21).proportion_ci(method="wilson")
    assert estimate.value == hits
    assert estimate.interval == pytest.approx((expected.low, expected.high), abs=1e-12)
    half = stats.t.ppf(0.975, estimate.dof) * estimate.stderr
    assert half == pytest.approx((expected.high - expected.low) / 2)
    assert estimate.reason == ""


def test_where_nothing_varied_other_scores_have_no_error():
    thirds = clustered_estimate(_share([1, 2, 3, 4], [3, 6, 9, 12]), clusters="templates")  # 1/3 in all, with rounding
    assert thirds.value == pytest.approx(1 / 3)
    assert math.isnan(thirds.stderr)
    assert thirds.ends() is None
    assert thirds.reason == "nothing varied between templates: no standard error"


def test_one_cluster_and_a_cluster_without_which_there_is_no_value():
    one = clustered_estimate(_share([3], [10]), whole=1.0, note="beware")
    assert math.isnan(one.stderr)
    assert one.ends() is None
    assert one.reason == "a standard error needs items of at least 2 clusters; beware"
    empty = clustered_estimate(_share([3, 0], [10, 0]))
    assert math.isnan(empty.stderr)
    assert "no value without one of the clusters" in empty.reason


def test_without_a_cluster_there_may_be_no_value_whatever_numpy_is_told_of_divisions():
    def ratio(weights, totals):
        totals = weights @ totals
        return totals[:, 1] / totals[:, 0]

    with np.errstate(all="raise"):
        divided = left_out(designs.Clusters(list("abc"), np.ones(3), np.array([[1.0, 0], [0, 1], [-1, 2]]), ratio))
        undefined = left_out(replace(_share([3, 0], [10, 0]), of=ratio))
    assert divided.tolist() == [-3, math.inf, 1]  # 3 / -1, 2 / 0, 1 / 1
    assert np.isnan(undefined).tolist() == [True, False]  # 0 / 0, 3 / 10


@pytest.mark.parametrize(
    ("value", "spread", "varied"),
    [(0.5, 0.8e-12, False), (0.5, 1.5e-12, True), (-1e3, 0.8e-9, False), (-1e3, 1.5e-9, True)],
)
def test_a_spread_of_1e_12_of_the_value_is_rounding(value, spread, varied):
    stderr, reason = standard_error(value, np.array([value, value + spread]))
    assert math.isnan(stderr) != varied
    assert reason == ("" if varied else "nothing varied between clusters: no standard error")


def test_a_value_that_was_summed_more_exactly_stands():
    form = _share([1, 2, 4], [3, 5, 7])
    exact = form.value + 1e-14
    assert clustered_estimate(form, exact).value == exact
    assert clustered_estimate(form, 0.0).value == 0


def test_a_share_of_two_clusters_has_an_interval():
    # 4 of 10 and 6 of 10: a standard error of 0.1, that of 25 observations, and Student's t with one degree of freedom
    estimate = clustered_estimate(_share([4, 6], [10, 10]), whole=1.0)
    assert estimate.stderr == pytest.approx(0.1, abs=1e-12)
    t = math.tan(0.475 * math.pi)
    half = t * math.sqrt(0.25 / 25 + t**2 / (4 * 25**2)) / (1 + t**2 / 25)
    assert estimate.interval == pytest.approx((0.5 - half, 0.5 + half), abs=1e-12)


def test_clustered_mean_of_a_constant():
    def mean(low):
        return clustered_mean(
            "x", value=lambda r: r["x"], cluster=lambda r: r["c"], summary="", low=low, high=1.0, neutral=0.0,
            direction="", unit="proportion",
        )  # fmt: skip

    records = [{"x": 1.0, "c": k % 5} for k in range(20)]
    expected = stats.binomtest(5, 5).proportion_ci(method="wilson")
    assert mean(0.0).compute(records).ends() == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert mean(-1.0).compute(records).ends() is None


@pytest.mark.parametrize(("mean", "spread"), [(0.2, 0.5), (0.3, 0.3), (1.2, 0.5), (1.2, 1.0)])
def test_coverage_of_a_share_over_subset_ii_s_templates(mean, spread):
    # accuracies of 0.57 to 0.86; CR1 with a symmetric interval covers in 84 to 91% of the rounds
    rng = np.random.default_rng(4)
    true = special.ndtr(mean / math.sqrt(1 + spread**2))
    rounds = 1500
    rates = special.ndtr(mean + spread * rng.standard_normal((rounds, len(TEMPLATES))))
    covered = 0
    for hits in rng.binomial(TEMPLATES, rates):
        low, high = clustered_estimate(_share(hits, TEMPLATES), whole=1.0).ends()
        covered += low <= true <= high
    assert 0.92 <= covered / rounds <= 0.97


def test_coverage_where_clusters_mostly_agree():
    # nearly all of a cluster's items agree; Wilson with as many observations as items would cover in 30% of the rounds
    rng = np.random.default_rng(5)
    sizes, true, alike, rounds = np.full(6, 20), 0.05, 0.95, 1000
    beta = 1 / alike - 1
    rates = rng.beta(true * beta, (1 - true) * beta, (rounds, 6))
    ends = [clustered_estimate(_share(hits, sizes), whole=1.0).ends() for hits in rng.binomial(sizes, rates)]
    assert np.mean([low <= true <= high for low, high in ends]) > 0.93


@pytest.mark.parametrize(("terms", "lean"), [(79, 0.0), (79, 0.1), (12, 0.2), (12, 0.4)])
def test_coverage_of_icat_near_its_kink_and_away_from_it(terms, lean):
    # near SS = 50 the clustered bootstrap covers in 91.5 to 94% only
    rng = np.random.default_rng(6)
    sizes = rng.integers(20, 40, terms)
    true = stereoset.icat_of(100 * special.ndtr(1.2), 100 * special.ndtr(lean / math.hypot(1, 0.25)))
    covered = 0
    rounds = 600
    for _ in range(rounds):
        pro = rng.binomial(sizes, special.ndtr(lean + 0.25 * rng.standard_normal(terms)))
        related = rng.binomial(2 * sizes, special.ndtr(1.2))
        form = designs.Clusters(
            [f"t{k}" for k in range(terms)], sizes.astype(float), np.stack([sizes, pro, related], axis=1).astype(float),
            lambda weights, totals: stereoset._resampled(weights, totals, kind="icat"),
        )  # fmt: skip
        low, high = clustered_estimate(form).ends()
        covered += low <= true <= high
    assert 0.92 <= covered / rounds <= 0.985
