"""Differences of two models' scores: by hand, against slow formulas, where there is none."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.comparing.power import smallest_difference
from lm_eval_bias.custom_metrics import crossed, differences
from lm_eval_bias.custom_metrics.clusters import share_of, tabulate
from lm_eval_bias.custom_metrics.crossed import Cells
from lm_eval_bias.custom_metrics.differences import paired, pairwise, unpaired
from lm_eval_bias.custom_metrics.score import NOTHING_VARIED
from tests.support.oracles import shares

SAME = pytest.approx


def two_sided(t, dof):
    return 2 * stats.t.sf(abs(t), dof)


def test_the_interval_and_what_is_detectable():
    found = differences.Difference(
        value=0.4, stderr=0.1, dof=5.0, p=0.02, sum_value=1.0, sum_stderr=0.2
    )
    half = stats.t.ppf(0.975, 5) * 0.1
    assert found.interval == SAME((0.4 - half, 0.4 + half), abs=1e-12)
    assert (
        replace(found, stderr=math.nan).interval
        is replace(found, value=math.nan).interval
        is None
    )
    assert replace(found, stderr=math.nan, ends=(0.1, 0.9)).interval == (0.1, 0.9)
    wide = replace(found, value=1.5, stderr=1.0, span=2.0)
    assert (wide.interval[1], math.isnan(smallest_difference(wide))) == (2.0, True)
    for level in (0.05, 0.001):
        expected = (stats.t.ppf(1 - level / 2, 5) + stats.t.ppf(0.8, 5)) * 0.1
        assert smallest_difference(found, level) == SAME(expected, rel=1e-9)
    assert math.isnan(
        smallest_difference(replace(found, p=math.nan))
    )  # without a test nothing is promised


def hits_of(*clusters, strata=()):
    return shares(*zip(*clusters, strict=True), strata)


A = [(3, 4), (5, 9), (6, 6), (2, 8), (7, 7), (4, 10), (1, 2), (3, 5)]
B = [(2, 4), (4, 9), (3, 6), (3, 8), (2, 7), (1, 10), (0, 2), (4, 5)]


def share(clusters):
    return sum(hits for hits, _ in clusters) / sum(size for _, size in clusters)


def test_students_t_on_the_jackknife_of_the_difference():
    found = paired(hits_of(*A), hits_of(*B))
    assert found.sum_value == SAME(share(A) + share(B), abs=1e-12)
    sizes = [size for _, size in A]
    assert found.dof == SAME(sum(sizes) ** 2 / sum(n * n for n in sizes) - 1)
    for sign, stderr in ((-1, found.stderr), (1, found.sum_stderr)):
        kept = [(A[:k] + A[k + 1 :], B[:k] + B[k + 1 :]) for k in range(8)]
        whole = share(A) + sign * share(B)
        off = whole - np.array([share(a) + sign * share(b) for a, b in kept])
        assert stderr == SAME(math.sqrt(7 / 8 * sum(off**2)), abs=1e-12)
    # of equal clusters it is the t-test of their differences
    a, b = np.random.default_rng(3).integers(0, 26, (2, 12))
    found = paired(*(hits_of(*((hits, 25) for hits in own)) for own in (a, b)))
    test = stats.ttest_1samp((a - b) / 25, 0)
    assert (found.p, found.value / found.stderr, found.dof) == SAME(
        (test.pvalue, test.statistic, 11), rel=1e-9
    )
    assert (found.test, found.reason, found.ends) == ("Student's t", "", None)


def test_a_cluster_of_one_model_alone_counts_for_both():
    """A model kept no text of the second context, which was drawn all the same."""
    a = hits_of((5, 10), (8, 20), (1, 10), (4, 10), strata="aabb")
    b = hits_of((3, 10), (0, 0), (6, 10), (5, 10), strata="aabb")
    found = paired(a, b)
    # without one of a stratum's two contexts the other counts twice, for both models
    of_a = [16 + 5, 10 + 5, 13 + 8, 13 + 2], [40 + 20, 20 + 20, 30 + 20, 30 + 20]
    of_b = [0 + 11, 6 + 11, 3 + 10, 3 + 12], [0 + 20, 20 + 20, 10 + 20, 10 + 20]
    changes = np.divide(*of_a) - np.divide(*of_b) - (18 / 50 - 14 / 30)
    parts = [
        (changes[0] ** 2 + changes[1] ** 2) / 2,
        (changes[2] ** 2 + changes[3] ** 2) / 2,
    ]
    assert found.stderr == SAME(math.sqrt(sum(parts)), abs=1e-12)
    # sizes of both together: 20, 20 | 20, 20
    assert found.dof == SAME(
        sum(parts) ** 2 / (parts[0] ** 2 + parts[1] ** 2), rel=1e-9
    )


def test_too_few_clusters_for_a_test():
    one = paired(hits_of((3, 4)), hits_of((1, 4)))
    assert all(map(math.isnan, (one.p, one.stderr)))
    few = "a standard error needs items of at least 2 clusters"
    assert (one.value, one.sum_value, one.reason) == (0.5, 1, few)
    # nor are the same answers to one cluster evidence
    assert math.isnan(paired(hits_of((3, 4)), hits_of((3, 4))).p)
    for n, m in ((4, 40), (20, 20)):  # worth 1.2 clusters, and 2
        two = paired(hits_of((3, n), (4, m)), hits_of((1, n), (8, m)))
        assert math.isnan(two.p)
        assert two.reason.startswith("too few clusters for a test")
        assert two.stderr > 0
    three = paired(hits_of(*A[:3]), hits_of(*B[:3]))
    assert 1 < three.dof < 2
    assert 0 < three.p < 1


def test_a_model_without_a_value_has_no_difference():
    b, half = (
        hits_of((1, 2), (3, 4)),
        replace(hits_of((8, 10), (0, 0), (0, 0)), sizes=np.full(3, 5.0)),
    )
    none = paired(replace(b, totals=np.zeros((2, 2))), b)
    without = paired(half, replace(half, totals=half.totals / [1, 2]))
    assert (none.value, none.reason) == (
        SAME(math.nan, nan_ok=True),
        "a model has no value",
    )
    reason = "no standard error: the score has no value without one of the clusters"
    assert (without.value, without.reason) == (SAME(0.4), reason)
    assert all(map(math.isnan, (none.p, without.stderr, without.p)))


def cells(matrix, strata=(), correlation=None):
    items, templates = (
        [f"{name}{k}" for k in range(size)]
        for name, size in zip("it", matrix.shape, strict=True)
    )
    return Cells(items, templates, matrix, strata, correlation)


def table(seed=1, shape=(7, 5)):
    rng = np.random.default_rng(seed)
    rows, columns, rest = (
        rng.normal(size=size) for size in ((shape[0], 1), (1, shape[1]), shape)
    )
    return 0.5 * rows + 0.3 * columns + 0.3 * rest


@pytest.mark.parametrize(
    ("shape", "fewest"), [((9, 2), 1), ((9, 3), 2), ((2, 3), 1), ((9, 4), math.inf)]
)
def test_fewer_than_four_templates_have_the_smaller_factors_degrees_of_freedom(
    shape, fewest
):
    matrix = table(4, shape)
    found, (stderr, dof) = (
        paired(cells(matrix + 0.2), cells(0 * matrix)),
        crossed.crossed_stderr(matrix),
    )
    assert (found.stderr, found.dof) == (SAME(stderr), SAME(min(dof, fewest)))
    assert found.p == SAME(two_sided(found.value / stderr, found.dof), rel=1e-9)


@pytest.mark.parametrize("strata", [[], list("aabbbab")])
def test_correlations_are_tested_on_fishers_z(strata):
    z, w = table(5) / 10 + 1.0, table(6) / 10 + 0.5
    a, b = (cells(m, strata, r) for m, r in ((z, 0.8), (w, 0.6)))
    found = paired(a, b)
    assert (found.value, found.sum_value) == (SAME(0.2), SAME(1.4))
    of_z, dof = crossed.crossed_stderr(z - w, strata)
    apart, together = (math.atanh(0.8) + sign * math.atanh(0.6) for sign in (-1, 1))
    assert (found.stderr, found.dof) == (SAME(of_z * 0.2 / apart), SAME(dof))
    of_sum = crossed.crossed_stderr(z + w, strata)[0]
    assert found.sum_stderr == SAME(of_sum * 1.4 / together)
    assert (found.test, found.reason) == ("Student's t on Fisher's z", "")
    assert found.p == SAME(two_sided(apart / of_z, dof), rel=1e-9)
    # of equal correlations the slope of Fisher's z
    equal = paired(a, replace(b, correlation=0.8))
    assert (equal.value, equal.stderr) == (0.0, SAME(of_z * (1 - 0.8**2)))


def test_all_agree_on_the_largest_difference():
    """A bounded mean at the end of its range has the interval of one observation a cluster, its difference too."""
    for count, one, other in (
        (5, cells(np.full((7, 5), 2.0)), cells(np.full((7, 5), -2.0))),
        (8, hits_of(*[(20, 10)] * 8), hits_of(*[(-20, 10)] * 8)),
    ):
        a, b = (replace(form, bounds=(-2.0, 2.0)) for form in (one, other))
        low = 4 * count / (count + stats.norm.ppf(0.975) ** 2) - 2
        assert a.estimate().interval == SAME((low, 2.0))
        assert (a.estimate().reason, a.estimate().dof) == ("", count - 1)
        found = paired(a, b)
        assert (found.value, found.interval) == (4.0, SAME((2 * low, 4.0)))
        assert found.p < 0.05
        assert paired(one, other).interval is None


def test_where_nothing_varies_there_is_no_error_and_no_test():
    matrix = table(6)
    for one, where in ((cells(matrix), "cell"), (hits_of(*A), "cluster")):
        same = paired(one, one)
        said = f"the models' answers are the same in every {where}"
        assert (same.value, same.p, same.reason) == (0, 1, said)
        assert math.isnan(same.stderr)
        assert min(same.dof, same.sum_stderr) > 0
    # what else the models differ in plays no part
    more = replace(one, totals=np.column_stack([one.totals, np.arange(8)]))
    assert (paired(one, more).p, paired(one, more).reason) == (1, same.reason)
    flat = "nothing varied between clusters: no standard error"
    few = "needs at least 2 items and 2 templates, there are 1 and 4"
    for first, second, value, reason in (
        (cells(matrix + 0.5), cells(matrix), 0.5, NOTHING_VARIED),
        (hits_of(*[(9, 10)] * 12), hits_of(*[(4, 10)] * 12), 0.5, flat),
        (cells(np.ones((1, 4))), cells(np.zeros((1, 4))), 1, few),
    ):
        found = paired(first, second)
        assert (found.value, found.reason) == (SAME(value), reason)
        assert all(map(math.isnan, (found.stderr, found.p)))
        assert found.interval is None


def test_differences_are_of_the_same_layout():
    a, b, one = hits_of(*A), hits_of(*B), cells(table())
    changes = {
        "items": list("abcdefg"),
        "templates": list("abcde"),
        "strata": list("aaabbbb"),
    }
    for first, second, reason in (
        (a, replace(b, names=[f"d{k}" for k in range(8)]), "the clusters differ"),
        (a, replace(b, strata=list("aabbaabb")), "the clusters differ"),
        *(
            (one, replace(one, **{k: v}), "the items, templates or strata differ")
            for k, v in changes.items()
        ),
        (a, one, "the layouts differ"),
        (one, a, "the layouts differ"),
    ):
        with pytest.raises(ValueError, match=f"^{reason}$"):
            paired(first, second)


def test_scores_that_share_nothing():
    found = unpaired((1.0, 0.3, 10.0), (0.2, 0.4, 20.0))
    # Welch's, of samples of 11 and 21 with these standard errors
    of_samples = 1.0, 0.3 * 11**0.5, 11, 0.2, 0.4 * 21**0.5, 21
    test = stats.ttest_ind_from_stats(*of_samples, equal_var=False)
    dof = 0.5**4 / (0.3**4 / 10 + 0.4**4 / 20)
    assert (found.p, found.dof) == SAME((test.pvalue, dof), rel=1e-9)
    assert (found.value, found.sum_value) == (SAME(0.8), SAME(1.2))
    assert (found.stderr, found.sum_stderr) == (SAME(0.5), SAME(0.5))
    assert (found.test, found.reason) == ("Welch's t, unpaired", "")
    normal = unpaired((1.0, 0.3, math.inf), (0.2, 0.4, math.inf))
    assert (normal.dof, normal.p) == (math.inf, SAME(2 * stats.norm.sf(1.6), rel=1e-9))
    for errors in ((math.nan, 0.4), (0.3, 0.0), (0.0, 0.4)):
        none = unpaired((1.0, errors[0], 3.0), (0.2, errors[1], 3.0))
        assert (none.value, none.reason) == (SAME(0.8), "no standard error")
        assert all(map(math.isnan, (none.stderr, none.dof, none.p, none.sum_stderr)))


@pytest.mark.parametrize("is_stratified", [False, True])
def test_all_pairs_at_once_are_each_pair_by_itself(is_stratified):
    rng = np.random.default_rng(1)
    clusters = rng.permutation(np.repeat(np.arange(12), 3))
    strata = [f"{cluster % 3}" for cluster in clusters] if is_stratified else ()
    rows = rng.integers(0, 2, (4, 36)).astype(float)
    rows[3] = rows[2]  # the same answers
    designs = [
        tabulate(clusters, [(1.0, v) for v in row], share_of, strata) for row in rows
    ]
    designs.append(replace(designs[0], names=[f"other {i}" for i in range(12)]))
    found = pairwise(designs)
    for (i, a), (j, b) in itertools.product(enumerate(designs), repeat=2):
        expected = [math.nan] * 5
        if i != j and 4 not in (i, j):
            d = paired(a, b)
            expected = [d.value, d.p, d.sum_value, d.sum_stderr, d.dof]
        assert found[:, i, j] == pytest.approx(expected, nan_ok=True)
