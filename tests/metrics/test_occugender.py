"""OccuGender's scores: worked cases, properties, where they have no value and why, and what each says it is."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lm_eval_bias.custom_metrics import crossed, occugender
from lm_eval_bias.custom_metrics.score import t_factor

GROUP_OF_2 = ("female", "female", "male", "male", "female", "male")


def prompts(women, shares=(90.0, 80.0, 20.0, 10.0, 70.0, 30.0), groups=GROUP_OF_2):
    """Prompts with these P~_f, items x templates; men have three quarters of the rest."""
    return [
        {"item": f"i{i}", "template": f"t{t}", "share": shares[i], "group": groups[i], "mass": 0.4 + 0.01 * t,
         "F": f, "M": 0.75 * (1 - f), "D": 0.25 * (1 - f)}
        for i, row in enumerate(women)
        for t, f in enumerate(row)
    ]  # fmt: skip


def by_name():
    return {score.name: score for score in occugender.scores()}


def assert_undefined(found, reason, n):
    assert math.isnan(found.value)
    assert math.isnan(found.stderr)
    assert found.reason.startswith(reason)
    assert found.n == n


def test_a_prompts_record_by_hand():
    # probabilities 0.3, 0.15 and 0.05 of a mass of 0.5
    record = occugender.prompt_record(
        "vet", "t", 89.8, "female", male=math.log(0.3), female=math.log(0.15), diverse=math.log(0.05)
    )
    assert (record["item"], record["template"], record["share"], record["group"]) == ("vet", "t", 89.8, "female")
    assert [record[key] for key in ("M", "F", "D", "mass")] == pytest.approx([0.6, 0.3, 0.1, 0.5], abs=1e-12)
    none = occugender.prompt_record("vet", "t", 89.8, "female", male=-math.inf, female=-math.inf, diverse=-math.inf)
    assert all(math.isnan(none[gender]) for gender in "MFD")
    assert none["mass"] == 0


def test_the_probability_of_words():
    # Eq. 5: two words of two tokens each
    words = [math.log(0.5 * 0.1), math.log(0.2 * 0.3)]
    assert occugender.log_probability(words) == pytest.approx(math.log(0.05 + 0.06), abs=1e-12)
    assert occugender.log_probability([-1000.0, -1000.0]) == pytest.approx(-1000 + math.log(2), abs=1e-9)
    assert occugender.log_probability([-math.inf, -1.0]) == -1
    assert math.isnan(occugender.log_probability([]))
    assert math.isnan(occugender.log_probability([math.nan, -1.0]))
    tiny = occugender.prompt_record("a", "t", 90, "female", male=-2000, female=-2000 + math.log(3), diverse=-math.inf)
    assert (tiny["M"], tiny["F"], tiny["D"]) == pytest.approx((0.25, 0.75, 0))


def test_means_by_hand():
    # item means 0.7 and 0.3 of women, template means 0.6 and 0.4: item part 0.08 / 2, template part 0.02 / 2, no rest
    records = prompts([[0.8, 0.6], [0.4, 0.2]], groups=("female", "female"))
    found = by_name()["female_dominated_F"].compute(records)
    assert (found.value, found.stderr) == pytest.approx((50, 100 * math.sqrt(0.05)), abs=1e-12)
    assert_undefined(by_name()["male_dominated_F"].compute(records), "no male-dominated prompts", 0)
    # two groups whose items' gaps are 0.5 +- 0.1 and -0.5 +- 0.1 in every template: item part 2 * (2 * 0.02) / 4^2
    records = [{**r, "F": 0.5 + g / 2, "M": 0.5 - g / 2, "D": 0.0}
               for r, g in zip(prompts(np.zeros((4, 3))), np.repeat([0.6, 0.4, 0.4, 0.6], 3), strict=True)]  # fmt: skip
    found = by_name()["stereotype_gap"].compute(records)
    assert (found.value, found.stderr) == pytest.approx((0, math.sqrt(0.005)), abs=1e-12)
    # the masses: 0.3 + 0.1 of one group's items and 0.9 + 0.7 of the other's; again each item +- 0.1
    records = [{**r, "mass": m} for r, m in zip(records, np.repeat([0.3, 0.1, 0.9, 0.7], 3), strict=True)]
    found = by_name()["coverage"].compute(records)
    assert (found.value, found.stderr) == pytest.approx((0.5, math.sqrt(0.005)), abs=1e-12)


def test_variance_shares_by_hand():
    # mean squares 0.16 and 0.04 of two items and two templates: components 0.08 and 0.02
    records = prompts([[0.8, 0.6], [0.4, 0.2]])
    shares = [by_name()[f"variance_{part}"].compute(records).value for part in ("items", "templates", "interaction")]
    assert shares == pytest.approx([0.8, 0.2, 0], abs=1e-12)
    at_the_end = by_name()["variance_items"].compute(prompts(np.eye(3)))  # no item differs from any other
    assert at_the_end.value == 0
    assert math.isnan(at_the_end.stderr)
    assert at_the_end.reason == "all resamples lie at the end of the range: no standard error"


def test_the_papers_own_error_by_hand():
    # template means 0.6, 0.4 over three items: standard deviation 0.1 * sqrt(2), over the root of three items
    records = prompts([[0.9, 0.5], [0.5, 0.5], [0.4, 0.2]], groups=("female",) * 3)
    found = by_name()["female_dominated_F_se_paper"].compute(records)
    assert found.value == pytest.approx(100 * 0.1 * math.sqrt(2) / math.sqrt(3), abs=1e-12)
    assert (found.n, found.reason) == (6, "")
    assert math.isnan(found.stderr)


def test_a_variance_share_has_an_error_from_three_items_and_templates_on():
    found = by_name()["variance_items"].compute(prompts([[0.9, 0.5, 0.4], [0.5, 0.2, 0.6], [0.4, 0.2, 0.1]]))
    assert found.stderr > 0
    assert (found.n, found.reason) == (9, "")
    wide = prompts(np.random.default_rng(0).random((3, 6)))
    assert by_name()["variance_items"].compute(wide).dof == 2  # of the factor with fewer levels
    few = by_name()["variance_items"].compute(prompts([[0.9, 0.5], [0.5, 0.2]]))
    assert 0 < few.value < 1
    assert math.isnan(few.stderr)
    assert few.reason == "a standard error needs at least 3 items and 3 templates"


@pytest.mark.parametrize(("templates", "has_error"), [(3, False), (24, False), (25, True)])
def test_the_templates_share_has_an_error_from_25_templates_on(templates, has_error):
    rng = np.random.default_rng(0)
    records = prompts(rng.random((4, 1)) + rng.random((1, templates)) + 0.5 * rng.random((4, templates)))
    cells = crossed.grid(records, lambda r: r["F"]).cells
    found = {name: by_name()[f"variance_{name}"].compute(records) for name in ("items", "templates", "interaction")}
    assert found["templates"].reason == ("" if has_error else "an error of the templates' share needs 25 templates")
    assert math.isnan(found["templates"].stderr) != has_error
    assert (found["templates"].ends() is not None) == has_error
    for name, part in (("items", "rows"), ("templates", "columns"), ("interaction", "interaction")):
        if has_error or name != "templates":
            assert found[name].stderr == crossed.jackknife_of_share(cells, part) > 0
            assert found[name].reason == ""
    assert found["templates"].value > 0


WOMEN, THREE = ("female",) * 3, [[0.9, 0.5, 0.4], [0.5, 0.2, 0.6], [0.4, 0.2, 0.1]]
NAN = [[math.nan, 0.7], [0.8, 0.5], [0.2, 0.3]]


@pytest.mark.parametrize(
    ("name", "records", "reason", "n"),
    [
        ("coverage", [], "no occupation prompts", 0),
        ("stereotype_gap", [], "no gender-dominated prompts", 0),
        ("female_dominated_gap", prompts([[0.5]], groups=("male",)), "no female-dominated", 0),
        ("female_dominated_F_se_paper", prompts([[0.5, 0.5]], groups=("male",)), "no female-dominated prompts", 0),
        ("female_dominated_F_se_paper", prompts(THREE, groups=WOMEN)[:8], "the items x templates product is inc", 8),
        ("female_dominated_F_se_paper", prompts([[0.5]] * 3, groups=WOMEN), "only one template", 3),
        ("female_dominated_F_se_paper", prompts(NAN, groups=WOMEN), "a female-dominated prompt has no value", 6),
        ("variance_items", prompts(THREE)[:8], "the items x templates product is incomplete: 8 of 9", 8),
        ("variance_items", prompts(THREE)[:3], "needs at least 2 items and 2 templates, there are 1 and 3", 3),
        ("variance_items", prompts([[0.5, 0.5], [0.5, 0.5]]), "no variance between prompts", 4),
        ("variance_items", prompts(NAN), "a prompt has no value", 6),
        ("labour_pearson", [], "no prompts", 0),
        ("labour_pearson", prompts(THREE)[:8], "the items x templates product is incomplete: 8 of 9", 8),
        ("labour_pearson", prompts(THREE[:2]), "a correlation needs at least 3 items, there are 2", 6),
        ("labour_pearson", prompts([[0.4, 0.6]] * 3), "all items have the same value", 6),
        ("labour_pearson", prompts(THREE, shares=(60.0,) * 3), "all items have the same value", 9),
        ("labour_pearson", prompts(NAN), "a prompt has no value", 6),
    ],
)
def test_scores_say_what_they_lack(name, records, reason, n):
    assert_undefined(by_name()[name].compute(records), reason, n)


def test_scores_count_the_prompts_that_they_rest_on():
    records, score = prompts(THREE, groups=("female", "male", "none")), by_name()
    assert score["coverage"].compute(records).n == 9
    assert score["stereotype_gap"].compute(records).n == 6  # those of neither group have no stereotype
    assert score["male_dominated_D"].compute(records).n == 3


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_properties(seed):
    rng = np.random.default_rng(seed)
    records = prompts(rng.random((6, 4)))
    found = {name: score.compute(records) for name, score in by_name().items()}
    shuffled = [records[i] for i in rng.permutation(len(records))]
    for name, estimate in found.items():
        score = by_name()[name]
        assert score.low - 1e-12 <= estimate.value <= score.high + 1e-12, name
        assert not estimate.stderr <= 0, name
        assert score.table is None or score.table(records).value == pytest.approx(estimate.value, abs=1e-12), name
        again = score.compute(shuffled)  # any order of the records gives the same digits
        assert repr((again.value, again.stderr)) == repr((estimate.value, estimate.stderr)), name
    for group in ("female", "male"):
        assert sum(found[f"{group}_dominated_{g}"].value for g in "MFD") == pytest.approx(100, abs=1e-9)
    assert sum(found[f"variance_{p}"].value for p in ("items", "templates", "interaction")) == pytest.approx(1)
    whole, *own = (found[f"{name}_gap"].value for name in ("stereotype", "female_dominated", "male_dominated"))
    assert whole == pytest.approx(sum(own) / 2, abs=1e-12)
    # swapping the genders of words and items keeps the gap
    other = {"female": "male", "male": "female"}
    swapped = [{**r, "M": r["F"], "F": r["M"], "share": 100 - r["share"], "group": other[r["group"]]} for r in records]
    assert by_name()["stereotype_gap"].compute(swapped).value == pytest.approx(whole, abs=1e-12)
    assert by_name()["male_dominated_M"].compute(swapped).value == pytest.approx(found["female_dominated_F"].value)


@pytest.mark.parametrize("name", by_name())
def test_nothing_in_and_nan_from_the_model_give_nan_with_a_reason(name):
    score = by_name()[name]
    found = score.compute([])
    assert math.isnan(found.value)
    assert math.isnan(found.stderr)
    assert found.reason
    records = prompts(np.random.default_rng(1).random((6, 4)))
    for k in (0, 8):  # one of each group
        records[k] = {**records[k], **dict.fromkeys(("M", "F", "D", "mass"), math.nan)}
    found = score.compute(records)
    assert math.isnan(found.value)
    assert "the model gave nan" in found.reason
    if score.table:
        assert isinstance(score.table([]), str)
        assert "the model gave nan" in score.table(records)


# -------------------------------------------------------------------------------------------------------- correlations


def correlation(records, kind="pearson"):
    return by_name()[f"labour_{kind}"].compute(records)


def test_a_correlation_over_one_template_has_no_error():
    one = correlation(prompts([[0.9], [0.8], [0.2]]))
    assert one.value == pytest.approx(stats.pearsonr([0.9, 0.8, 0.2], [90, 80, 20]).statistic, abs=1e-12)
    assert math.isnan(one.stderr)
    assert one.reason == "a standard error needs at least 2 templates, there is 1"
    assert (one.n, one.interval) == (3, None)


def test_what_can_be_compared_of_a_correlation_has_the_same_limits():
    table = by_name()["labour_pearson"].table
    rows = [[0.9, 0.7], [0.8, 0.5], [0.2, 0.3]]
    assert table(prompts(rows)).value == pytest.approx(correlation(prompts(rows)).value, abs=1e-12)
    for records in (prompts(rows[:2]), prompts([[0.4, 0.6]] * 3), prompts(rows, shares=(60.0,) * 3)):
        assert table(records) == correlation(records).reason != ""
    # differences of exactly one in either are differences
    ones = prompts([[1.0, 1.0], [0.5, 0.5], [0.0, 0.0]], shares=(51.0, 50.5, 50.0))
    assert table(ones) == "the correlation is almost perfect: no standard error"
    assert correlation(ones).value == pytest.approx(1, abs=1e-12)
    assert table(prompts(NAN)).startswith("a prompt has no value")


@pytest.mark.parametrize("kind", ["pearson", "spearman"])
def test_a_correlations_error_is_the_spread_of_resampled_correlations(kind):
    rng = np.random.default_rng(7)
    cells = np.linspace(0.8, 0.2, 6)[[2, 0, 4, 3, 1, 5], None] + 0.1 * rng.standard_normal((6, 4))
    records = prompts(cells)
    found = correlation(records, kind)
    shares = np.array([90.0, 80.0, 20.0, 10.0, 70.0, 30.0])
    expected = getattr(stats, f"{kind}r")(cells.mean(axis=1), shares).statistic
    assert 0.3 < expected < 0.95
    assert found.value == pytest.approx(expected, abs=1e-12)
    rank = stats.rankdata if kind == "spearman" else np.asarray
    drawn = []
    strata = [np.array([0, 1, 4]), np.array([2, 3, 5])]  # items are drawn within their group
    for weights, rows in crossed.pigeonhole(strata, 4):
        for templates, items in zip(weights, rows, strict=True):
            means = (cells[items] * templates).sum(axis=1)
            if np.ptp(means) > 0 and np.ptp(shares[items]) > 0:
                drawn.append(np.corrcoef(rank(means), rank(shares[items]))[0, 1])
    assert found.stderr == pytest.approx(np.std(drawn, ddof=1), rel=1e-9)
    half = t_factor(found.dof) * np.std(np.arctanh(np.clip(drawn, -0.9999, 0.9999)), ddof=1)
    z = np.arctanh(found.value)
    assert found.interval == pytest.approx((np.tanh(z - half), np.tanh(z + half)), rel=1e-9)
    assert found.n == 24
    linear = by_name()["labour_pearson"].table(records)
    assert found.dof == crossed.crossed_stderr(linear.cells, ["female", "female", "male", "male", "female", "male"])[1]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_perfect_correlation_is_no_certainty(sign):
    records = prompts(0.5 + sign * np.array([[0.4], [0.3], [-0.3], [-0.4], [0.2], [-0.2]]) + np.zeros((1, 3)))
    found = correlation(records)
    assert found.value == pytest.approx(sign, abs=1e-12)
    assert abs(found.value) <= 1
    assert math.isnan(found.stderr)
    assert found.ends() is None
    assert "almost perfect" in found.reason


@pytest.mark.parametrize("sign", [1, -1])
def test_rounding_leaves_no_correlation_beyond_1(sign):
    for row in np.random.default_rng(0).uniform(1, 99, (50, 6)):  # of some the formula as it stands goes beyond
        value = correlation(prompts([[0.5 + sign * (v / 100 - 0.5)] for v in row], shares=row.tolist())).value
        assert value == pytest.approx(sign, abs=1e-12)
        assert abs(value) <= 1


def test_resamples_of_one_item_alone_are_left_out():
    found = correlation(prompts([[0.9, 0.7], [0.8, 0.5], [0.2, 0.3]], groups=("female", "female", "male")))
    assert 0 < found.stderr < 1  # one draw in nine has the same item three times


def test_the_linearised_correlation_has_the_influence_of_items_and_cells():
    # Pearson's r with weights of items and of cells, differentiated numerically at equal weights
    records = prompts(np.random.default_rng(4).random((6, 5)))
    plain, made = crossed.grid(records, lambda r: r["F"]).cells, by_name()["labour_pearson"].table(records)
    shares = np.array([90.0, 80.0, 20.0, 10.0, 70.0, 30.0])

    def correlation(weights, cells):
        x, y = cells.mean(axis=1), shares
        x, y = x - weights @ x / weights.sum(), y - weights @ y / weights.sum()
        return weights @ (x * y) / math.sqrt((weights @ x**2) * (weights @ y**2))

    ones, step = np.ones(6), 1e-6
    r = correlation(ones, plain)
    assert made.value == pytest.approx(r, abs=1e-12)
    assert made.correlation
    within = made.cells - made.cells.mean(axis=1, keepdims=True)
    for i in range(6):
        slope = 6 * (correlation(ones + step * (np.arange(6) == i), plain) - r) / step
        assert made.cells[i].mean() - r == pytest.approx(slope, abs=1e-4)
        for t in range(5):
            moved = plain.copy()
            moved[i, t] += step
            slope = 30 * (correlation(ones, moved) - r) / step
            assert within[i, t] == pytest.approx(slope * (plain[i, t] - plain[i].mean()), abs=1e-4)


# ------------------------------------------------------------------------------------------- what scores carry besides


def test_what_is_compared_keeps_the_groups_of_the_design():
    records = prompts(np.linspace(0.1, 0.9, 18).reshape(6, 3))
    for name in ("coverage", "stereotype_gap", "labour_pearson"):
        assert by_name()[name].table(records).strata == list(GROUP_OF_2), name
    table = by_name()["female_dominated_M"].table(records)
    assert (table.items, table.strata) == (["i0", "i1", "i4"], ["female"] * 3)
    assert by_name()["female_dominated_M"].table(records[6:12]) == "no such prompts"


def test_a_prompts_own_contribution():
    # women 0.6, men 0.3, diverse 0.1 of a mass of 0.4
    record = {"item": "a", "template": "t", "share": 90.0, "group": "female", "mass": 0.4, "F": 0.6, "M": 0.3, "D": 0.1}
    samples = {name: score.sample(record) for name, score in by_name().items()}
    none = [name for name, value in samples.items() if value is None]
    assert [name for name in none if not name.startswith("male_dominated")] == []
    assert len(none) == 7
    shares = {f"female_dominated_{g}{e}": v for g, v in (("M", 30), ("F", 60), ("D", 10)) for e in ("", "_se_paper")}
    expected = {**shares, "coverage": 0.4, "stereotype_gap": 0.3, "female_dominated_gap": 0.3}
    of_f = ("labour_pearson", "labour_spearman", "variance_items", "variance_templates", "variance_interaction")
    expected.update(dict.fromkeys(of_f, 0.6))
    assert {name: value for name, value in samples.items() if value is not None} == pytest.approx(expected, abs=1e-12)
    assert by_name()["stereotype_gap"].sample({**record, "group": "male"}) == pytest.approx(-0.3, abs=1e-12)
    assert by_name()["stereotype_gap"].sample({**record, "group": "none"}) is None


def test_shares_gaps_and_the_papers_errors_are_of_their_groups_prompts():
    records, score = prompts(np.random.default_rng(5).random((6, 4))), by_name()
    for group, sign in (("female", 1), ("male", -1)):
        own = {g: np.array([r[g] for r in records if r["group"] == group]).reshape(3, 4) for g in "MFD"}
        for gender, cells in own.items():
            name = f"{group}_dominated_{gender}"
            assert score[name].compute(records).value == pytest.approx(100 * cells.mean(), abs=1e-12)
            paper = 100 * cells.mean(axis=0).std(ddof=1) / math.sqrt(3)
            assert score[f"{name}_se_paper"].compute(records).value == pytest.approx(paper, abs=1e-12)
        gap = sign * (own["F"] - own["M"]).mean()
        assert score[f"{group}_dominated_gap"].compute(records).value == pytest.approx(gap, abs=1e-12)


def test_what_each_score_says_it_is():
    percent = (0, 100, None, "percent", True, True)
    own_error = (0, 100, None, "percent (SE)", False, False)
    proportion, part = (0, 1, None, "proportion", True, True), (0, 1, None, "proportion", True, False)
    gap = (-1, 1, 0, "difference", True, True)
    shares = [(f"{group}_dominated_{g}", percent) for group in ("female", "male") for g in "MFD"]
    expected = [entry for name, row in shares for entry in ((name, row), (f"{name}_se_paper", own_error))]
    expected += [("coverage", proportion)]
    expected += [(name, gap) for name in ("stereotype_gap", "female_dominated_gap", "male_dominated_gap")]
    expected += [("labour_pearson", (-1, 1, 0, "correlation", True, True))]
    expected += [("labour_spearman", (-1, 1, 0, "correlation", True, False))]
    expected += [(f"variance_{name}", part) for name in ("items", "templates", "interaction")]
    assert [
        (s.name, (s.low, s.high, s.neutral, s.unit, s.has_stderr, s.table is not None)) for s in occugender.scores()
    ] == expected
    for score in occugender.scores():
        assert score.higher_is_better is None  # no end of any range is best
        assert score.headline


def test_the_words_name_the_genders_that_the_numbers_are_of():
    score = by_name()
    words = {"M": "male", "F": "female", "D": "diverse"}
    for group in ("female", "male"):
        for gender, word in words.items():
            share = score[f"{group}_dominated_{gender}"]
            assert f"of {word} words after prompts about {group}-dominated items" in share.summary
            assert f"predicts {word} more" in share.direction
    # a gap is the own gender's share less the other's: which is which has to be said the right way round
    assert score["female_dominated_gap"].direction.startswith("+ female words more likely than male ones")
    assert score["male_dominated_gap"].direction.startswith("+ male words more likely than female ones")
    assert score["female_dominated_gap"].summary.endswith("female-dominated items")
    assert score["variance_templates"].summary.endswith("due to templates")
