"""Scores over clusters: the jackknife within strata against plain loops, intervals of shares."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.custom_metrics.clusters import (
    UNEVEN,
    clustered_mean,
    difference_of,
    left_out,
    tabulate,
)
from lm_eval_bias.custom_metrics.differences import paired
from tests.support.oracles import reason_of, shares, wilson


def error(form):
    return form.error(form.value, left_out(form))


def estimate(form, exact=None, **described):
    return replace(form, exact=exact, **described).estimate()


def test_skewed_clusters_lower_the_degrees_of_freedom_of_a_share_alone():
    skewed = shares([1] * 14 + [9], [10] * 15)
    assert estimate(skewed, whole=1.0).dof < 10
    assert estimate(skewed).dof == pytest.approx(14)


def test_a_stratum_of_one_cluster_makes_all_one():
    for strata in ("aab", "aabc", "abcd"):
        hits, sizes = [2, 4, 9, 5][: len(strata)], [10, 20, 10, 30][: len(strata)]
        assert error(shares(hits, sizes, strata)) == error(shares(hits, sizes))
    assert error(shares([2, 4, 9, 7], [10] * 4, "aabb")) != error(
        shares([2, 4, 9, 7], [10] * 4)
    )


@pytest.mark.parametrize("strata", ["abab", "aaaa"])
def test_clusters_of_size_0_do_not_count(strata):
    plain = shares([2, 4, 9, 8], [10, 20, 10, 10], strata)
    empty = shares(
        [2, 4, 0, 9, 8, 0], [10, 20, 0, 10, 10, 0], [*strata[:2], "c", *strata[2:], "a"]
    )
    assert error(empty)[:2] == pytest.approx(error(plain)[:2], rel=1e-12)
    found, expected = estimate(empty, whole=1.0), estimate(plain, whole=1.0)
    assert (found.stderr, found.dof, found.n) == pytest.approx(
        (expected.stderr, expected.dof, 50), rel=1e-12
    )
    assert found.interval == pytest.approx(expected.interval, rel=1e-12)


FEW = "a standard error needs items of at least 2 {}"
SAME = "nothing varied between {}: no standard error"
LACKING = "no standard error: the score has no value without one of the {}"


@pytest.mark.parametrize(
    ("form", "dof", "reason"),
    [
        (shares([3], [10]), 0, FEW),
        (shares([3, 0], [10, 0]), 0, FEW),
        (shares([0], [0]), -1, FEW),
        (
            shares([1, 2, 3, 4], [3, 6, 9, 12]),
            30**2 / 270 - 1,
            SAME,
        ),  # 1/3 in all, with rounding
        (
            shares([2, 2, 9, 9, 9], [10] * 5, "aabbb"),
            1 + 2,
            SAME,
        ),  # strata that differ are no spread of their clusters
        (
            replace(shares([3, 0, 0], [10, 0, 0]), sizes=np.array([10.0, 5.0, 5.0])),
            400 / 150 - 1,
            LACKING,
        ),
    ],
)
def test_where_there_is_no_error_the_reason_is_told(form, dof, reason):
    found = error(form)
    assert math.isnan(found[0])
    assert found[1:] == (pytest.approx(dof), reason.format("clusters"))
    if (
        form.sizes.any()
    ):  # nor is there an interval, but of a share in which nothing varied
        for whole in (None, 1.0)[: 1 if reason == SAME else 2]:
            estimated = estimate(form, whole=whole, note="beware", kind="templates")
            assert (estimated.ends(), math.isnan(estimated.stderr)) == (None, True)
            assert estimated.reason.startswith(reason.format("templates"))
            assert estimated.reason.endswith("; beware")


def test_one_stratum_that_varies_has_its_degrees_of_freedom():
    # (1/2)^2 * 0.5^2 / 4
    found = error(shares([2, 2, 9, 4], [10] * 4, "aabb"))
    assert found == (pytest.approx(0.125, abs=1e-12), pytest.approx(1, abs=1e-9), "")


def test_a_share_has_wilsons_interval_of_the_effective_number():
    form = shares([3, 30, 2, 5], [4, 50, 6, 20])
    found = estimate(form, whole=1.0)
    size, t = 0.5 * 0.5 / found.stderr**2, stats.t.ppf(0.975, found.dof)
    assert found.value == 0.5
    assert found.interval == pytest.approx(wilson(0.5, size, t), abs=1e-12)
    assert found.stderr == error(form)[0]
    exact = form.value + 1e-14  # a value that was summed more exactly stands
    assert [estimate(form, value).value for value in (exact, 0.0)] == [exact, 0]
    assert (estimate(form).n, estimate(form).interval) == (80, None)
    assert estimate(form, note="beware").reason == f"{found.reason}; beware"
    percent = estimate(shares([300, 3000, 200, 500], [4, 50, 6, 20]), whole=100.0)
    assert percent.interval == pytest.approx([100 * end for end in found.interval])
    assert estimate(form, whole=1.0, most=size * 2).interval == found.interval
    few = estimate(form, whole=1.0, most=3.0)  # as many observations at most
    assert few.interval == pytest.approx(wilson(0.5, 3, t), abs=1e-12)
    assert few.stderr == found.stderr


@pytest.mark.parametrize("whole", [1.0, 100.0])
@pytest.mark.parametrize(
    ("wrong", "is_joined"),
    [((1,), True), ((3,), True), ((1, 5), True), ((1, 1, 1), False)],
)
def test_few_clusters_that_deviate_from_unanimity_narrow_nothing(
    wrong, is_joined, whole
):
    hits = np.full(21, 260.0) - [*wrong, *[0] * (21 - len(wrong))]
    form = shares(whole * hits, [260] * 21)
    found = estimate(form, whole=whole, note="beware")
    stderr, dof, _ = error(replace(form, whole=whole))
    p, t = form.value / whole, stats.t.ppf(0.975, dof)
    size = p * (1 - p) / (stderr / whole) ** 2
    own, alone = np.array(wilson(p, size, t)), np.array(wilson(p, 21))
    ends = (min(own[0], alone[0]), max(own[1], alone[1])) if is_joined else tuple(own)
    assert found.interval == pytest.approx([whole * end for end in ends], abs=1e-9)
    assert found.stderr == pytest.approx(
        whole * (ends[1] - ends[0]) / 2 / t if is_joined else stderr, rel=1e-9
    )
    assert found.reason == "beware"
    if is_joined:  # one error doesn't narrow it from [0.845, 1] to [0.9989, 1]
        assert abs(ends[0] - 0.845) < 0.004


@pytest.mark.parametrize(
    ("sizes", "told"),
    [([6, *[2] * 7], "30%"), ([5, *[1] * 20], ""), ([3, 1, 1, 1], ""), ([4, 1, 1], "")],
)
def test_a_cluster_of_more_than_a_fifth_and_twice_its_share_is_told(sizes, told):
    found = estimate(shares([k % 2 for k in range(len(sizes))], sizes))
    assert found.reason == (
        f"one of the clusters has {told} of the items: {UNEVEN}" if told else ""
    )


def mean(low=0.0, high=1.0):
    return clustered_mean(
        "shares/hits", value=lambda r: r["x"], cluster=lambda r: r["group"], summary="hits", low=low, high=high,
        neutral=0.5, direction="more hits", unit="proportion", source="Table 1", higher_is_better=False,
    )  # fmt: skip


# 2 of 4, 1 of 6 and 3 of 5
RECORDS = [
    {"x": float(x), "group": group}
    for group, own in ((7, "1100"), (8, "100000"), (9, "10101"))
    for x in own
]


def test_the_mean_is_summed_without_rounding_and_of_numbers_alone():
    records = [{"x": x, "group": k} for k, x in enumerate((1e16, 1.0, -1e16, 1.0))]
    assert mean(high=math.inf).compute(records).value == 0.5  # 1e16 + 1 is 1e16
    for odd in (math.nan, math.inf):
        records = [*RECORDS, {"x": odd, "group": 7}, {"x": odd, "group": 8}]
        found = mean().compute(records)
        assert math.isnan(found.value)
        assert (found.reason, found.n) == ("the model gave nan for 2 of 17 items", 17)
        assert reason_of(mean().design, records) == found.reason


def test_an_end_of_the_range_that_hangs_on_one_cluster_has_no_interval():
    # the second column lies in one cluster: without it there is no difference
    columns = [[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    form = tabulate("aabc", np.transpose(columns), difference_of, bounds=(-1.0, 1.0))
    found = form.estimate()
    assert (found.value, found.interval) == (1.0, None)
    assert "no value without one of the clusters" in found.reason
    assert (
        paired(form, replace(form, totals=form.totals[:, [2, 3, 0, 1]])).interval
        is None
    )


def test_a_record_without_a_value_has_no_part_in_a_mean():
    score = clustered_mean(
        "m", value=lambda r: r["x"], cluster=lambda r: r["c"], low=0.0, high=1.0
    )
    records = [{"x": float(i % 3 == 0), "c": i % 5} for i in range(20)]
    more = [*records, {"x": None, "c": 7}]
    assert score.compute(more) == score.compute(records)
    assert score.contribution(more[-1]) is None
    assert score.compute([{"x": None, "c": 7}]).reason == "no items"
