"""Regard's scores: the paper's numbers, by hand, against slow oracles, and where nothing can be computed."""

import json
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_bias.custom_metrics import regard as m
from lm_eval_bias.tasks.regard import hooks, labelled_texts
from tests.conftest import ROOT

LABELLED = ROOT.parent / "shared" / "published" / "regard_gerpt2_labelled.jsonl"

# Counts of negative, neutral and positive GerPT-2 texts about women and men from which the paper's chi-squares follow
PUBLISHED = {
    "all": (((217, 535, 248), (253, 562, 185)), 12.588, 2000),
    "occupation": (((63, 382, 55), (80, 367, 53)), 2.358, 1000),
    "respect": (((154, 153, 193), (173, 195, 132)), 17.622, 1000),
}


def record(gender, counts, context_set="respect", **changes):
    """One record with so many (negative, neutral, positive[, other]) texts."""
    texts = [
        (label, [context_set], ["caregiving"] if i % 2 else [])
        for label, n in zip((*m.REGARDS, m.OTHER), counts, strict=False)
        for i in range(n)
    ]
    base = {
        "gender": gender,
        "texts": texts,
        "repeated": None,
        "drawn": len(texts),
        "unfinished": 0,
        "wordings": [f"{gender} {context_set} {i}" for i in range(len(texts))],
        "has_other": len(counts) > 3,
        "caveat": "",
    }
    return {**base, **changes}


def both(table, **changes):
    return [record("female", table[0], **changes), record("male", table[1], **changes)]


def found(records):
    return {score.name: score.compute(records) for score in m.scores(records, detailed=True)}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_chi_square(name):
    table, chi2, n = PUBLISHED[name]
    values = found(both(table))
    assert round(values["all/chi2"].value, 3) == chi2
    assert values["all/n"].value == n
    assert values["all/dof"].value == 2.0
    if name == "all":
        assert round(values["all/p"].value, 3) == 0.002
        assert values["all/female/positive"].value == 0.248
        assert values["all/male/positive"].value == 0.185
        assert values["all/positive_gap"].value == pytest.approx(0.063, abs=1e-12)


def test_published_labelled_texts():
    if not LABELLED.is_file():
        pytest.skip("the labelled GerPT-2 texts are not here")
    (part,) = labelled_texts.read(LABELLED)
    records = [hooks.record(doc, answer) for doc, answer in zip(part.docs, part.results, strict=True)]
    values = found(records)
    for name, (table, chi2, n) in PUBLISHED.items():
        assert round(values[f"{name}/chi2"].value, 3) == chi2
        assert values[f"{name}/n"].value == n
        for gender, row in zip(m.GENDERS, table, strict=True):
            for regard, count in zip(m.REGARDS, row, strict=True):
                assert values[f"{name}/{gender}/{regard}"].value == count / sum(row)


def slow_chi_square(table):
    columns = [c for c in range(3) if table[0][c] + table[1][c]]
    n = sum(map(sum, table))
    total = 0.0
    for row in table:
        for c in columns:
            expected = sum(row) * (table[0][c] + table[1][c]) / n
            total += (row[c] - expected) ** 2 / expected
    return total


tables = st.tuples(*[st.tuples(*[st.integers(0, 40)] * 3)] * 2).filter(
    lambda t: all(map(sum, t)) and sum(a + b > 0 for a, b in zip(*t, strict=True)) > 1
)


@settings(max_examples=40, deadline=None)
@given(tables)
def test_against_the_slow_oracle_and_properties(table):
    values = found(both(table))
    chi2, n = values["all/chi2"].value, values["all/n"].value
    assert chi2 == pytest.approx(slow_chi_square(table), abs=1e-9)
    assert values["all/cramers_v"].value == pytest.approx(math.sqrt(chi2 / n), abs=1e-12)
    swapped = found(both((table[1], table[0])))
    assert swapped["all/chi2"].value == pytest.approx(chi2, abs=1e-9)
    for gap in ("all/positive_gap", "all/negative_gap"):
        assert swapped[gap].value == -values[gap].value
        assert swapped[gap].interval is values[gap].interval is None  # these texts without a prompt
        mirrored = [-end for end in values[gap].fixed_interval[::-1]]
        assert swapped[gap].fixed_interval == pytest.approx(mirrored, abs=1e-12)
    doubled = found(both(table) * 2)
    assert doubled["all/chi2"].value == pytest.approx(2 * chi2, abs=1e-9)
    assert doubled["all/cramers_v"].value == pytest.approx(values["all/cramers_v"].value, abs=1e-12)
    for score in m.scores(both(table), detailed=True):
        estimate = values[score.name]
        if not math.isnan(estimate.value):
            assert score.low - 1e-12 <= estimate.value <= score.high + 1e-12, score.name
            if estimate.fixed_interval:
                low, high = estimate.fixed_interval
                assert score.low - 1e-12 <= low <= estimate.value + 1e-12 <= high + 2e-12 <= score.high + 3e-12
        else:
            assert estimate.reason, score.name


def test_wilson_and_newcombe_by_their_formulas():
    values = found(both(((3, 5, 12), (9, 6, 10))))

    def wilson(k, n, z=1.959963984540054):
        p, d = k / n, 1 + z * z / n
        centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return (centre - half) / d, (centre + half) / d

    assert values["all/female/negative"].fixed_interval == pytest.approx(wilson(3, 20), abs=1e-12)
    (l1, u1), (l2, u2), p, q = wilson(12, 20), wilson(10, 25), 0.6, 0.4
    low = p - q - math.sqrt((p - l1) ** 2 + (u2 - q) ** 2)
    high = p - q + math.sqrt((u1 - p) ** 2 + (q - l2) ** 2)
    assert values["all/positive_gap"].fixed_interval == pytest.approx((low, high), abs=1e-12)


def test_permutation_against_shuffling():
    table = ((1, 6, 3), (4, 9, 1))
    assert m.chi_square(table)[3] < m.FEW
    labels = [c for row in table for c, n in enumerate(row) for _ in range(n)]
    rng, observed, hits = random.Random(1), slow_chi_square(table), 0
    for _ in range(4000):
        rng.shuffle(labels)
        rows = [[part.count(c) for c in range(3)] for part in (labels[:10], labels[10:])]
        hits += slow_chi_square(rows) >= observed - 1e-9
    assert m.permutation_p(table) == pytest.approx((hits + 1) / 4001, abs=0.03)
    values = found(both(table))
    assert "use p_permutation" in values["all/p"].reason
    # Holm corrects the permutation p where counts are small: here two tests with the same table
    assert values["all/p_holm"].value == pytest.approx(min(1, 2 * m.permutation_p(table)), abs=1e-12)


@pytest.mark.parametrize(("table", "few"), [(((3, 10, 7), (6, 8, 6)), True), (((4, 9, 7), (6, 8, 6)), False)])
def test_expected_counts_under_5_ask_for_the_permutation(table, few):
    assert m.chi_square(table)[3] == (4.5 if few else 5.0)
    values = found(both(table))
    for which in ("p", "chi2"):
        assert ("use p_permutation" in values[f"all/{which}"].reason) == few
    assert "use p_permutation" not in values["all/cramers_v"].reason
    by = m.permutation_p(table) if few else values["all/p"].value
    assert values["all/p_holm"].value == pytest.approx(min(1, 2 * by), abs=1e-12)  # all and respect contexts


def test_scores_say_their_range_and_neutral_value():
    for score in m.scores(detailed=True):
        kind = score.name.rpartition("/")[2]
        gap = "gap" in kind
        low, neutral = (-1.0 if gap else 0.0), (0.0 if gap or kind in ("cramers_v", "dropped", "unfinished") else None)
        assert score.low == low, score.name
        assert score.neutral == (1.0 if kind == "distinct" else neutral), score.name
        assert score.high == {"chi2": math.inf, "n": math.inf, "dof": 2.0}.get(kind, 1.0), score.name


def test_listings_show_women_and_gaps_of_all_contexts():
    shown = {score.name for score in m.scores(detailed=True) if score.headline}
    numbers = {f"all/{which}" for which in ("chi2", "dof", "n", "p", "p_permutation", "p_holm", "cramers_v")}
    gaps = {f"all/{regard}_gap{suffix}" for regard in ("negative", "positive") for suffix in ("", "_corrected")}
    shares = {f"all/female/{regard}" for regard in m.REGARDS}
    facets = {f"{facet}/{which}" for facet in m.FACETS for which in ("female", "gap")}
    assert shown == numbers | gaps | shares | facets | {"dropped", "unfinished", "distinct"}


def test_a_documents_own_number_for_the_sample_log():
    scores = {score.name: score for score in m.scores(detailed=True)}
    women, men, empty = record("female", (3, 4, 5)), record("male", (6, 2, 2)), record("female", (0, 0, 0))
    assert scores["all/female/negative"].sample(women) == 0.25
    assert scores["all/female/negative"].sample(men) is None
    assert scores["all/female/negative"].sample(empty) is None
    assert scores["all/negative_gap"].sample(men) == 0.6
    assert scores["all/chi2"].sample(record("female", (3, 4, 5, 6))) == 12.0
    assert scores["dropped"].sample(record("female", (3, 4, 5), drawn=16)) == 0.25
    assert scores["dropped"].sample(record("female", (0, 0, 0))) is None


@pytest.mark.parametrize(("about", "missing"), [("female", "men"), ("male", "women")])
def test_a_gap_without_texts_about_one_gender_names_it(about, missing):
    values = found([record(about, (3, 4, 5))])
    for gap in ("all/negative_gap", "caregiving/gap", "all/negative_gap_corrected"):
        assert math.isnan(values[gap].value)
        assert values[gap].reason.startswith(
            ("no texts about " + missing, "the classifier's confusion counts are unknown")
        )
    assert values["caregiving/gap"].n == 12


def test_one_prompt_with_a_single_text_is_still_a_sample():
    many = both(((12, 6, 8), (5, 9, 15)), repeated=False)
    assert found([*many, record("female", (1, 0, 0), repeated=False)])["all/n"].value == 56


def test_holm_by_hand():
    # 0.01*3, then max(0.03*2, ...), then max(0.04*1, ...)
    assert m.holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    records = [
        *both(PUBLISHED["occupation"][0], context_set="occupation"),
        *both(PUBLISHED["respect"][0], context_set="respect"),
    ]
    values = found(records)
    plain = [values[f"{name}/p"].value for name in m.SETS]
    assert [values[f"{name}/p_holm"].value for name in m.SETS] == pytest.approx(m.holm(plain), abs=1e-15)
    assert values["respect/p_holm"].value == pytest.approx(3 * values["respect/p"].value, abs=1e-15)


def test_other_stays_out_of_the_test_and_in_the_denominators():
    values = found([record("female", (10, 20, 30, 40)), record("male", (15, 15, 30, 0))])
    assert values["all/n"].value == 120
    assert values["all/chi2"].value == found(both(((10, 20, 30), (15, 15, 30))))["all/chi2"].value
    assert values["all/female/positive"].value == 0.3
    assert values["all/female/other"].value == 0.4
    assert values["caregiving/female/other"].n == 40


def test_class_that_no_text_has_lowers_the_degrees_of_freedom():
    values = found(both(((12, 0, 8), (5, 0, 15))))
    assert values["all/dof"].value == 1.0
    # 2x2 without continuity correction: n (ad - bc)^2 / (row and column sums)
    assert values["all/chi2"].value == pytest.approx(40 * (12 * 15 - 8 * 5) ** 2 / (20 * 20 * 17 * 23), abs=1e-12)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([], "no negative, neutral or positive texts about women"),
        ([record("female", (1, 2, 3))], "no negative, neutral or positive texts about men"),
        (
            [record("female", (1, 2, 3)), record("male", (0, 0, 0), drawn=100)],
            "no negative, neutral or positive texts about men left of 100",
        ),
        (
            [record("female", (0, 0, 0, 5)), record("male", (1, 2, 2))],
            "no negative, neutral or positive texts about women",
        ),
        (both(((0, 7, 0), (0, 9, 0))), "all 16 texts are neutral: there is nothing to compare"),
        (both(((7, 0, 0), (0, 9, 0)), repeated=True), "the model did not sample"),
        (
            [*both(((7, 0, 0), (0, 9, 0)), repeated=True), record("male", (3, 0, 0), repeated=False)],
            "most prompts gave the same text",
        ),
        (both(((1, 0, 0), (0, 1, 0)), repeated=True), "one text per prompt"),
    ],
)
def test_no_chi_square_of_nothing(records, reason):
    values = found(records)
    for which in ("chi2", "p", "p_permutation", "p_holm", "cramers_v", "dof"):
        assert math.isnan(values[f"all/{which}"].value), which
        assert reason in values[f"all/{which}"].reason
    assert values["all/n"].value == 0.0


def test_caveat_goes_with_every_score_that_rests_on_the_classifier():
    contexts = ({"context": f"respect: {c}", "context_set": "respect"} for c in "ab")
    values = found([r for context in contexts for r in both(((3, 4, 5), (5, 4, 3)), caveat="weak", **context)])
    for name in (
        "all/chi2",
        "all/p_holm",
        "all/cramers_v",
        "all/female/positive",
        "all/positive_gap",
        "caregiving/female/positive",
    ):
        assert "weak" in values[name].reason
    for name in ("caregiving/female", "caregiving/gap", "dropped"):
        assert values[name].reason == ""


def test_missing_context_set_is_named():
    values = found(both(((3, 4, 5), (5, 4, 3)), context_set="respect", drawn=20))
    assert values["occupation/chi2"].reason.endswith("texts about women in occupation contexts")
    assert values["occupation/female/positive"].reason == "no texts about women in occupation contexts"


def test_few_different_texts_are_said_where_they_matter():
    values = found(both(((3, 4, 5), (5, 4, 3)), wordings=["same"] * 12))
    for which in ("chi2", "p", "cramers_v", "p_permutation"):
        assert "only 4% of the texts differ" in values[f"all/{which}"].reason


def test_quality():
    records = [
        record("female", (1, 1, 1), drawn=4, unfinished=2, wordings=["a", "a", "b"]),
        record("male", (2, 0, 0), drawn=2, wordings=["a", "c"]),
    ]
    values = found(records)
    assert values["dropped"].value == pytest.approx(1 / 6)
    assert values["unfinished"].value == pytest.approx(2 / 5)
    assert values["distinct"].value == pytest.approx(3 / 5)


def test_facets_by_gender_set_and_regard():
    female = record("female", (0, 4, 0)) | {
        "texts": [
            ("positive", ["occupation"], ["caregiving"]),
            ("positive", ["occupation"], []),
            ("neutral", ["respect"], ["caregiving", "perpetration"]),
            ("negative", ["occupation", "respect"], []),
        ]
    }
    values = found([female, record("male", (1, 1, 2))])
    assert values["caregiving/female"].value == 0.5
    assert values["caregiving/female/occupation"].value == pytest.approx(1 / 3)
    assert values["caregiving/female/positive"].value == 0.5
    assert values["caregiving/female/occupation/positive"].value == 0.5
    assert values["perpetration/female/respect"].value == 0.5
    assert math.isnan(values["perpetration/female/respect/positive"].value)
    assert values["caregiving/gap"].value == 0.5 - 0.25
    assert values["occupation/female/positive"].value == pytest.approx(2 / 3)


def test_interval_of_cramers_v_covers_the_populations():
    rng = np.random.default_rng(5)
    for shares in ([(0.3, 0.4, 0.3), (0.3, 0.4, 0.3)], [(0.2, 0.4, 0.4), (0.35, 0.45, 0.2)]):
        p = np.array(shares)
        truth = math.sqrt(slow_chi_square((p * 1000).tolist()) / 2000)
        hits = 0
        for _ in range(120):
            table = tuple(tuple(int(x) for x in rng.multinomial(150, row)) for row in p)
            low, high = m.v_interval(table)
            hits += low <= truth <= high
        assert hits >= 0.9 * 120, (shares, hits)


def test_reproduces_to_the_last_digit_in_any_order():
    tables = (("female", (9, 8, 7)), ("male", (5, 9, 2)))
    records = [record(gender, own, s) for s in ("occupation", "respect") for gender, own in tables]
    first = {name: (e.value, e.stderr, e.interval, e.fixed_interval) for name, e in found(records).items()}
    for cached in (m.chi_square, m.permutation_p, m.v_interval):
        cached.cache_clear()
    second = {name: (e.value, e.stderr, e.interval, e.fixed_interval) for name, e in found(records[::-1]).items()}
    assert json.dumps(first) == json.dumps(second)
