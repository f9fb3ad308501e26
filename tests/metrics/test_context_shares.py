"""Shares and differences of shares over contexts in strata, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.custom_metrics import contingency, designs
from lm_eval_bias.custom_metrics.context_shares import (
    FEW_CONTEXTS,
    NO_PROMPTS,
    Row,
    difference,
    difference_form,
    share,
    share_form,
)
from lm_eval_bias.custom_metrics.stratified_jackknife import jackknife

# ------------------------------------------------------------------------------------- the jackknife within strata


def clusters(shares, sizes=None):
    """A share in clusters; of 10 texts each unless told otherwise."""
    sizes = np.array(sizes or [10.0] * len(shares))
    totals = np.stack([sizes, sizes * np.array(shares)], axis=1)
    return designs.Clusters([f"c{k}" for k in range(len(shares))], sizes, totals, designs.share_of)


def stratified(shares, strata, sizes=None):
    form = clusters(shares, sizes)
    return jackknife(form, form.sizes, list(strata))


def test_in_one_stratum_of_equal_clusters_it_is_the_spread_of_their_means():
    assert stratified([0.2, 0.4, 0.9], "aaa") == pytest.approx((math.sqrt(0.13 / 3), 2), abs=1e-12)
    assert stratified([0.2, 0.4], "aa") == pytest.approx((0.1, 1), abs=1e-12)


def test_strata_keep_their_weights():
    # variances 0.02 and 0.09 of strata that are 2/5 and 3/5 of the texts
    first, second = (2 / 5) ** 2 * 0.02 / 2, (3 / 5) ** 2 * 0.09 / 3
    stderr, dof = stratified([0.2, 0.6, 0.4, 0.9, 0.3], "ababb")
    assert stderr == pytest.approx(math.sqrt(first + second), abs=1e-12)
    assert dof == pytest.approx((first + second) ** 2 / (first**2 / 1 + second**2 / 2), abs=1e-9)


def test_degrees_of_freedom_are_those_of_each_stratum_s_unequal_clusters():
    sizes = [10, 30, 10, 10, 20]
    own, other = [(0.2, 10), (0.5, 30)], [(0.4, 10), (0.9, 10), (0.3, 20)]
    total = sum(p * n for p, n in own + other) / 80
    parts = []
    for stratum, rest in ((own, other), (other, own)):
        count = len(stratum)
        changes = []
        for left in range(count):
            kept = [(p, n * count / (count - 1)) for k, (p, n) in enumerate(stratum) if k != left] + rest
            changes.append(sum(p * n for p, n in kept) / sum(n for _, n in kept) - total)
        parts.append((count - 1) / count * sum(change**2 for change in changes))
    # worth 40^2 / 1000 = 1.6 clusters, which is less than two, and 40^2 / 600
    expected = sum(parts) ** 2 / (parts[0] ** 2 / 1 + parts[1] ** 2 / (40**2 / 600 - 1))
    found = stratified([0.2, 0.5, 0.4, 0.9, 0.3], "aabbb", sizes)
    assert found == pytest.approx((math.sqrt(sum(parts)), expected), rel=1e-9)


def test_a_stratum_of_one_cluster_makes_all_one():
    assert stratified([0.2, 0.4, 0.9], "aab") == stratified([0.2, 0.4, 0.9], "aaa")
    assert stratified([0.2, 0.4, 0.9, 0.7], "aabb") != stratified([0.2, 0.4, 0.9, 0.7], "aaaa")


def test_clusters_without_texts_are_left_out():
    plain = stratified([0.2, 0.4, 0.9, 0.8], "aabb")
    assert stratified([0.2, 0.4, 0.0, 0.9, 0.8, 0.0], "aacbba", [10, 10, 0, 10, 10, 0]) == pytest.approx(plain)
    assert all(map(math.isnan, stratified([0.2, 0.4], "aa", [10, 0])))


def test_without_two_clusters_or_a_value_there_is_no_error():
    assert all(map(math.isnan, stratified([0.2], "a")))
    form = clusters([0.2, 0.4, 0.9])
    absent = designs.Clusters(form.names, form.sizes, np.array([[0.0, 0], [0, 0], [10, 9]]), form.of)
    assert all(map(math.isnan, jackknife(absent, form.sizes, list("aaa"))))


def test_where_nothing_varies_the_error_is_0():
    assert stratified([0.3] * 5, "aabbb") == (0, pytest.approx(1 + 2))
    assert stratified([0.3] * 5, "aabbb", [90, 10, 10, 10, 20]) == (0, pytest.approx(1 + 40**2 / 600 - 1))
    assert stratified([0.3, 0.3 + 1.6e-12], "aa")[0] == 0  # a standard error of 0.8e-12 is rounding
    assert stratified([0.3, 0.3 + 3e-12], "aa")[0] == pytest.approx(1.5e-12, rel=1e-3)


def test_each_cluster_has_a_stratum():
    with pytest.raises(ValueError, match="zip"):
        stratified([0.2, 0.4, 0.9], "aa")


# ---------------------------------------------------------------------------------------------------------- one share


def rows(group=0, strata="aaaaa", **hits):
    """Prompts of a group with 10 texts each, by context."""
    return [Row(group, name, stratum, n, 10) for (name, n), stratum in zip(hits.items(), strata, strict=False)]


def t(dof):
    return stats.t.ppf(0.975, dof)


def wilson(p, size, quantile):
    centre, half = p + quantile**2 / (2 * size), quantile * math.sqrt(p * (1 - p) / size + (quantile / size / 2) ** 2)
    return pytest.approx(
        ((centre - half) / (1 + quantile**2 / size), (centre + half) / (1 + quantile**2 / size)), abs=1e-9
    )


def test_a_share_has_both_intervals():
    found = share(rows(x=2, y=4, z=9), "beware")
    variance = 0.13 / 3
    assert (found.value, found.n, found.reason) == (0.5, 30, "beware")
    assert found.stderr == pytest.approx(math.sqrt(variance), abs=1e-12)
    assert found.dof == pytest.approx(2)
    assert found.interval == wilson(0.5, 0.25 / variance, t(2))  # 5.8 independent texts
    assert found.fixed_interval == wilson(0.5, 30, stats.norm.ppf(0.975))
    form = share_form(rows(x=2, y=4, z=9))
    assert form.value == 0.5
    assert (form.names, form.totals.tolist()) == (["x", "y", "z"], [[10, 2], [10, 4], [10, 9]])


def test_two_contexts_are_enough_for_a_share():
    found = share(rows(x=2, y=5))
    assert found.stderr == pytest.approx(0.15, abs=1e-12)
    assert found.interval == wilson(0.35, 0.35 * 0.65 / 0.15**2, t(1))
    assert found.reason == ""


def test_contexts_that_agree_too_well_are_worth_no_more_than_their_texts():
    found = share(rows(x=5, y=5, z=6))
    assert found.stderr == pytest.approx(0.1 / 3, abs=1e-12)
    assert found.interval == wilson(16 / 30, 30, t(2))


def test_a_share_that_doesn_t_vary_has_the_error_of_its_interval():
    found = share(rows(x=4, y=4, z=4), "beware")
    assert found.interval == wilson(0.4, 30, t(2))
    assert found.stderr == pytest.approx((found.interval[1] - found.interval[0]) / 2 / t(2), abs=1e-12)
    assert (found.dof, found.reason) == (pytest.approx(2), "beware")


def test_contexts_vary_within_their_strata():
    own = rows(strata="ababb", x=2, v=6, y=4, w=9, z=3)
    first, second = (2 / 5) ** 2 * 0.02 / 2, (3 / 5) ** 2 * 0.09 / 3
    found = share(own)
    assert found.stderr == pytest.approx(math.sqrt(first + second), abs=1e-12)
    assert found.dof == pytest.approx((first + second) ** 2 / (first**2 + second**2 / 2))


def test_prompts_of_one_context_are_one_cluster():
    double = [*rows(x=2, y=4, z=9), *rows(x=4, y=4, z=7)]
    pooled = [Row(0, name, "a", n, 20) for name, n in {"x": 6, "y": 8, "z": 16}.items()]
    assert share(double) == share(pooled)


def test_texts_of_no_prompt_have_one_interval():
    own = [*rows(x=2, y=4), Row(0, None, "a", 3, 10)]
    found = share(own, "beware")
    assert found.value == 0.3
    assert math.isnan(found.stderr)
    assert (found.n, found.reason) == (30, f"{NO_PROMPTS}; beware")
    assert found.ends() is None
    assert found.fixed_interval == wilson(0.3, 30, stats.norm.ppf(0.975))
    assert share_form(own) == difference_form(own) == NO_PROMPTS
    assert share_form([]) == difference_form([]) == "no texts"


def test_a_share_of_one_context_has_one_interval():
    found = share(rows(x=4), "beware")
    assert math.isnan(found.stderr)
    assert (found.value, found.n, found.reason) == (0.4, 10, f"{FEW_CONTEXTS}; beware")
    assert found.ends() is None
    assert found.fixed_interval == wilson(0.4, 10, stats.norm.ppf(0.975))


# ------------------------------------------------------------------------------------------------------- differences


def test_a_difference_has_both_intervals():
    # differences 0.2, -0.1 and 0.5 with 10 texts each: their mean's standard error
    first_hits, second_hits = {"x": 4, "y": 3, "z": 9}, {"x": 2, "y": 4, "z": 4}
    own = [*rows(1, **second_hits), *rows(0, **first_hits)]
    found = difference(own, "beware")
    assert found.value == pytest.approx(0.2, abs=1e-12)
    assert found.stderr == pytest.approx(0.3 / math.sqrt(3), abs=1e-12)
    assert (found.n, found.reason) == (60, "beware")
    first, second = (share(rows(group, **counts)) for group, counts in ((0, first_hits), (1, second_hits)))
    rho = (first.stderr**2 + second.stderr**2 - found.stderr**2) / (2 * first.stderr * second.stderr)
    down, up = first.value - first.interval[0], second.interval[1] - second.value
    assert found.interval[0] == pytest.approx(0.2 - math.sqrt(down**2 + up**2 - 2 * rho * down * up), abs=1e-12)
    down, up = first.interval[1] - first.value, second.value - second.interval[0]
    assert found.interval[1] == pytest.approx(0.2 + math.sqrt(down**2 + up**2 - 2 * rho * down * up), abs=1e-12)
    assert found.dof == pytest.approx(2)
    assert found.fixed_interval == pytest.approx(contingency.newcombe((16, 10), (30, 30)), abs=1e-12)
    form = difference_form(own)
    assert form.value == pytest.approx(0.2, abs=1e-12)
    assert form.totals.tolist() == [[10, 4, 10, 2], [10, 3, 10, 4], [10, 9, 10, 4]]


def test_a_difference_s_degrees_of_freedom_are_those_of_all_its_texts():
    own = [Row(0, "x", "a", 4, 10), Row(0, "y", "a", 3, 20), Row(0, "z", "a", 9, 10),
           Row(1, "x", "a", 2, 30), Row(1, "y", "a", 4, 40), Row(1, "z", "a", 4, 10)]  # fmt: skip
    found = difference(own)
    assert found.value == pytest.approx(16 / 40 - 10 / 80, abs=1e-12)
    assert found.dof == pytest.approx(120**2 / (40**2 + 60**2 + 20**2) - 1)
    without = [12 / 30 - 8 / 50, 13 / 20 - 6 / 40, 7 / 30 - 6 / 70]
    expected = math.sqrt(2 / 3 * sum((one - found.value) ** 2 for one in without))
    assert found.stderr == pytest.approx(expected, abs=1e-12)


def test_the_same_difference_everywhere_has_newcombe_s_interval_of_the_effective_texts():
    # shares 0.4, 0.6, 0.8 and 0.2, 0.4, 0.6: standard errors 0.2 / sqrt(3), those of 0.24 / (0.04 / 3) = 18 texts
    own = [*rows(0, x=4, y=6, z=8), *rows(1, x=2, y=4, z=6)]
    found = difference(own, "beware")
    assert found.value == pytest.approx(0.2, abs=1e-12)
    expected = contingency.newcombe((0.6 * 18, 0.4 * 18), (18, 18), (t(2), t(2)))
    assert found.interval == pytest.approx(expected, abs=1e-9)
    assert found.stderr == pytest.approx((expected[1] - expected[0]) / 2 / t(2), abs=1e-9)
    assert (found.n, found.reason) == (60, "beware")
    assert found.dof == pytest.approx(2)
    assert found.fixed_interval == pytest.approx(contingency.newcombe((18, 12), (30, 30)), abs=1e-12)


def test_a_difference_for_prompts_like_these_reaches_as_far_as_that_for_these_prompts():
    # the contexts' differences vary less than ten texts a context would let them: 0.2, 0.2 and 0.1
    own = [*rows(0, x=4, y=6, z=8), *rows(1, x=2, y=4, z=7)]
    found = difference(own)
    assert found.fixed_interval == pytest.approx(contingency.newcombe((18, 13), (30, 30)), abs=1e-12)
    assert found.interval == found.fixed_interval
    assert found.stderr == pytest.approx(0.1 / 3, abs=1e-9)


@pytest.mark.parametrize("single", [0, 1])
def test_a_group_in_one_context_has_no_difference_for_prompts_like_these(single):
    own = [*rows(single, x=4), *rows(1 - single, x=3, y=5, z=6)]
    found = difference(own, "beware")
    assert found.value == pytest.approx((0.4 - 14 / 30) * (1 if single == 0 else -1), abs=1e-12)
    assert math.isnan(found.stderr)
    assert (found.n, found.reason) == (40, f"{FEW_CONTEXTS}; beware")
    assert found.ends() is None
    hits, totals = ((4, 14), (10, 30)) if single == 0 else ((14, 4), (30, 10))
    assert found.fixed_interval == pytest.approx(contingency.newcombe(hits, totals), abs=1e-12)


@pytest.mark.parametrize("where", [0, 1])
def test_a_difference_with_texts_of_no_prompt_says_so(where):
    found = difference([*rows(0, x=4, y=6), *rows(1, x=3, y=5), Row(where, None, "a", 3, 10)], "beware")
    assert math.isnan(found.stderr)
    assert found.ends() is None
    assert (found.n, found.reason) == (50, f"{NO_PROMPTS}; beware")
    assert found.fixed_interval[0] < found.value < found.fixed_interval[1]
