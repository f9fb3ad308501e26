"""Differences of two scores: by hand, and against slow versions that swap and flip one draw at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.custom_metrics import crossed, designs, resampling
from lm_eval_bias.custom_metrics.score import NOTHING_VARIED

SAME = pytest.approx


def two_sided(t, dof):
    return 2 * stats.t.sf(abs(t), dof)


# -------------------------------------------------------------------------------------------------- what it amounts to


def difference(**fields):
    own = {"value": 0.4, "stderr": 0.1, "dof": 5.0, "p": 0.02, "test": "swaps", "sum_value": 1.0, "sum_stderr": 0.2}
    return resampling.Difference(**{**own, **fields})


def test_an_interval_is_student_s():
    half = stats.t.ppf(0.975, 5) * 0.1
    assert difference().interval == SAME((0.4 - half, 0.4 + half), abs=1e-12)
    assert difference(stderr=math.nan).interval is None
    assert difference(value=math.nan).interval is None


@pytest.mark.parametrize("level", [0.05, 0.001])
def test_what_is_detectable(level):
    expected = (stats.t.ppf(1 - level / 2, 5) + stats.t.ppf(0.8, 5)) * 0.1
    assert difference().detectable(level) == SAME(expected, rel=1e-9)
    assert difference().detectable() == difference().detectable(0.05)


def test_a_test_that_cannot_reject_gives_way_to_student_s_t():
    able = difference(least_p=0.0125)  # four of its p-values are at most 0.05
    assert able.at_level(0.05) is able
    assert able.at_level(0.049).test == "Student's t on clusters"
    alike = difference(least_p=0.05, stderr=math.nan)
    assert alike.at_level(0.05) is alike  # without an error there is no other test
    assert difference().at_level(0.05) == difference()  # which has no least p
    unable = difference(least_p=0.06, reason="beware")
    tested = unable.at_level(0.05)
    assert tested == replace(unable, p=tested.p, test="Student's t on clusters", least_p=0)
    assert tested.p == SAME(two_sided(4, 5), rel=1e-9)
    nothing = difference(least_p=0.06, stderr=math.nan, reason="nothing varied").at_level(0.05)
    assert math.isnan(nothing.p)
    assert (nothing.test, nothing.reason) == ("", "nothing varied")
    few = difference(least_p=0.06, dof=1.0).at_level(0.05)
    assert math.isnan(few.p)
    assert few.test == ""
    assert few.reason.startswith("too few clusters for a test")
    assert difference(least_p=0.06, dof=1.01).at_level(0.05).p == SAME(two_sided(4, 1.01), rel=1e-9)


def test_p_values_of_student_s_t():
    assert resampling.student_p(-0.3, 0.1, 4) == SAME(two_sided(3, 4), rel=1e-9)
    assert resampling.student_p(0.3, 0.1, math.inf) == SAME(2 * stats.norm.sf(3), rel=1e-9)
    assert resampling.student_p(0.0, 0.1, 4) == 1
    assert math.isnan(resampling.student_p(0.3, math.nan, 4))


def test_p_values_of_resamples():
    def p(observed, beyond, *statistics):
        return resampling.resampled_p(np.array(statistics), observed, "swaps", beyond, "exact")

    assert p(2.0, 0.001, 1.0, -3.0, 2.0, math.nan, math.inf) == (3 / 4, "swaps")
    assert p(-2.0, 0.001, 1.0, -3.0, 1.0) == (2 / 4, "swaps")
    further = "swaps, beyond all resamples exact"
    assert p(5.0, 0.1, 1.0, -3.0, 2.0) == (0.1, further)
    assert p(5.0, 0.3, 1.0, -3.0, 2.0) == p(5.0, 0.25, 1.0, -3.0, 2.0) == (1 / 4, "swaps")
    assert p(5.0, math.nan, 1.0) == (1 / 2, "swaps")
    # as far out but for rounding: a part in a billion, or 1e-15 about 0
    assert p(2.0, 0.1, 2.0 * (1 - 0.9e-9)) == (1, "swaps")
    assert p(2.0, 0.1, 2.0 * (1 - 1.2e-9)) == (0.1, further)
    assert p(3e-15, 0.1, 2.1e-15) == (1, "swaps")
    assert p(3e-15, 0.1, 1.8e-15) == (0.1, further)


# ------------------------------------------------------------------------------------------------------------ clusters


def shares(*clusters, **more):
    """A share from each cluster's hits and size."""
    totals = np.array([[size, hits] for hits, size in clusters], dtype=float)
    names = [f"c{k:02d}" for k in range(len(clusters))]
    return designs.Clusters(names, totals[:, 0], totals, designs.share_of, **more)


A = [(3, 4), (5, 9), (6, 6), (2, 8), (7, 7), (4, 10), (1, 2), (3, 5)]
B = [(2, 4), (4, 9), (3, 6), (3, 8), (2, 7), (1, 10), (0, 2), (4, 5)]


def share(clusters):
    return sum(hits for hits, _ in clusters) / sum(size for _, size in clusters)


def slow_swaps(a, b, draws, seed):
    """How many swaps of whole clusters are as far out as the data."""
    unswapped = np.random.default_rng([seed, len(a)]).random((draws, len(a))) < 0.5
    observed, further = abs(share(a) - share(b)), 0
    for row in unswapped:
        first = [x if stays else y for stays, x, y in zip(row, a, b, strict=True)]
        second = [y if stays else x for stays, x, y in zip(row, a, b, strict=True)]
        further += abs(share(first) - share(second)) >= observed - 1e-12
    return further


@pytest.mark.parametrize(("draws", "seed"), [(300, 5), (2_300, 6)])
def test_models_are_swapped_by_cluster(draws, seed):
    found = resampling.paired(shares(*A), shares(*B), draws, seed)
    further = slow_swaps(A, B, draws, seed)
    assert 0 < further < draws
    assert (found.p, found.test) == ((1 + further) / (1 + draws), "models swapped by cluster")
    assert found.value == SAME(share(A) - share(B), abs=1e-12)
    assert found.sum_value == SAME(share(A) + share(B), abs=1e-12)
    sizes = [size for _, size in A]
    assert found.dof == SAME(sum(sizes) ** 2 / sum(n * n for n in sizes) - 1)
    assert found.least_p == 2 / 2**8  # two of the ways to swap eight clusters
    assert found.reason == ""
    for sign, stderr in ((-1, found.stderr), (1, found.sum_stderr)):
        without = [share(A[:k] + A[k + 1 :]) + sign * share(B[:k] + B[k + 1 :]) for k in range(8)]
        whole = share(A) + sign * share(B)
        assert stderr == SAME(math.sqrt(7 / 8 * sum((one - whole) ** 2 for one in without)), abs=1e-12)


def test_there_are_10_000_swaps_of_a_fixed_seed():
    found = resampling.paired(shares(*A), shares(*B))
    assert found == resampling.paired(shares(*A), shares(*B), 10_000, resampling.SEED)
    assert found.p * 10_001 == SAME(round(found.p * 10_001), abs=1e-9)
    assert found.p != resampling.paired(shares(*A), shares(*B), seed=resampling.SEED + 1).p


def test_beyond_all_swaps_student_s_t_goes_on_as_far_as_there_are_swaps():
    even = [(10 - k % 2, 20) for k in range(10)]
    clear, blank = shares(*[(hits + 9, 20) for hits, _ in even[:9]], (17, 20)), shares(*even)
    found = resampling.paired(clear, blank, 100, 4)
    assert found.test == "models swapped by cluster, beyond all resamples Student's t"
    assert two_sided(found.value / found.stderr, found.dof) < 2**-9
    assert found.p == 2**-9  # two of 1,024 ways
    # many clusters: Student's t itself
    many = [(10 + k % 3, 20) for k in range(40)]
    found = resampling.paired(shares(*[(hits + k % 5, 20) for k, (hits, _) in enumerate(many)]), shares(*many), 100, 3)
    assert found.p == SAME(two_sided(found.value / found.stderr, 39), rel=1e-9)
    assert found.p < 1 / 101


def test_beyond_all_swaps_where_all_clusters_agree_there_is_one_way():
    found = resampling.paired(shares(*[(9, 10)] * 12), shares(*[(4, 10)] * 12), 100, 3)
    assert (found.p, found.test) == (2**-11, "models swapped by cluster, beyond all resamples exact")
    assert math.isnan(found.stderr)
    assert found.value == SAME(0.5)
    assert found.reason == "nothing varied between clusters: no standard error"


def test_a_score_without_a_value_for_a_cluster_left_out_goes_on_with_nothing():
    def form(hits):
        return shares(*[(0, 0)] * 11, (hits, 10))

    found = resampling.paired(form(8), form(4), 50, 3)
    assert (found.p, found.test) == (1.0, "models swapped by cluster")  # every swap is as far out
    assert math.isnan(found.stderr)


def test_equal_answers_are_no_difference():
    found = resampling.paired(shares(*A), shares(*A), 50)
    assert (found.value, found.p, found.least_p, found.test) == (0, 1, 0, "")
    assert found.reason == "the models' answers are the same in every cluster"
    assert found.sum_stderr > 0
    few = resampling.paired(shares(*A[:3]), shares(*A[:3]), 50)  # which swaps couldn't tell apart in any case
    assert (few.p, few.reason) == (1, found.reason)


def test_composite_scores_are_tested_by_student_s_t():
    found = resampling.paired(shares(*A, composite=True), shares(*B, composite=True), 50)
    assert (found.test, found.least_p) == ("Student's t on clusters", 0)
    assert found.p == SAME(two_sided(found.value / found.stderr, found.dof), rel=1e-9)
    assert found.reason == ""


def test_too_few_clusters_for_a_test():
    one = resampling.paired(shares((3, 4)), shares((1, 4)), 50)
    assert math.isnan(one.p)
    assert (one.value, one.sum_value, one.reason, one.test) == (0.5, 1, "only one cluster", "")
    assert math.isnan(one.stderr)
    two = resampling.paired(shares((3, 4), (4, 40)), shares((1, 4), (8, 40)), 50)
    assert math.isnan(two.p)
    assert two.dof == 1  # worth 1.2 clusters, taken for two
    assert two.reason.startswith("too few clusters for a test")
    assert two.stderr > 0
    three = resampling.paired(shares(*A[:3]), shares(*B[:3]), 50)
    assert three.test == "Student's t on clusters"


def test_a_model_without_a_value_has_no_difference():
    b = shares((1, 2), (3, 4))
    found = resampling.paired(replace(b, totals=np.zeros((2, 2))), b, 50)
    assert math.isnan(found.value)
    assert math.isnan(found.p)
    assert found.reason == "a model has no value"


# --------------------------------------------------------------------------------------------------------------- cells


def cells(matrix, strata=(), correlation=False):
    n_rows, n_columns = matrix.shape
    items, templates = [f"i{k}" for k in range(n_rows)], [f"t{k}" for k in range(n_columns)]
    return designs.Cells(items, templates, matrix, strata, correlation)


def table(seed=1, shape=(7, 5), rows=0.5, columns=0.3):
    rng = np.random.default_rng(seed)
    return (
        rows * rng.normal(size=(shape[0], 1)) + columns * rng.normal(size=(1, shape[1])) + 0.3 * rng.normal(size=shape)
    )


def slow_flips(matrix, draws, seed, strata=()):
    """One table a draw: shrunk effects and widened residuals with their signs, and the mean over its standard error."""
    n_rows, n_columns = matrix.shape
    labels = list(strata) or [""] * n_rows
    row, residual, noise = np.zeros(n_rows), np.zeros(matrix.shape), 0.0
    for label in set(labels):
        own = [k for k in range(n_rows) if labels[k] == label]
        part, n = matrix[own], len(own)
        effects = part.mean(axis=1) - part.mean()
        rest = part - part.mean(axis=1)[:, None] - part.mean(axis=0) + part.mean()
        interaction = (rest**2).sum() / ((n - 1) * (n_columns - 1))
        # a row mean varies by its effect and by a part of the interaction
        variance = max(0.0, effects.var(ddof=1) - interaction / n_columns)
        row[own] = effects * math.sqrt(variance / effects.var())
        residual[own] = rest * math.sqrt(interaction / (rest**2).mean())
        noise += n * interaction / n_rows**2
    column = matrix.mean(axis=0) - matrix.mean()
    column *= math.sqrt(max(0.0, column.var(ddof=1) - noise) / column.var())
    rng, found = np.random.default_rng(seed), []
    while len(found) < draws:
        size = min(100, draws - len(found))  # as many at a time as the fast version draws
        shapes = (size, n_rows, 1), (size, 1, n_columns), (size, n_rows, n_columns)
        signs = [rng.integers(0, 2, shape, dtype=np.int8) * 2.0 - 1 for shape in shapes]
        for s, t, u in zip(*signs, strict=True):
            one = s * row[:, None] + t * column + u * residual
            found.append(one.mean() / crossed.crossed_stderr(one, strata)[0])
    return np.array(found)


@pytest.mark.parametrize(
    ("strata", "rows", "columns"),
    [((), 0.5, 0.3), ("aabbbab", 0.5, 0.3), ("aabbbab", 0.0, 0.3), ((), 0.5, 0.0), ((), 0.0, 0.0)],
)
def test_signs_are_flipped_by_row_column_and_cell(strata, rows, columns):
    matrix = table(rows=rows, columns=columns)
    found = resampling.flipped_t(matrix, 230, 9, list(strata))
    assert found == SAME(slow_flips(matrix, 230, 9, list(strata)), rel=1e-7, abs=1e-9)


def test_large_tables_are_flipped_fewer_at_a_time(monkeypatch):
    sizes, plain = [], resampling.studentised
    monkeypatch.setattr(resampling, "studentised", lambda *own: (sizes.append(len(own[2])), plain(*own))[1])
    monkeypatch.setattr(resampling, "AT_A_TIME", 35 * 4)
    assert len(resampling.flipped_t(table(), 10, 9)) == 10
    assert sizes == [4, 4, 2]
    monkeypatch.setattr(resampling, "AT_A_TIME", 30)  # less than one table
    sizes.clear()
    assert np.isfinite(resampling.flipped_t(table(), 3, 9)).all()
    assert sizes == [1, 1, 1]


@pytest.mark.parametrize("strata", [(), "aabbbab"])
def test_studentised_means_from_sums_alone(strata):
    rng = np.random.default_rng(2)
    row, column, rest = rng.normal(0.2, 1, (6, 7)), rng.normal(0, 1, (6, 4)), rng.normal(0, 1, (6, 7, 4))
    row[0], column[1], rest[2] = 0, 0, rest[2] / 9
    tables = row[:, :, None] + column[:, None, :] + rest
    groups = crossed.rows_by_stratum(tables[0], list(strata)) if strata else ()
    expected = [one.mean() / crossed.crossed_stderr(one, list(strata))[0] for one in tables]
    assert resampling.studentised(row, column, rest, groups) == SAME(expected, rel=1e-9)


def test_means_of_tables_that_don_t_vary_are_no_numbers():
    with np.errstate(all="raise"):
        found = resampling.studentised(np.array([[0.0] * 3, [1.0] * 3]), np.zeros((2, 2)), np.zeros((2, 3, 2)))
    assert math.isnan(found[0])
    assert found[1] == math.inf


@pytest.mark.parametrize("strata", [(), "aabbbab"])
def test_a_difference_of_means_over_items_and_templates(strata):
    a, b = table(1) + 0.4, table(2)
    found = resampling.paired(cells(a, list(strata)), cells(b, list(strata)), 300, 9)
    assert found.value == SAME((a - b).mean(), abs=1e-12)
    assert found.sum_value == SAME((a + b).mean(), abs=1e-12)
    assert (found.stderr, found.dof) == crossed.crossed_stderr(a - b, list(strata))
    assert found.sum_stderr == crossed.crossed_stderr(a + b, list(strata))[0]
    t = found.value / found.stderr
    further = (np.abs(slow_flips(a - b, 300, 9, list(strata))) >= abs(t)).sum()
    assert 0 < further < 300
    assert found.p == SAME((1 + further) / 301, abs=1e-12)
    assert (found.test, found.reason, found.least_p) == ("signs flipped by item, template and cell", "", 0)


def test_beyond_all_flips_student_s_t_goes_on_with_the_smaller_factor_s_degrees_of_freedom():
    matrix = table(3, (12, 5), rows=0.4, columns=0.0)
    found = resampling.paired(cells(matrix + 3), cells(0 * matrix), 100, 9)
    assert found.dof > 4
    assert found.test == "signs flipped by item, template and cell, beyond all resamples Student's t"
    assert found.p == SAME(two_sided(found.value / found.stderr, 4), rel=1e-9)
    least = resampling.paired(cells(table(3, (5, 12)) + 3), cells(np.zeros((5, 12))), 100, 9)
    assert least.p == SAME(two_sided(least.value / least.stderr, min(4, least.dof)), rel=1e-9)


@pytest.mark.parametrize(("templates", "flips"), [(2, False), (3, False), (4, True)])
def test_fewer_than_four_templates_are_not_flipped(templates, flips):
    matrix = table(4, (9, templates))
    found = resampling.paired(cells(matrix + 0.2), cells(0 * matrix), 100, 9)
    assert found.test.startswith("signs flipped" if flips else "Student's t, few templates")
    stderr, dof = crossed.crossed_stderr(matrix)
    assert found.stderr == SAME(stderr)
    if not flips:
        assert found.dof == SAME(min(dof, templates - 1))
        assert found.p == SAME(two_sided(found.value / stderr, found.dof), rel=1e-9)
        assert found.sum_stderr == SAME(stderr)
        assert found.sum_value == found.value


def test_correlations_are_tested_on_fishers_z():
    matrix, other = table(5) / 10, table(6) / 10
    matrix, other = matrix - matrix.mean() + 0.8, other - other.mean() + 0.6
    found = resampling.paired(cells(matrix, correlation=True), cells(other, correlation=True), 100, 9)
    stderr, _ = crossed.crossed_stderr(matrix - other)
    of_z, dof = crossed.crossed_stderr((matrix - 0.8) / (1 - 0.8**2) - (other - 0.6) / (1 - 0.6**2))
    assert (found.stderr, found.dof) == (SAME(stderr), SAME(dof))
    assert found.sum_stderr == SAME(crossed.crossed_stderr(matrix + other)[0])
    assert (found.test, found.reason) == ("Student's t on Fisher's z", "")
    assert found.p == SAME(two_sided((math.atanh(0.8) - math.atanh(0.6)) / of_z, dof), rel=1e-9)
    assert found.sum_value == SAME(1.4)


@pytest.mark.parametrize("shape", [(1, 4), (4, 1)])
def test_one_item_or_one_template_has_no_test(shape):
    found = resampling.paired(cells(np.ones(shape)), cells(np.zeros(shape)), 100)
    assert (found.value, found.sum_value, found.test) == (1, 1, "")
    assert all(map(math.isnan, (found.stderr, found.dof, found.p, found.sum_stderr)))
    assert found.reason == f"needs at least 2 items and 2 templates, there are {shape[0]} and {shape[1]}"
    two = resampling.paired(cells(table(1, (2, 2))), cells(table(2, (2, 2))), 100)
    assert 0 < two.p < 1


def test_where_nothing_varies_there_is_no_error():
    matrix = table(6)
    found = resampling.paired(cells(matrix + 0.5), cells(matrix), 100)
    assert found.value == SAME(0.5)
    assert all(map(math.isnan, (found.stderr, found.p)))
    assert (found.reason, found.test) == (NOTHING_VARIED, "")
    assert found.sum_value == SAME(2 * matrix.mean() + 0.5)
    assert found.sum_stderr == SAME(crossed.crossed_stderr(2 * matrix)[0])
    same = resampling.paired(cells(matrix), cells(matrix), 100)
    assert (same.value, same.p, same.reason) == (0, 1, "the models' answers are the same in every cell")
    assert math.isnan(same.stderr)
    constant = resampling.paired(cells(np.full((3, 4), 0.75)), cells(np.full((3, 4), 0.25)), 100)
    assert math.isnan(constant.sum_stderr)
    assert constant.value == SAME(0.5)


@pytest.mark.parametrize(("value", "varied"), [(0.0, 3.0), (0.0, 0.3), (1e3, 3e3), (1e3, 3e2)])
def test_errors_of_1e_12_of_the_value_are_rounding(value, varied):
    matrix = table(7)
    matrix = (matrix - matrix.mean()) * (1e-12 * varied / crossed.crossed_stderr(matrix)[0])
    found = resampling.paired(cells(value + matrix), cells(0 * matrix), 100)
    assert math.isnan(found.stderr) == (varied < max(1.0, value))


# ------------------------------------------------------------------------------------------------------ what fits what


def test_differences_are_of_the_same_layout():
    a, b = shares(*A), shares(*B)
    with pytest.raises(ValueError, match="^the clusters differ$"):
        resampling.paired(a, replace(b, names=[f"d{k}" for k in range(7)]))
    one = cells(table())
    for other in ({"items": list("abcdefg")}, {"templates": list("abcde")}, {"strata": list("aaabbbb")}):
        with pytest.raises(ValueError, match="^the items, templates or strata differ$"):
            resampling.paired(one, replace(one, **other))
    for first, second in ((a, one), (one, a)):
        with pytest.raises(ValueError, match="^the layouts differ$"):
            resampling.paired(first, second)


def test_scores_that_share_nothing():
    found = resampling.unpaired((1.0, 0.3, 10.0), (0.2, 0.4, 20.0))
    dof = 0.5**4 / (0.3**4 / 10 + 0.4**4 / 20)
    assert (found.value, found.sum_value) == (SAME(0.8), SAME(1.2))
    assert (found.stderr, found.sum_stderr, found.dof) == (SAME(0.5), SAME(0.5), SAME(dof))
    assert found.p == SAME(two_sided(1.6, dof), rel=1e-9)
    assert (found.test, found.reason) == ("Welch's t, unpaired", "")
    normal = resampling.unpaired((1.0, 0.3, math.inf), (0.2, 0.4, math.inf))
    assert (normal.dof, normal.p) == (math.inf, SAME(2 * stats.norm.sf(1.6), rel=1e-9))
    for first, second in (((1.0, math.nan, 3.0), (0.2, 0.4, 3.0)), ((1.0, 0.3, 3.0), (0.2, 0.0, 3.0))):
        none = resampling.unpaired(first, second)
        assert (none.value, none.sum_value, none.reason, none.test) == (SAME(0.8), SAME(1.2), "no standard error", "")
        assert all(map(math.isnan, (none.stderr, none.dof, none.p, none.sum_stderr)))
