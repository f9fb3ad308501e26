"""What StereoSet's scores carry beside their values: names, an item's own part, the form that is resampled."""

import math

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.custom_metrics import stereoset as m

KINDS = ("lms", "ss", "icat", "mc_lms", "mc_ss", "mc_ss_sd", "mc_icat_macro", "mc_icat_micro")


def record(term, outcomes, test="intra", bias_type="gender"):
    by_method = outcomes if isinstance(outcomes, dict) else {m.METHOD: outcomes}
    return {"test": test, "bias_type": bias_type, "term": term, "outcomes": by_method, "variants": list(by_method)}


def drawn(rng, terms="abcd", bias_type="gender"):
    """Items of each term in two ways of scoring, two to four a term."""
    outcomes = {term: rng.integers(0, [2, 3], size=(2, 2 + place % 3, 2)).tolist() for place, term in enumerate(terms)}
    return [record(term, {"gen": own, "gen_pmi": other}, bias_type=bias_type)
            for term, pairs in outcomes.items() for own, other in zip(*pairs, strict=True)]  # fmt: skip


def by_name(scores):
    return {score.name: score for score in scores}


@pytest.fixture
def two_types():
    rng = np.random.default_rng(7)
    return drawn(rng) + drawn(rng, "efg", "race")


def seen_by(method, records):
    """The records as a benchmark with one way of scoring has them."""
    return [record(r["term"], r["outcomes"][method], bias_type=r["bias_type"]) for r in records]


@pytest.mark.parametrize("method", ["gen", "gen_pmi"])
def test_a_variants_scores_are_those_of_its_own_outcomes(two_types, method):
    scores = by_name(m.variant_scores(two_types, detailed=True))
    alone = seen_by(method, two_types)
    for name, score in by_name(m.scores(alone)).items():
        own, same = scores[f"{method}/{name}"], alone
        assert own.compute(two_types) == score.compute(alone)
        assert list(map(own.sample, two_types)) == list(map(score.sample, alone))
        assert own.table(two_types).value == score.table(alone).value
        assert own.table(two_types).composite == score.table(alone).composite
        if (bias_type := name.rpartition("/")[0]) in m.BIAS_TYPES:
            same = [r for r in alone if r["bias_type"] == bias_type]
        kind = by_name(m.scores())[name.rpartition("/")[2]]
        assert own.compute(two_types).value == kind.compute(same).value
    first, second = (scores[f"{name}/mc_lms"].compute(two_types).value for name in ("gen", "gen_pmi"))
    assert first != second


def test_variants_are_those_of_the_items_and_broken_down_where_asked(two_types):
    names = [f"{method}/{kind}" for method in ("gen", "gen_pmi") for kind in KINDS]
    assert [s.name for s in m.variant_scores(two_types)] == names
    names = [f"{method}/{part}{kind}" for method in ("gen", "gen_pmi") for part in ("", "gender/", "race/")
             for kind in KINDS]  # fmt: skip
    assert [s.name for s in m.variant_scores(two_types, detailed=True)] == names
    assert [s.name for s in m.variant_scores(two_types[:1])] == names[:8] + names[24:32]  # of one item too


def test_without_items_the_variant_scores_are_of_every_way(two_types):
    scores, absent = by_name(m.variant_scores(two_types)), by_name(m.variant_scores())
    assert list(absent) == [f"{way}/{kind}" for way in m.VARIANTS for kind in KINDS]
    for name in set(scores) & set(absent):
        assert scores[name].compute(two_types) == absent[name].compute(two_types)


def test_every_name_that_any_data_set_has():
    both = [record("a", [1, 2], test) for test in m.TESTS]
    fixed = [s.name for s in m.scores(both) if not s.name.startswith("gender/")]
    assert [s.name for s in m.scores()] == fixed == [f"{p}{k}" for p in ("", "intra/", "inter/") for k in KINDS]
    inter = by_name(m.scores())["inter/lms"]
    assert inter.compute([record("a", [1, 2], "intra"), record("a", [0, 1], "inter")]).value == 50.0
    everyway = [record("a", {name: [1, 2] for name in m.VARIANTS})]
    assert [s.name for s in m.variant_scores()] == [s.name for s in m.variant_scores(everyway)]
    for place, name in enumerate(m.VARIANTS):  # each reads its own outcome
        one = record("a", {other: [int(other == name), 2] for other in m.VARIANTS})
        values = [by_name(m.variant_scores())[f"{other}/ss"].compute([one]).value for other in m.VARIANTS]
        assert values == [100.0 * (other == place) for other in range(len(m.VARIANTS))]


def test_summaries_name_the_part_and_the_way_of_scoring():
    records = [record("a", [1, 2], "intra", "gender"), record("a", [1, 2], "inter", "race")]
    scores = by_name(m.scores(records, detailed=True))
    assert scores["ss"].summary == "stereotype score"
    assert scores["race/ss"].summary == "stereotype score; bias_type race"
    assert scores["intra/race/ss"].summary == "stereotype score; test intra; bias_type race"
    (variant,) = (s for s in m.variant_scores([record("a", {"gen_pmi": [1, 2]}, "inter", "race")], True)
                  if s.name == "gen_pmi/race/ss")  # fmt: skip
    assert variant.summary == "stereotype score; bias_type race; gen_pmi"


def test_a_part_without_items_is_named():
    score = by_name(m.scores([record("a", [1, 2], test, "race") for test in m.TESTS], True))["inter/race/ss"]
    assert score.compute([record("a", [1, 2], "inter", "gender")]).reason == "no inter race items"


def test_scores_say_their_range_unit_and_neutral_value():
    for score in (*m.scores(), *m.variant_scores()):
        kind = score.name.rpartition("/")[2]
        assert (score.low, score.high) == (0.0, 50.0 if kind == "mc_ss_sd" else 100.0), score.name
        neutral = {"ss": 50.0, "mc_ss": 50.0, "mc_ss_sd": None}.get(kind, 100.0)
        assert score.neutral == neutral, score.name
        assert score.unit == "percent", score.name
        # of SS neither end is good, and of its spread less isn't better: chance alone gives some
        assert score.higher_is_better == (None if "ss" in kind else True), score.name
        assert score.has_stderr
        assert score.headline


def test_an_items_own_part_averages_to_the_score():
    records = [record("a", own) for own in ([1, 2], [1, 1], [0, 2], [0, 0], [1, 0])]
    scores = by_name(m.scores())
    for name in ("lms", "ss"):
        parts = [scores[name].sample(r) for r in records]
        assert sum(parts) / len(parts) == scores[name].compute(records).value
    assert [scores["mc_lms"].sample(r) for r in records] == [100.0, 50.0, 100.0, 0.0, 0.0]
    for name in KINDS[1:3] + KINDS[4:]:
        assert [scores[name].sample(r) for r in records] == [100.0, 100.0, 0.0, 0.0, 100.0], name
    for name in KINDS:
        assert math.isnan(scores[name].sample(record("a", None)))
    within = by_name(m.scores(records))["gender/ss"]
    assert within.sample(records[0]) == 100.0
    assert within.sample(record("a", [1, 2], bias_type="race")) is None


def copies(records, weights):
    """Each term as often as its weight says, each time as a term of its own."""
    terms = sorted({r["term"] for r in records})
    return [{**r, "term": f"{r['term']}{copy}"} for r in records
            for copy in range(weights[terms.index(r["term"])])]  # fmt: skip


WEIGHTS = np.array([[1, 1, 1, 1], [0, 2, 1, 1], [3, 0, 2, 1], [0, 0, 5, 1], [1, 0, 0, 0], [2, 2, 2, 2]])


@pytest.mark.parametrize("kind", KINDS)
def test_resampled_terms_give_the_score_of_as_many_copies(kind):
    records = seen_by("gen", drawn(np.random.default_rng(3)))
    score = by_name(m.scores())[kind]
    form = score.table(records)
    expected = [score.compute(copies(records, own)).value for own in WEIGHTS]
    assert form.of(WEIGHTS.astype(float), form.totals) == pytest.approx(expected, abs=1e-9)
    assert form.names == list("abcd")
    # what a term weighs: its items, or 1 in a mean over terms
    assert form.sizes.tolist() == ([1, 1, 1, 1] if kind.startswith("mc_") else [2, 3, 4, 2])
    # kinks, and no mean of the terms: equal scores needn't come from terms that can be exchanged
    assert form.composite == (kind in ("icat", "mc_icat_micro", "mc_ss_sd"))


@pytest.mark.parametrize("kind", KINDS)
def test_each_draw_may_have_answers_of_its_own(kind):
    rng = np.random.default_rng(5)
    score = by_name(m.scores())[kind]
    draws = [seen_by("gen", drawn(rng)) for _ in WEIGHTS]
    totals = np.stack([score.table(own).totals for own in draws])
    found = score.table(draws[0]).of(WEIGHTS.astype(float), totals)
    expected = [score.compute(copies(own, weights)).value for own, weights in zip(draws, WEIGHTS, strict=True)]
    assert found == pytest.approx(expected, abs=1e-9)


def test_what_cannot_be_resampled_says_why():
    score = by_name(m.scores())["ss"]
    assert score.table([]) == "no items"
    broken = [record("a", [1, 2]), record("a", None), record("b", None)]
    assert score.table(broken) == score.compute(broken).reason == "the model gave nan for 2 of 3 items"
    assert all(s.compute(broken).n == 3 for s in m.scores() if "/" not in s.name)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_leave_out_a_term_at_a_time_and_shares_have_wilsons_interval(kind):
    records = seen_by("gen", drawn(np.random.default_rng(2), "abcdefgh"))
    score = by_name(m.scores())[kind]
    estimate = score.compute(records)
    terms = sorted({r["term"] for r in records})
    without = [score.compute([r for r in records if r["term"] != term]).value for term in terms]
    stderr = math.sqrt(7 / 8 * sum((value - estimate.value) ** 2 for value in without))
    assert estimate.stderr == pytest.approx(stderr, abs=1e-9)
    assert estimate.n == len(records) == 23
    items = [sum(r["term"] == term for r in records) for term in terms]
    # as many degrees of freedom as equal terms would have; in a mean over terms all are equal
    dof = 7 if kind.startswith("mc_") else 23**2 / sum(n * n for n in items) - 1
    assert estimate.dof == pytest.approx(dof, abs=1e-9)
    t = stats.t.ppf(0.975, dof)
    if kind in ("lms", "ss"):  # the shares at which the score test of as many items just doesn't reject
        p = estimate.value / 100
        square = t**2 * (stderr / 100) ** 2 / (p * (1 - p))
        ends = sorted(np.roots([1 + square, -2 * p - square, p * p]) * 100)
        assert estimate.interval == pytest.approx(ends, abs=1e-9)
    else:
        assert estimate.interval is None
        assert estimate.ends() == pytest.approx((estimate.value - t * stderr, estimate.value + t * stderr), abs=1e-9)
