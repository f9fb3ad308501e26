"""A mean of the items' own values as a finished score, and the draws that resample a crossed layout."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.custom_metrics import bootstrap
from lm_eval_bias.custom_metrics.clustered import clustered_mean


def mean(low=0.0, high=1.0):
    return clustered_mean(
        "shares/hits", value=lambda r: r["x"], cluster=lambda r: r["group"], summary="hits", low=low, high=high,
        neutral=0.5, direction="more hits", unit="proportion", source="Table 1", higher_is_better=False,
    )  # fmt: skip


# 2 of 4 and 1 of 6: means 1/2 and 1/6 without each other
RECORDS = [{"x": float(x), "group": group} for group, own in ((7, "1100"), (8, "100000")) for x in own]


def test_the_mean_of_all_items_with_its_error_over_clusters():
    found = mean().compute(RECORDS)
    assert (found.value, found.n, found.reason) == (0.3, 10, "")
    stderr = math.sqrt(1 / 2 * ((1 / 6 - 0.3) ** 2 + (1 / 2 - 0.3) ** 2))
    assert found.stderr == pytest.approx(stderr, abs=1e-12)
    assert found.dof == pytest.approx(10**2 / (4**2 + 6**2) - 1)
    form = mean().table(RECORDS)
    assert (form.names, form.sizes.tolist(), form.totals.tolist()) == (["7", "8"], [4, 6], [[4, 2], [6, 1]])
    assert form.value == pytest.approx(0.3, abs=1e-12)
    assert not form.composite


def test_a_mean_from_0_to_its_highest_value_has_wilson_s_interval():
    one, ten = mean().compute(RECORDS), mean(high=10.0).compute([{**r, "x": 10 * r["x"]} for r in RECORDS])
    size, t = 0.3 * 0.7 / one.stderr**2, stats.t.ppf(0.975, 1)
    for end in one.interval:  # the value is t standard errors of that end away
        assert abs(end - 0.3) == pytest.approx(t * math.sqrt(end * (1 - end) / size), rel=1e-9)
    assert ten.interval == pytest.approx([10 * end for end in one.interval], rel=1e-9)
    for other in (mean(low=-1.0), mean(low=0.1), mean(high=math.inf)):
        assert other.compute(RECORDS).interval is None


def test_the_mean_is_summed_without_rounding():
    records = [{"x": x, "group": k} for k, x in enumerate((0.1,) * 10)]
    assert mean().compute(records).value == 0.1  # 0.1 + 0.1 + ... is 0.9999999999999999


def test_items_without_a_number_are_counted():
    for odd in (math.nan, math.inf):
        records = [*RECORDS, {"x": odd, "group": 7}, {"x": odd, "group": 8}]
        found = mean().compute(records)
        assert math.isnan(found.value)
        assert (found.reason, found.n) == ("the model gave nan for 2 of 12 items", 12)
        assert mean().table(records) == found.reason
    assert mean().table([]) == mean().compute([]).reason == "no items"


def test_a_score_is_what_it_was_said_to_be():
    score = mean(low=0.1, high=0.9)
    assert (score.name, score.summary, score.source, score.direction) == ("shares/hits", "hits", "Table 1", "more hits")
    assert (score.low, score.high, score.neutral, score.unit) == (0.1, 0.9, 0.5, "proportion")
    assert score.higher_is_better is False
    assert score.sample(RECORDS[0]) == 1
    plain = clustered_mean("x", value=len, cluster=len, summary="", low=0, high=1, neutral=None, direction="", unit="")
    assert (plain.neutral, plain.source, plain.higher_is_better) == (None, "", None)


# ---------------------------------------------------------------------------------------------- draws for a bootstrap


def test_unequal_clusters_are_worth_fewer():
    assert bootstrap.effective_size([1, 2, 3]) == pytest.approx(36 / 14, abs=1e-12)
    assert bootstrap.effective_size(np.array([200] * 2, dtype=np.uint8)) == 2  # whose squares are no bytes
    assert bootstrap.effective_size([5]) == 1


def test_draws_of_rows_and_columns_are_the_same_as_one_by_one():
    groups, columns, draws = [np.array([4, 0, 2]), np.array([1, 3])], 3, 40
    rng = np.random.default_rng(bootstrap.SEED)
    counts = rng.multinomial(columns, [1 / 3] * 3, size=draws)
    ((weights, rows),) = bootstrap.pigeonhole(groups, columns, draws)
    # shares of columns around 1/3, whose deviations are wider by sqrt(3 / 2)
    assert weights == pytest.approx(1 / 3 + (counts / 3 - 1 / 3) * math.sqrt(3 / 2), abs=1e-12)
    assert weights.sum(axis=1) == pytest.approx(np.ones(draws))
    for drawn in rows:
        places = rng.integers(0, [3, 3, 3, 2, 2])
        assert drawn.tolist() == [[4, 0, 2][k] for k in places[:3]] + [[1, 3][k] for k in places[3:]]


def test_weighted_column_means_vary_as_the_variance_of_a_mean_says():
    columns = np.array([0.1, 0.5, 0.2, 0.9])
    drawn = np.concatenate([weights for weights, _ in bootstrap.pigeonhole([np.arange(2)], 4, 20_000)]) @ columns
    assert drawn.std() == pytest.approx(columns.std(ddof=1) / 2, rel=0.02)
    assert drawn.mean() == pytest.approx(columns.mean(), abs=0.005)


def test_draws_are_seeded_and_come_in_parts(monkeypatch):
    groups = [np.arange(5)]
    (whole,) = bootstrap.pigeonhole(groups, 2)
    assert whole[0].shape == (2000, 2)
    assert whole[1].shape == (2000, 5)
    (other,) = bootstrap.pigeonhole(groups, 2, seed=bootstrap.SEED + 1)
    assert not np.array_equal(whole[0], other[0])
    assert not np.array_equal(whole[1], other[1])
    monkeypatch.setattr(bootstrap, "AT_A_TIME", 4 * 5)
    parts = list(bootstrap.pigeonhole(groups, 2, 10))
    assert [len(weights) for weights, _ in parts] == [len(rows) for _, rows in parts] == [4, 4, 2]
    monkeypatch.setattr(bootstrap, "AT_A_TIME", 3)  # less than one draw
    ones = list(bootstrap.pigeonhole(groups, 2, 10))
    assert [len(rows) for _, rows in ones] == [1] * 10
    for number in (0, 1):
        pieces, singles = (np.concatenate([one[number] for one in own]) for own in (parts, ones))
        assert np.array_equal(pieces, singles)
