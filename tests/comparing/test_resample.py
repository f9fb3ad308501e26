"""Forms that can be resampled: the same value as the score, exact tests, standard errors against formulas."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

from lm_eval_bias import registry
from lm_eval_bias.custom_metrics import crossed, designs, resampling, stereoset
from lm_eval_bias.custom_metrics.contingency import holm

RNG = np.random.default_rng(3)


def _occugender(n: int = 6, templates: int = 4) -> list[dict]:
    rows = []
    for i, t in itertools.product(range(n), range(templates)):
        p = RNG.dirichlet([2, 3, 1])
        rows.append(
            {"item": f"o{i}", "template": f"t{t}", "share": 10.0 * i + 20, "group": "female" if i % 2 else "male",
             "M": p[0], "F": p[1], "D": p[2], "mass": RNG.random()}
        )  # fmt: skip
    return rows


def _stereoset() -> list[dict]:
    return [
        {"test": ("intra", "inter")[k % 2], "bias_type": ("gender", "race")[k // 30], "term": f"term{k // 6}",
         "outcomes": {"score": [bool(RNG.random() < 0.6), int(RNG.integers(0, 3))]}}
        for k in range(60)
    ]  # fmt: skip


def _gg_bbq(wordings: int = 1) -> list[dict]:
    rows = []
    for w, k in itertools.product(range(wordings), range(48)):
        context = ("ambiguous", "disambiguated")[k % 2]
        answer = ("biased", "counter", "unknown", "none")[int(RNG.integers(0, 4))]
        biased = k % 4 == 1
        right = answer == ("unknown" if k % 2 == 0 else "biased" if biased else "counter")
        rows.append(
            {"context": context, "answer": answer, "correct": right, "biased_context": biased, "template": f"t{k // 8}",
             "value": f"v{k // 24}", "wording": w + 1}
        )  # fmt: skip
    return rows


def _regard() -> list[dict]:
    return [
        {"gender": gender, "context": context, "repeated": False, "drawn": 9, "unfinished": 0, "has_other": False,
         "caveat": "", "wordings": [],
         "texts": [(("negative", "neutral", "positive")[int(RNG.integers(0, 3))],
                    [("respect", "occupation")[int(RNG.integers(0, 2))]],
                    ["caregiving"] if RNG.random() < 0.4 else []) for _ in range(9)]}
        for gender in ("female", "male")
        for context in ("a", "b", "c", "d")
    ]  # fmt: skip


RECORDS = {
    "occugender": _occugender,
    "stereoset": _stereoset,
    "gg_bbq": _gg_bbq,
    "gg_bbq_prompts": lambda: _gg_bbq(3),
    "regard": _regard,
}


@pytest.mark.parametrize("name", RECORDS)
def test_every_form_gives_its_score(name):
    records = RECORDS[name]()
    seen = 0
    for score in registry.get(name).scores(records, detailed=True):
        if score.table is None:
            continue
        form, value = score.table(records), score.compute(records).value
        if isinstance(form, str):
            assert math.isnan(value), score.name
        else:
            assert form.value == pytest.approx(value, abs=1e-12, nan_ok=True), score.name
            seen += 1
    assert seen >= 9
    main = registry.get(name).main
    assert all(s.table for s in registry.get(name).scores(records) if s.name in main)


@pytest.mark.parametrize("name", ["occugender", "stereoset", "gg_bbq", "regard"])
def test_no_records_give_a_reason(name):
    for score in registry.get(name).scores(RECORDS[name]()):
        if score.table is not None:
            assert isinstance(score.table([]), str)


def _clusters(values: np.ndarray, names: list[str]) -> designs.Clusters:
    return designs.tabulate(names, [np.ones(len(values)), values], designs.share_of)


def test_the_error_of_a_difference_is_that_of_the_clusters_differences():
    names = [f"c{k // 5:02d}" for k in range(200)]
    a, b = RNG.random(200) + np.repeat(RNG.normal(0, 0.5, 40), 5), RNG.random(200)
    found = resampling.paired(_clusters(a, names), _clusters(b, names), draws=200)
    d = a - b
    assert found.value == pytest.approx(d.mean(), abs=1e-12)
    assert found.stderr == pytest.approx(d.reshape(40, 5).mean(axis=1).std(ddof=1) / math.sqrt(40), rel=1e-9)
    assert found.sum_stderr == pytest.approx((a + b).reshape(40, 5).mean(axis=1).std(ddof=1) / math.sqrt(40), rel=1e-9)
    assert found.dof == pytest.approx(39)


def test_swapping_is_the_exact_test_on_few_clusters():
    names = [f"c{k}" for k in range(8)]
    a, b = RNG.normal(0.4, 1, 8), RNG.normal(0, 1, 8)
    d = a - b
    every = [abs(np.mean(d * s)) for s in itertools.product([-1, 1], repeat=8)]
    exact = np.mean([m >= abs(d.mean()) - 1e-12 for m in every])
    found = resampling.paired(_clusters(a, names), _clusters(b, names), draws=40_000)
    assert found.p == pytest.approx(exact, abs=0.01)


def test_crossed_difference_is_that_of_the_differences():
    items, templates = [f"i{k}" for k in range(8)], [f"t{k}" for k in range(6)]
    a, b = RNG.random((8, 6)), RNG.random((8, 6))
    found = resampling.paired(designs.Cells(items, templates, a), designs.Cells(items, templates, b), draws=2_000)
    stderr, dof = crossed.crossed_stderr(a - b)
    assert (found.stderr, found.dof) == (stderr, dof)
    assert found.value == pytest.approx((a - b).mean(), abs=1e-12)
    assert found.sum_stderr == crossed.crossed_stderr(a + b)[0]


def test_studentised_means_are_mean_over_crossed_stderr():
    row, column, rest = RNG.normal(0.2, 1, (5, 7)), RNG.normal(0, 1, (5, 4)), RNG.normal(0, 1, (5, 7, 4))
    tables = row[:, :, None] + column[:, None, :] + rest
    found = resampling.studentised(row, column, rest)
    for table, t in zip(tables, found, strict=True):
        assert t == pytest.approx(table.mean() / crossed.crossed_stderr(table)[0], rel=1e-9)


def test_studentised_means_in_strata_are_mean_over_the_stratified_stderr():
    row, column, rest = RNG.normal(0.2, 1, (5, 7)), RNG.normal(0, 1, (5, 4)), RNG.normal(0, 1, (5, 7, 4))
    strata = ["b", "a", "a", "b", "a", "b", "a"]
    tables = row[:, :, None] + column[:, None, :] + rest
    groups = crossed.rows_by_stratum(tables[0], strata)
    assert list(map(len, groups)) == [4, 3]
    for table, t in zip(tables, resampling.studentised(row, column, rest, groups), strict=True):
        assert t == pytest.approx(table.mean() / crossed.crossed_stderr(table, strata)[0], rel=1e-9)


def _strata_apart(rng, shift, means):
    """Differences of two models in 20 + 20 items x 8 templates, whose mean is half the sum of the strata's means."""
    cells = (
        np.repeat(means, 20)[:, None] + shift + 0.06 * rng.standard_normal((40, 1)) + 0.1 * rng.standard_normal((40, 8))
    )
    items, templates, strata = [f"{i:02d}" for i in range(40)], [f"{t}" for t in range(8)], ["f"] * 20 + ["m"] * 20
    cells += 0.04 * rng.standard_normal((1, 8))
    first, second = (designs.Cells(items, templates, c, strata) for c in (cells, np.zeros_like(cells)))
    return first, second


def test_strata_that_differ_are_no_chance():
    # women +0.3 in one stratum and -0.3 in the other: equal on the whole, and a shift of 0.06 of both is found
    rng = np.random.default_rng(11)
    false = [resampling.paired(*_strata_apart(rng, 0.0, (0.3, -0.3)), draws=299, seed=s).p <= 0.05 for s in range(250)]
    assert np.mean(false) <= 0.09
    true = [resampling.paired(*_strata_apart(rng, 0.06, (0.3, -0.3)), draws=299, seed=s).p <= 0.05 for s in range(60)]
    assert np.mean(true) >= 0.5  # as one sample: never
    blind = [
        resampling.paired(*(replace(side, strata=()) for side in _strata_apart(rng, 0.06, (0.3, -0.3))), draws=299).p
        for _ in range(20)
    ]
    assert min(blind) > 0.05


@pytest.mark.parametrize("templates", [2, 3])
def test_few_templates_are_tested_without_flips(templates):
    rng, names = np.random.default_rng(5), ([f"{i:02d}" for i in range(20)], [f"{t}" for t in range(templates)])
    nothing, p_values = np.zeros((20, templates)), []
    for _ in range(400):
        cells = 0.06 * rng.standard_normal((20, 1)) + 0.1 * rng.standard_normal((1, templates))
        cells = cells + 0.1 * rng.standard_normal((20, templates))
        found = resampling.paired(designs.Cells(*names, cells), designs.Cells(*names, nothing), draws=99)
        assert "few templates" in found.test
        assert found.dof <= templates - 1
        assert (found.p <= 0.05) == (not found.interval[0] <= 0 <= found.interval[1])
        p_values.append(found.p)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.07  # flips reject 13% and 9% of these


def _correlations(strength=0.0):
    records, others = _occugender(12), _occugender(12)
    for record, other in zip(records, others, strict=True):
        other.update({key: record[key] for key in ("item", "template", "share", "group")})
        other["F"] = (1 - strength) * other["F"] + strength * record["F"]
    score = next(s for s in registry.get("occugender").scores([]) if s.name == "labour_pearson")
    return score.table(records), score.table(others)


def test_correlations_are_compared_on_the_scale_of_fishers_z():
    a, b = _correlations()
    found = resampling.paired(a, b)
    assert found.test == "Student's t on Fisher's z"
    z = [math.atanh(form.value) for form in (a, b)]
    errors = [(form.cells - form.value) / (1 - form.value**2) for form in (a, b)]
    stderr, dof = crossed.crossed_stderr(errors[0] - errors[1], a.strata)
    assert (found.value, found.dof) == (pytest.approx(a.value - b.value), pytest.approx(dof))
    assert found.p == pytest.approx(2 * stats.t.sf(abs(z[0] - z[1]) / stderr, dof), rel=1e-9)
    assert found.stderr == pytest.approx(crossed.crossed_stderr(a.cells - b.cells, a.strata)[0])
    # the two correlations' own intervals, joined as those of parts that are correlated (Zou 2007, equation 15)
    (low, high), (other_low, other_high) = (
        [math.tanh(value + sign * stats.t.ppf(0.975, own_dof) * own) for sign in (-1, 1)]
        for value, (own, own_dof) in zip(z, [crossed.crossed_stderr(e, a.strata) for e in errors], strict=True)
    )
    own = [crossed.crossed_stderr(e, a.strata)[0] for e in errors]
    rho = (own[0] ** 2 + own[1] ** 2 - stderr**2) / (2 * own[0] * own[1])
    below, above, other_below, other_above = a.value - low, high - a.value, b.value - other_low, other_high - b.value
    assert found.interval == pytest.approx(
        (
            found.value - math.sqrt(below**2 + other_above**2 - 2 * rho * below * other_above),
            found.value + math.sqrt(above**2 + other_below**2 - 2 * rho * above * other_below),
        )
    )
    back = resampling.paired(b, a)
    assert back.p == pytest.approx(found.p)
    assert back.interval == pytest.approx((-found.interval[1], -found.interval[0]))


def test_correlations_that_are_alike_differ_by_less_than_their_own_errors_say():
    wide, narrow = (resampling.paired(*_correlations(strength)) for strength in (0.0, 0.9))
    assert narrow.interval[1] - narrow.interval[0] < (wide.interval[1] - wide.interval[0]) / 3


def test_other_strata_are_other_layouts():
    a, b = _strata_apart(np.random.default_rng(0), 0.0, (0.1, 0.2))
    with pytest.raises(ValueError, match="strata"):
        resampling.paired(a, replace(b, strata=()))


def test_a_large_table_goes_in_parts(monkeypatch):
    cells = RNG.normal(0.1, 1, (20, 10))
    whole = resampling.flipped_t(cells, 2_000, 1)
    shapes = []
    plain = resampling.studentised
    monkeypatch.setattr(resampling, "studentised", lambda *sums: (shapes.append(sums[2].shape), plain(*sums))[1])
    monkeypatch.setattr(resampling, "AT_A_TIME", 1_000)
    parts = resampling.flipped_t(cells, 2_000, 1)
    assert set(shapes) == {(5, 20, 10)}
    assert np.quantile(parts, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(whole, [0.1, 0.5, 0.9]), abs=0.2)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_exchanging_the_models_flips_the_sign_alone(seed):
    rng = np.random.default_rng(seed)
    names = [f"c{k // 3}" for k in range(18)]
    a, b = rng.random(18), rng.random(18)
    one = resampling.paired(_clusters(a, names), _clusters(b, names), draws=400)
    other = resampling.paired(_clusters(b, names), _clusters(a, names), draws=400)
    assert one.value == pytest.approx(-other.value, abs=1e-12)
    assert one.stderr == pytest.approx(other.stderr, rel=1e-9)
    assert one.p == other.p
    assert 0 < one.p <= 1


def test_identical_models_don_t_differ():
    for name, make in RECORDS.items():
        records = make()
        for score in registry.get(name).scores(records):
            form = score.table(records) if score.table else "none"
            if not isinstance(form, str):
                found = resampling.paired(form, form, draws=200)
                assert found.value == 0 or math.isnan(found.value)
                assert found.p == 1.0 or math.isnan(found.value)


def test_a_clear_difference_is_found_and_a_small_one_called_undetectable():
    names = [f"c{k // 4:02d}" for k in range(120)]
    base = np.repeat(RNG.normal(0, 1, 30), 4)  # what both find hard cancels
    a, b = base + RNG.normal(0.5, 0.3, 120), base + RNG.normal(0, 0.3, 120)
    found = resampling.paired(_clusters(a, names), _clusters(b, names), draws=2_000)
    assert found.p < 0.001
    assert found.interval[0] > 0
    assert found.detectable() < 0.15 < 0.5
    assert found.detectable() == pytest.approx((2.045 + 0.854) * found.stderr, rel=2e-3)  # t of 29 degrees of freedom


def test_other_clusters_are_refused():
    one, other = _clusters(np.ones(4), list("aabb")), _clusters(np.ones(4), list("aabc"))
    with pytest.raises(ValueError, match="the clusters differ"):
        resampling.paired(one, other)


def test_welch():
    found = resampling.unpaired((1.0, 0.3, 10.0), (0.0, 0.4, 20.0))
    assert found.stderr == pytest.approx(0.5)
    assert found.dof == pytest.approx(0.5**4 / (0.3**4 / 10 + 0.4**4 / 20))
    from scipy import stats

    assert found.p == pytest.approx(2 * stats.t.sf(2.0, found.dof))
    assert math.isnan(resampling.unpaired((1.0, math.nan, 1.0), (0.0, 1.0, 1.0)).p)


def _pair(seed: int, sizes, lean=0.0, own=0.3, shared=0.3, at=0.3) -> tuple[designs.Clusters, designs.Clusters]:
    """Two models' shares of hits in clusters whose difficulty they share; they are ``lean`` apart on a normal scale."""
    rng = np.random.default_rng(seed)
    sizes = np.array(sizes)
    names, base = [f"c{k:02d}" for k in range(len(sizes))], at + shared * rng.standard_normal(len(sizes))
    forms = []
    for shift in (lean, 0.0):
        hits = rng.binomial(sizes, special.ndtr(base + shift + own * rng.standard_normal(len(sizes))))
        totals = np.stack([sizes, hits], axis=1).astype(float)
        forms.append(designs.Clusters(names, sizes.astype(float), totals, designs.share_of))
    return forms[0], forms[1]


def test_hundreds_of_clear_differences_survive_holm():
    # a model that takes every stereotype against one that takes them at random: with 10,000 swaps alone p >= 1/10,001
    names = [f"c{k // 20:02d}" for k in range(79 * 20)]
    always, random = (
        _clusters(np.ones(len(names)), names),
        _clusters((RNG.random(len(names)) < 0.5).astype(float), names),
    )
    found = resampling.paired(always, random)
    assert found.test == "models swapped by cluster, beyond all resamples Student's t"
    assert found.p == pytest.approx(2 * stats.t.sf(found.value / found.stderr, found.dof))
    assert max(holm([found.p] * 600)) < 0.05
    never = resampling.paired(always, _clusters(np.zeros(len(names)), names), draws=500)
    assert (never.value, never.p) == (1.0, 2.0**-78)  # every cluster says the same: swapped as a whole, or not at all
    assert math.isnan(never.stderr)
    assert never.interval is None
    assert "nothing varied" in never.reason


def test_a_crossed_difference_goes_beyond_its_resamples_too():
    items, templates = [f"i{k}" for k in range(20)], [f"t{k}" for k in range(10)]
    a, b = RNG.normal(1, 0.2, (20, 10)), RNG.normal(0, 0.2, (20, 10))
    found = resampling.paired(designs.Cells(items, templates, a), designs.Cells(items, templates, b), draws=500)
    assert found.test == "signs flipped by item, template and cell, beyond all resamples Student's t"
    assert found.p == pytest.approx(2 * stats.t.sf(found.value / found.stderr, min(found.dof, 9)), rel=1e-6)
    assert max(holm([found.p] * 600)) < 0.05


def test_equal_models_are_seldom_told_apart_in_the_far_tail_too():
    # 100 swaps, so that the floor is at 1% and what lies below it is Student's t
    p = np.array([resampling.paired(*_pair(seed, [12] * 20), draws=100).p for seed in range(3000)])
    assert 0.035 < (p <= 0.05).mean() < 0.065
    assert (p < 1 / 101).mean() < 0.015
    assert (p <= 0.001).mean() <= 0.002


def test_the_far_tail_of_few_templates_is_no_fatter():
    # with Satterthwaite's degrees of freedom alone 0.2 to 0.3% fall below 0.001, twice to thrice as many as should
    rng = np.random.default_rng(7)
    items, templates, empty = [f"i{k}" for k in range(10)], [f"t{k}" for k in range(4)], np.zeros((10, 4))
    p = []
    for _ in range(4000):
        rows, columns, rest = (rng.standard_normal(shape) for shape in ((10, 1), (1, 4), (10, 4)))
        cells = 0.02 * rows + 0.2 * columns + 0.1 * rest
        sides = designs.Cells(items, templates, cells), designs.Cells(items, templates, empty)
        p.append(resampling.paired(*sides, draws=100).p)
    assert np.mean(np.array(p) <= 0.001) <= 0.0015


@pytest.mark.parametrize("sizes", [[25] * 3, [25] * 4, [25] * 5, [100, 40, 30, 20], [15, 20, 25, 30, 40]])
def test_few_clusters_have_student_s_t(sizes):
    pairs = [_pair(seed, sizes) for seed in range(1500)]
    found = [resampling.paired(*pair, draws=100) for pair in pairs]
    tested = [one for one in found if one.test]
    assert {one.test for one in tested} == {"Student's t on clusters"}
    assert len(tested) > 0.98 * len(found)  # in a few nothing varied
    assert np.mean([one.p <= 0.05 for one in tested]) < 0.07
    if len(set(sizes)) == 1:
        assert np.mean([one.p <= 0.05 for one in tested]) > 0.03
        a, b = pairs[0]
        own = stats.ttest_1samp((a.totals[:, 1] - b.totals[:, 1]) / 25, 0)
        assert found[0].p == pytest.approx(own.pvalue)


def test_two_clusters_have_no_test_and_many_have_swaps():
    two = resampling.paired(*_pair(1, [25, 25]), draws=100)
    assert math.isnan(two.p)
    assert "too few clusters for a test" in two.reason
    assert two.stderr > 0
    one = resampling.paired(*_pair(1, [25]), draws=100)
    assert math.isnan(one.p)
    assert one.reason == "only one cluster"
    six = resampling.paired(*_pair(1, [25] * 6), draws=2_000)
    assert six.test == "Student's t on clusters"  # in steps of 2/64, swaps reject in 3% of cases where 5% are meant
    assert six.p == pytest.approx(resampling.student_p(six.value, six.stderr, six.dof))
    eight = resampling.paired(*_pair(1, [25] * 8), draws=2_000)
    assert (eight.test, eight.least_p) == ("models swapped by cluster", 2 / 256)
    assert eight.at_level(4 * 2 / 256) is eight
    close = replace(eight, p=4 * 2 / 256)
    assert close.at_level(0.03).test == "Student's t on clusters"
    far = replace(eight, p=5 * 2 / 256)  # more tests find no more: that p is no matter of few clusters
    assert far.at_level(0.0001) is far


def test_without_a_test_nothing_is_promised():
    two = resampling.paired(*_pair(1, [25, 25]), draws=100)
    assert two.stderr > 0
    assert math.isnan(two.detectable())
    eight = resampling.paired(*_pair(1, [25] * 8), draws=500)
    assert eight.detectable(0.001) > eight.detectable() > 2 * eight.stderr


def test_nothing_varied_in_a_difference():
    names = list("aabbccddeeff")
    a, b = _clusters(np.tile([1.0, 1.0], 6), names), _clusters(np.tile([1.0, 0.0], 6), names)
    found = resampling.paired(a, b, draws=500)
    assert found.value == 0.5
    assert math.isnan(found.stderr)
    assert math.isnan(found.detectable())
    assert found.interval is None
    assert found.p == pytest.approx(2 / 64, abs=0.02)
    assert "nothing varied" in found.reason
    same = resampling.paired(a, a, draws=500)
    assert (same.value, same.p) == (0.0, 1.0)
    assert math.isnan(same.stderr)
    assert same.reason == "the models' answers are the same in every cluster"


def test_nothing_varied_in_a_crossed_difference():
    items, templates, cells = [f"i{k}" for k in range(8)], [f"t{k}" for k in range(6)], RNG.random((8, 6))
    a, b = designs.Cells(items, templates, cells + 0.1), designs.Cells(items, templates, cells)
    found = resampling.paired(a, b, draws=100)
    assert found.value == pytest.approx(0.1)
    assert math.isnan(found.stderr)
    assert math.isnan(found.p)
    assert "nothing varied" in found.reason
    for other in (a, designs.Cells(items, templates, a.cells * (1 + 1e-16) + 1e-16)):  # equal but for rounding
        same = resampling.paired(a, other, draws=100)
        assert (same.value, same.p) == (0, 1)
        assert math.isnan(same.stderr)
    assert "the same in every cell" in same.reason


def test_a_cluster_without_which_there_is_no_score_leaves_no_error():
    names = ["a", "b", "c"]

    def form(hits):
        totals = np.array([[0.0, 0.0, 10.0], [0.0, 0.0, 10.0], [10.0, hits, 10.0]])
        return designs.Clusters(names, np.full(3, 10.0), totals, designs.share_of)

    found = resampling.paired(form(8.0), form(4.0), draws=100)
    assert math.isnan(found.stderr)
    assert "no value without one of the clusters" in found.reason


@pytest.mark.parametrize("lean", [0.05, 0.12, 0.3])
def test_models_on_either_side_of_the_kink_have_the_same_icat(lean):
    # swapping such models by cluster rejects their equality in up to 13.5% of the rounds
    rng = np.random.default_rng(8)
    sizes = rng.integers(15, 45, 79)
    rejected, rounds = 0, 700
    for _ in range(rounds):
        forms = []
        for side in (lean, -lean):
            pro = rng.binomial(sizes, special.ndtr(side + 0.25 * rng.standard_normal(79)))
            related = rng.binomial(2 * sizes, special.ndtr(1.2 + 0.2 * rng.standard_normal(79)))
            totals = np.stack([sizes, pro, related], axis=1).astype(float)
            of = functools.partial(stereoset._resampled, kind="icat")
            forms.append(designs.Clusters([f"t{k}" for k in range(79)], sizes.astype(float), totals, of, True))
        found = resampling.paired(*forms)
        rejected += found.p <= 0.05
    assert found.test == "Student's t on clusters"
    assert 0.01 < rejected / rounds < 0.07


@pytest.mark.parametrize("tests", [1, 30])
def test_what_is_detectable_is_detected_in_four_of_five_rounds(tests):
    level, sizes, spread = 0.05 / tests, [30] * 40, math.sqrt(1 + 0.3**2 + 0.3**2)
    typical = np.mean([resampling.paired(*_pair(seed, sizes), draws=100).detectable(level) for seed in range(100)])
    lean = optimize.brentq(lambda x: special.ndtr((0.3 + x) / spread) - special.ndtr(0.3 / spread) - typical, 0, 3)
    found = [resampling.paired(*_pair(seed, sizes, lean), draws=4_000) for seed in range(1_000, 1_300)]
    assert 0.73 < np.mean([one.p <= level for one in found]) < 0.87
