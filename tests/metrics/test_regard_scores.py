"""What regard's scores carry beside their values: names, units, reasons, cautions, the form that is resampled."""

import math

import numpy as np
import pytest

from lm_eval_bias.custom_metrics import regard as m

NUMBERS = ("chi2", "dof", "n", "p", "p_permutation", "p_holm", "cramers_v")


def of(*counts, sets=("respect",), facets=()):
    """So many negative, neutral, positive (and other) texts."""
    return [(label, list(sets), list(facets)) for label, n in zip((*m.REGARDS, m.OTHER), counts, strict=False)
            for _ in range(n)]  # fmt: skip


def record(gender, texts, **more):
    wordings = [f"{gender} {i} of {more.get('context')}" for i in range(len(texts))]
    return {"gender": gender, "texts": texts, "repeated": False, "drawn": len(texts) or 5, "unfinished": 0,
            "wordings": wordings, "has_other": False, "caveat": "", **more}  # fmt: skip


def by_name(records=(), detailed=True):
    return {score.name: score for score in m.scores(records, detailed)}


def drawn(rng, context):
    """Texts of one context about women and about men; each has a keyword of caregiving or not."""
    context_set = "respect" if context in "abc" else "occupation"
    return [
        record(gender, [text for facets in ([], ["caregiving"])
                        for text in of(*rng.integers(1, 9, size=3), sets=[context_set], facets=facets)],
               context=context, context_set=context_set)
        for gender in m.GENDERS
    ]  # fmt: skip


@pytest.fixture
def prompts():
    rng = np.random.default_rng(4)
    return [prompt for context in "abcde" for prompt in drawn(rng, context)]


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("detailed", [False, True])
def test_names(other, detailed):
    regards = (*m.REGARDS, "other") if other else m.REGARDS
    people = ("female", "male")
    expected = {"dropped", "unfinished", "distinct"}
    for context_set in ("all", "occupation", "respect"):
        expected |= {f"{context_set}/{name}" for name in (*NUMBERS, "negative_gap", "positive_gap")}
        expected |= {f"{context_set}/{who}/{regard}" for who in people for regard in regards}
    for regard in ("negative", "positive"):
        expected |= {f"all/{regard}_gap_corrected", *(f"all/{who}/{regard}_corrected" for who in people)}
    for facet in ("caregiving", "sexualization", "perpetration"):
        cells = ["", "/occupation", "/respect", *(f"/{regard}" for regard in regards)]
        if detailed:
            cells += [f"/{part}/{regard}" for part in ("occupation", "respect") for regard in regards]
        expected |= {f"{facet}/gap", *(f"{facet}/{who}{cell}" for who in people for cell in cells)}
    records = [record("female", [], has_other=False), record("male", [], has_other=other), {}]
    names = [score.name for score in m.scores(records, detailed)]
    assert len(names) == len(set(names))
    assert set(names) == expected
    assert m.scores(records)[-4].name == m.scores(records, False)[-4].name == "perpetration/gap"
    assert len(m.scores(records)) == len(m.scores(records, False))  # in short, unless asked otherwise


def test_units_and_what_can_be_resampled():
    for name, score in by_name().items():
        kind = name.rpartition("/")[2]
        number = kind in NUMBERS
        counts = {"chi2": "count", "dof": "count", "n": "count", "cramers_v": "correlation"}
        assert score.unit == counts.get(kind, "difference" if "gap" in kind else "proportion"), name
        assert score.has_stderr == (not number and kind != "distinct"), name
        compared = not number and not kind.endswith("corrected") and kind not in ("dropped", "unfinished", "distinct")
        assert (score.table is not None) == compared, name


@pytest.mark.parametrize(
    ("name", "summary"),
    [
        ("all/female/positive", "share of positive texts about women, all contexts"),
        ("occupation/male/neutral", "share of neutral texts about men, occupation contexts"),
        ("caregiving/female", "share of texts about women with a caregiving keyword, all contexts"),
        ("caregiving/male/respect/negative",
         "share of negative texts about men with a caregiving keyword, respect contexts"),
        ("respect/positive_gap", "share of positive texts, women minus men, respect contexts"),
        ("caregiving/gap", "share of texts with a caregiving keyword, women minus men"),
        ("respect/dof", "degrees of freedom of the chi-square, respect contexts"),
        ("all/n", "texts in the test, all contexts"),
        ("all/female/positive_corrected",
         "share of positive texts about women, all contexts, corrected for the classifier's errors"),
        ("dropped", "share of texts that are not sentences and were left out"),
        ("unfinished", "share of kept texts that don't end like sentences"),
        ("distinct", "share of different texts among those kept"),
        ("all/negative_gap_corrected",
         "share of negative texts, women minus men, all contexts, corrected for the classifier's errors"),
    ],
)  # fmt: skip
def test_summaries(name, summary):
    assert by_name()[name].summary == summary


WEIGHTS = np.array(
    [[1, 1, 1, 1, 1], [0, 2, 1, 1, 3], [3, 0, 2, 1, 0], [0, 0, 0, 1, 0], [1, 0, 0, 0, 0], [0, 2, 0, 0, 5]]
)


@pytest.mark.parametrize(
    "name",
    [
        "all/female/positive", "respect/male/negative", "all/negative_gap", "occupation/positive_gap", "caregiving/gap",
        "caregiving/female", "caregiving/male/respect", "caregiving/female/occupation/neutral",
    ],
)  # fmt: skip
def test_resampled_contexts_give_the_score_of_as_many_copies(prompts, name):
    score = by_name()[name]
    form = score.table(prompts)
    assert form.names == list("abcde")
    copies = [[r for r in prompts for _ in range(own["abcde".index(r["context"])])] for own in WEIGHTS.tolist()]
    expected = [score.compute(own).value for own in copies]
    assert form.of(WEIGHTS.astype(float), form.totals) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert not math.isnan(expected[0])
    assert form.value == expected[0]


def test_what_cannot_be_resampled_says_why(prompts):
    scores = by_name()
    labelled = [{k: v for k, v in r.items() if not k.startswith("context")} for r in prompts]
    for name in ("all/female/positive", "all/positive_gap"):
        assert "without a prompt" in scores[name].table(labelled)
        assert scores[name].table([]) == "no texts"
    women = [r for r in prompts if r["gender"] == "female"]
    assert scores["all/male/positive"].table(women) == "no texts"
    assert scores["all/positive_gap"].table(women) == "no such texts about women or men"
    assert scores["respect/female/positive"].table(women[3:]) == "no such texts about women"
    other = by_name([{"has_other": True}])["caregiving/male/other"]
    assert other.table(prompts) == "no such texts about men"


# ------------------------------------------------------------------ where there is no value


def reasons(records, *names):
    """Why scores have no value."""
    scores = by_name(records)
    estimates = [scores[name].compute(records) for name in names]
    assert all(math.isnan(e.value) for e in estimates)
    return [e.reason for e in estimates]


def test_how_many_texts_were_dropped_is_said_where_none_is_left():
    men = record("male", of(2, 3, 4))
    gone = [record("female", [], drawn=20), record("female", [], drawn=30)]
    names = ("all/female/positive", "all/positive_gap", "all/female/positive_corrected")
    assert reasons([*gone, men], *names) == ["no texts about women left of 50"] * 3
    test = "no negative, neutral or positive texts about women"
    assert reasons([*gone, men], "all/chi2", "all/p_holm") == [f"{test} left of 50"] * 2
    assert by_name()["all/n"].compute([*gone, men]).reason == f"{test} left of 50"
    assert reasons([men], "all/chi2", *names) == [test] + ["no texts about women"] * 3
    others = record("female", of(0, 0, 0, 5), has_other=True)
    assert reasons([*gone, others, men], "all/chi2") == [test]  # some texts are left
    assert reasons([*gone, men], "respect/chi2") == [f"{test} in respect contexts"]
    assert reasons([*gone, men], "respect/female/positive") == ["no texts about women in respect contexts"]
    assert reasons([*gone, men], "respect/positive_gap") == ["no texts about women in respect contexts"]
    nothing = [record("female", [], drawn=0), men]
    assert reasons(nothing, "all/female/positive") == ["no texts about women"]


def test_keywords_of_no_texts():
    women, men = record("female", of(1, 0, 2)), record("male", of(2, 3, 4))
    names = ("caregiving/female/neutral", "caregiving/female/respect/neutral", "caregiving/female/occupation")
    assert reasons([women, men], *names) == [
        "no neutral texts about women",
        "no neutral texts about women in respect contexts",
        "no texts about women in occupation contexts",
    ]
    gap = by_name()["caregiving/gap"].compute([women])
    assert (gap.reason, gap.n) == ("no texts about men", 3)


# ------------------------------------------------------------------ tests


def test_half_of_the_prompts_repeated_is_still_a_sample():
    women, men = record("female", of(4, 3, 9)), record("male", of(9, 5, 1))
    same = [{**women, "repeated": True}, men]
    assert by_name()["all/n"].compute(same).value == 31
    (reason,) = reasons([*same, {**women, "repeated": True}], "all/chi2")
    assert reason.startswith("most prompts gave the same text each time: the model did not sample")
    # texts that are no samples say nothing of how the others were drawn
    labelled = [{**r, "repeated": None} for r in (women, men, women, men)]
    (reason,) = reasons([*same, {**women, "repeated": True}, *labelled], "all/chi2")
    assert reason.startswith("most prompts gave the same text each time")
    assert by_name()["all/n"].compute(labelled).value == 62


def test_one_text_a_prompt_is_no_sample_whatever_else_there_is():
    one = [record("female", of(1)), record("male", of(0, 1))]
    several = [record(gender, of(4, 3, 9), repeated=None) for gender in m.GENDERS]
    assert reasons([*one, *several], "all/chi2") == [
        "only one text per prompt: a test needs several samples of each prompt"
    ]
    assert by_name()["all/n"].compute([*one, record("male", of(1, 1))]).value == 4


def test_two_classes_are_enough_for_a_test():
    scores = by_name()
    for women, men in (((4, 6, 0), (9, 3, 0)), ((4, 0, 6), (9, 0, 3)), ((0, 4, 6), (0, 9, 3))):
        records = [record("female", of(*women)), record("male", of(*men))]
        assert scores["all/dof"].compute(records).value == 1.0
    for place, name in enumerate(m.REGARDS):
        one = [record(gender, of(*(7 * (k == place) for k in range(3)))) for gender in m.GENDERS]
        assert reasons(one, "all/chi2") == [f"all 14 texts are {name}: there is nothing to compare"]


def test_numbers_of_a_test_have_its_number_of_texts_and_no_error():
    scores = by_name()
    records = [record("female", of(12, 8, 9, 3)), record("male", of(9, 15, 11))]
    for name in NUMBERS:
        estimate = scores[f"all/{name}"].compute(records)
        assert estimate.n == 64, name
        assert math.isnan(estimate.stderr)
        assert estimate.reason == ""
        assert (estimate.fixed_interval is not None) == (name == "cramers_v")
        assert estimate.interval is None
    none = scores["all/n"].compute([])
    assert (none.value, none.n) == (0.0, 0)
    assert math.isnan(none.stderr)


def test_cautions_of_a_test_one_after_the_other():
    scores = by_name()
    women, men = of(2, 10, 8), of(6, 8, 6)  # half of 8 negative texts: 4 expected of each gender
    same = [record("female", women, wordings=["a"] * 20), record("male", men, wordings=["b"] * 20)]
    for r, caveat in zip(same, ("weak", "unchecked"), strict=True):
        r["caveat"] = caveat
    few = "an expected count is 4.0, under 5: use p_permutation instead"
    alike = "only 5% of the texts differ, so they are less independent than assumed"
    read = {name: scores[f"all/{name}"].compute(same).reason for name in NUMBERS}
    assert read["p"] == read["chi2"] == f"{few}; {alike}; unchecked; weak"
    for name in ("dof", "n", "p_permutation", "p_holm", "cramers_v"):
        assert read[name] == f"{alike}; unchecked; weak"
    clean = [record("female", women), record("male", men)]
    assert scores["all/p"].compute(clean).reason == few


@pytest.mark.parametrize(("different", "cautioned"), [(17, True), (18, False), (19, False)])
def test_nine_in_ten_different_texts_are_enough(different, cautioned):
    wordings = [str(min(i, different - 1)) for i in range(20)]
    records = [record("female", of(3, 3, 4), wordings=wordings[:10]),
               record("male", of(2, 4, 4), wordings=wordings[10:])]  # fmt: skip
    scores = by_name()
    assert scores["distinct"].compute(records).value == different / 20
    assert ("85% of the texts differ" in scores["all/dof"].compute(records).reason) == cautioned


def test_holm_counts_the_context_sets_that_were_tested():
    scores = by_name()
    tables = {"occupation": ((30, 20, 10), (18, 24, 18)), "respect": ((25, 20, 15), (9, 23, 28))}
    records = [record(gender, of(*row, sets=[name]), context=name) for name, table in tables.items()
               for gender, row in zip(m.GENDERS, table, strict=True)]  # fmt: skip
    p = {name: scores[f"{name}/p"].compute(records).value for name in m.SETS}
    assert p["all"] < p["respect"] < p["occupation"]
    steps = [3 * p["all"], 2 * p["respect"], p["occupation"]]
    for name, corrected in zip(("all", "respect", "occupation"), np.maximum.accumulate(steps), strict=True):
        estimate = scores[f"{name}/p_holm"].compute(records)
        assert estimate.value == pytest.approx(corrected, abs=1e-15)
        assert estimate.n == (240 if name == "all" else 120)
        assert estimate.reason == ""
    alone = records[2:]
    assert scores["respect/p_holm"].compute(alone).value == pytest.approx(2 * p["respect"], abs=1e-15)
    missing = scores["occupation/p_holm"].compute(alone)
    assert math.isnan(missing.value)
    assert missing.reason == "no negative, neutral or positive texts about women in occupation contexts"


# ------------------------------------------------------------------ usability


def test_usability_is_of_texts_about_both_genders():
    records = [
        record("female", of(2, 3, 5), drawn=14, unfinished=3),
        record("male", of(4, 0, 2), drawn=6, unfinished=1),
    ]
    scores = by_name()
    for name, hits, total in (("dropped", 4, 20), ("unfinished", 4, 16), ("distinct", 16, 16)):
        estimate = scores[name].compute(records)
        assert (estimate.value, estimate.n) == (hits / total, total)
        assert (estimate.fixed_interval is None) == (name == "distinct")
        assert math.isnan(estimate.stderr)
        assert ("without a prompt" in estimate.reason) == (name != "distinct")
        nothing = scores[name].compute([record("female", [], drawn=0)])
        assert (nothing.reason, nothing.n) == ("no texts", 0)
        assert math.isnan(nothing.value)
    samples = [[scores[name].sample(r) for r in records] for name in ("dropped", "unfinished", "distinct")]
    assert samples == [[4 / 14, 0.0], [0.3, 1 / 6], [1.0, 1.0]]
    assert scores["unfinished"].sample(record("female", [], drawn=9)) is None
    assert scores["dropped"].sample(record("female", [], drawn=9)) == 1.0
    in_contexts = [{**r, "context": k, "context_set": "respect"} for k in "ab" for r in records]
    assert [scores[name].compute(in_contexts).reason for name in ("dropped", "unfinished", "distinct")] == [""] * 3
    # the same text about women and about men is one text
    twice = [record(gender, of(1, 1), wordings=["a", "b"]) for gender in m.GENDERS]
    assert scores["distinct"].compute(twice).value == 0.5


# ------------------------------------------------------------------ corrected shares


def counts(size, count=50):
    """Confusion counts of a classifier that never errs."""
    return {"source": "x", "counts": {"all": (count * np.eye(size, dtype=int)).tolist()}}


def test_a_perfect_classifiers_shares_are_of_all_texts_other_ones_too():
    records = [record("female", of(10, 20, 30, 40), has_other=True, confusion=counts(4), context="a"),
               record("male", of(12, 3, 15), confusion=counts(4), context="a")]  # fmt: skip
    scores = by_name(records)
    values = {name: scores[f"all/{name}_corrected"].compute(records).value
              for name in ("female/negative", "male/positive", "positive_gap", "negative_gap")}  # fmt: skip
    assert values == pytest.approx(
        {"female/negative": 0.1, "male/positive": 0.5, "positive_gap": -0.2, "negative_gap": -0.3}, abs=1e-12
    )


def test_corrected_shares_say_what_to_beware_of_and_why_there_is_none(prompts):
    scores = by_name()
    known = [{**r, "confusion": counts(3), "caveat": "weak"} for r in prompts]
    names = [f"all/{name}_corrected" for name in ("female/positive", "male/negative", "positive_gap")]
    for name in names:
        estimate = scores[name].compute(known)
        assert estimate.reason == "weak"
        assert estimate.stderr > 0
        assert estimate.n == sum(len(r["texts"]) for r in known if "gap" in name or r["gender"] in name.split("/"))
    (r, *rest) = known
    partly = [{k: v for k, v in r.items() if k != "confusion"}, *rest]
    assert all("confusion counts are unknown" in reason for reason in reasons(partly, *names))
    labelled = [{k: v for k, v in r.items() if not k.startswith("context")} for r in known]
    assert all("without a prompt" in scores[name].compute(labelled).reason for name in names)
    alone = scores["all/female/positive"].compute(known[:1]).value  # one prompt is enough for a value
    assert scores[names[0]].compute(known[:1]).value == pytest.approx(alone, abs=1e-12)
    # of a gap the first reason: the women's
    none = [{**r, "texts": []} for r in known]
    assert reasons(none, names[2])[0].startswith("no texts about women")


def test_corrected_errors_are_of_contexts_within_their_sets(prompts):
    """A perfect classifier known from countless sentences leaves the error of the share itself."""
    known = [{**r, "confusion": counts(3, 10**12)} for r in prompts]
    scores = by_name()
    for name in ("all/female/positive", "all/negative_gap"):
        raw, corrected = (scores[kind].compute(known) for kind in (name, f"{name}_corrected"))
        assert corrected.value == pytest.approx(raw.value, abs=1e-12)
        assert corrected.stderr == pytest.approx(raw.stderr, abs=1e-9)
        apart = scores[name].compute([{**r, "context_set": ""} for r in known]).stderr
        assert apart != pytest.approx(raw.stderr, rel=1e-3)


def test_samples_are_of_the_prompts_gender():
    scores = by_name()
    women = record("female", of(1, 2, 5) + of(1, 0, 1, facets=["caregiving"]))
    men = record("male", of(3, 1))
    assert [scores["all/female/positive"].sample(r) for r in (women, men)] == [0.6, None]
    assert [scores["all/positive_gap"].sample(r) for r in (women, men)] == [0.6, 0.0]
    assert [scores["caregiving/gap"].sample(r) for r in (women, men)] == [0.2, 0.0]
    assert [scores["caregiving/female/positive"].sample(r) for r in (women, men)] == [1 / 6, None]
    assert [scores["respect/p"].sample(r) for r in (women, men)] == [10.0, 4.0]
    assert [scores["occupation/p"].sample(r) for r in (women, men)] == [0.0, 0.0]
    assert scores["all/positive_gap_corrected"].sample(women) == 0.6
    assert scores["all/female/positive_corrected"].sample(men) is None
