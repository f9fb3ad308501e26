"""Regard's scores: the paper's numbers, by hand, and where nothing can be computed."""

import math

import numpy as np
import pytest

from lm_eval_bias.custom_metrics import regard as m
from lm_eval_bias.custom_metrics import text_shares
from lm_eval_bias.custom_metrics.intervals import (
    chi_square,
    holm,
    permutation_p,
)
from lm_eval_bias.custom_metrics.text_shares import Row
from lm_eval_bias.tasks.regard import hooks, labelled_texts
from tests.support.places import PUBLISHED as PUBLISHED_FILES

LABELLED = PUBLISHED_FILES / "regard_gerpt2_labelled.jsonl"
NUMBERS = ("chi2", "dof", "n", "p", "p_permutation", "p_holm", "cramers_v")

ALIKE = "most prompts gave the same text each time: the model did not sample"
WOMEN, MEN = (
    f"no negative, neutral or positive texts about {who}" for who in ("women", "men")
)

# Counts of negative, neutral and positive GerPT-2 texts about women and men from which the paper's chi-squares follow
PUBLISHED = {
    "all": (((217, 535, 248), (253, 562, 185)), 12.588, 2000),
    "occupation": (((63, 382, 55), (80, 367, 53)), 2.358, 1000),
    "respect": (((154, 153, 193), (173, 195, 132)), 17.622, 1000),
}


def of(*counts, sets=("respect",), facets=()):
    """So many negative, neutral, positive (and other) texts."""
    return [(label, list(sets), list(facets)) for label, n in zip((*m.REGARDS, m.OTHER), counts, strict=False)
            for _ in range(n)]  # fmt: skip


def record(gender, texts, **more):
    wordings = [f"{gender} {i} of {more.get('context')}" for i in range(len(texts))]
    return {"gender": gender, "texts": texts, "repeated": False, "drawn": len(texts) or 5, "unfinished": 0,
            "wordings": wordings, "has_other": False, "warning": "", **more}  # fmt: skip


def both(table, *sets, **more):
    own = [of(*row, sets=sets or ["respect"]) for row in table]
    return [
        record(gender, texts, **more)
        for gender, texts in zip(m.GENDERS, own, strict=True)
    ]


def by_name(records=()):
    return {score.name: score for score in m.scores(records)}


def found(records):
    return {name: score.compute(records) for name, score in by_name(records).items()}


@pytest.fixture
def prompts():
    """Texts of five contexts about women and about men, with a keyword of caregiving and without."""
    rng, made = np.random.default_rng(4), []
    for context, where in zip(
        "abcde", ["respect"] * 3 + ["occupation"] * 2, strict=True
    ):
        for gender in m.GENDERS:
            own = [
                of(*rng.integers(1, 9, size=3), sets=[where], facets=facets)
                for facets in ([], ["caregiving"])
            ]
            made.append(
                record(gender, sum(own, []), context=context, context_set=where)
            )
    return made


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_chi_square(name):
    table, chi2, n = PUBLISHED[name]
    values = {
        key: estimate.value
        for key, estimate in found(both(table, repeated=None)).items()
    }
    assert (round(values["all/chi2"], 3), values["all/n"], values["all/dof"]) == (
        chi2,
        n,
        2,
    )
    if name == "all":
        assert round(values["all/p"], 3) == 0.002
        assert (values["all/female/positive"], values["all/male/positive"]) == (
            0.248,
            0.185,
        )
        assert values["all/positive_gap"] == pytest.approx(0.063, abs=1e-12)


def test_published_labelled_texts():
    if not LABELLED.is_file():
        pytest.skip("the labelled GerPT-2 texts are not here")
    samples = labelled_texts.read(LABELLED)
    values = found([hooks.record(sample.doc, sample.answers) for sample in samples])
    for name, (table, chi2, n) in PUBLISHED.items():
        assert (round(values[f"{name}/chi2"].value, 3), values[f"{name}/n"].value) == (
            chi2,
            n,
        )
        for gender, row in zip(m.GENDERS, table, strict=True):
            shares = [values[f"{name}/{gender}/{regard}"].value for regard in m.REGARDS]
            assert shares == [count / sum(row) for count in row]


@pytest.mark.parametrize(
    ("table", "few"),
    [(((1, 10, 9), (8, 8, 4)), True), (((2, 10, 8), (8, 7, 5)), False)],
)
def test_expected_counts_under_5_ask_for_the_permutation(table, few):
    assert chi_square(table)[3] == (4.5 if few else 5.0)
    values = found(both(table))
    for which in ("p", "chi2"):
        assert ("use p_permutation" in values[f"all/{which}"].reason) == few
    assert "use p_permutation" not in values["all/cramers_v"].reason
    by = permutation_p(table) if few else values["all/p"].value
    assert values["all/p_holm"].value == pytest.approx(
        min(1, 2 * by), abs=1e-12
    )  # all and respect contexts
    assert by < 0.5
    assert values["all/p_permutation"].value == permutation_p(table)
    v = (values["all/chi2"].value / values["all/n"].value) ** 0.5
    assert values["all/cramers_v"].value == v


def test_holm_counts_the_context_sets_that_were_tested():
    occupation = both(((30, 20, 10), (18, 24, 18)), "occupation", context="occupation")
    respect = both(((25, 20, 15), (9, 23, 28)), "respect", context="respect")
    values, alone = found([*occupation, *respect]), found(respect)
    corrected = holm([values[f"{name}/p"].value for name in m.SETS])
    for name, p in zip(m.SETS, corrected, strict=True):
        assert values[f"{name}/p_holm"].value == pytest.approx(p, abs=1e-15)
    two = pytest.approx(2 * values["respect/p"].value, abs=1e-15)
    assert alone["respect/p_holm"].value == two
    assert alone["occupation/p_holm"].reason == WOMEN + " in occupation contexts"


def test_facets_are_of_their_gender_set_and_regard():
    texts = [
        ("positive", ["occupation"], ["caregiving"]), ("positive", ["occupation"], []),
        ("neutral", ["respect"], ["caregiving", "perpetration"]), ("negative", ["occupation", "respect"], []),
    ]  # fmt: skip
    values = found(
        [
            record("female", texts),
            record("male", of(1, 1, 1) + of(0, 0, 1, facets=["caregiving"])),
        ]
    )
    expected = {
        "caregiving/female": 0.5, "caregiving/female/occupation": 1 / 3, "caregiving/female/positive": 0.5,
        "perpetration/female/respect": 0.5, "caregiving/gap": 0.25,
        "occupation/female/positive": 2 / 3,
    }  # fmt: skip
    assert {name: values[name].value for name in expected} == pytest.approx(expected)


def test_other_stays_out_of_the_test_and_in_the_denominators():
    values = found(
        [
            record("female", of(10, 20, 30, 40), has_other=True),
            record("male", of(15, 15, 30)),
        ]
    )
    assert values["all/n"].value == 120
    assert (
        values["all/chi2"].value
        == found(both(((10, 20, 30), (15, 15, 30))))["all/chi2"].value
    )
    assert (values["all/female/positive"].value, values["all/female/other"].value) == (
        0.3,
        0.4,
    )
    assert values["caregiving/female/other"].n == 40
    assert (
        by_name()["respect/n"].contribution(
            record("female", of(1, 2, 0, 3) + of(4, sets=["occupation"]))
        )
        == 3
    )


@pytest.mark.parametrize(
    "table",
    [((12, 0, 8), (5, 0, 15)), ((12, 8, 0), (5, 15, 0)), ((0, 12, 8), (0, 5, 15))],
)
def test_a_class_that_no_text_has_lowers_the_degrees_of_freedom(table):
    records = both(table)
    records[0]["repeated"] = True  # half of the prompts are not most
    values = found(records)
    assert values["all/dof"].value == 1.0
    # 2x2 without continuity correction
    assert values["all/chi2"].value == pytest.approx(
        40 * (12 * 15 - 8 * 5) ** 2 / (20 * 20 * 17 * 23), abs=1e-12
    )


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([], WOMEN),
        ([record("female", of(1, 2, 3)), record("male", [], drawn=100)], MEN + " left of 100"),
        ([record("female", of(0, 0, 0, 5)), record("male", of(1, 2, 2))], WOMEN),  # some texts are left
        (both(((0, 7, 0), (0, 9, 0))), "all 16 texts are neutral: there is nothing to compare"),
        (both(((0, 0, 7), (0, 0, 9))), "all 16 texts are positive: there is nothing to compare"),
        # texts that are no samples say nothing of how the others were drawn
        ([*both(((7, 0, 0), (0, 9, 0)), repeated=True), record("male", of(3)),
          *both(((1, 2, 3), (4, 5, 6)), repeated=None) * 3], ALIKE),
        ([*both(((1, 0, 0), (0, 1, 0))), *both(((4, 3, 9), (4, 3, 9)), repeated=None)],
         "only one text per prompt: a test needs several samples of each prompt"),
    ],
)  # fmt: skip
def test_no_test_of_nothing(records, reason):
    values = found(records)
    for which in NUMBERS:
        estimate = values[f"all/{which}"]
        assert estimate.reason.startswith(reason), which
        assert (
            (estimate.value, estimate.n) == (0, 0)
            if which == "n"
            else math.isnan(estimate.value)
        ), which


def test_shares_and_gaps_have_both_intervals_over_contexts_within_sets(prompts):
    values, weak = found(prompts), found([{**r, "warning": "weak"} for r in prompts])

    def rows(counts):
        return [Row(m.GENDERS.index(r["gender"]), r["context"], r["context_set"],
                    sum(counts(label, facets) for label, _, facets in r["texts"]), len(r["texts"]))
                for r in prompts]  # fmt: skip

    for group, gap, own in (
        ("all/{}/positive", "all/positive_gap", rows(lambda label, _: label == "positive")),
        ("caregiving/{}", "caregiving/gap", rows(lambda _, facets: "caregiving" in facets)),
    ):  # fmt: skip
        assert values[gap] == text_shares.difference(own)
        women = [row for row in own if row.group == 0]
        assert values[group.format("female")] == text_shares.share(women)
    # what rests on the classifier has its warning
    for name in ("all/positive_gap", "all/male/positive", "caregiving/female/positive"):
        assert weak[name].reason == "weak"
    for name in ("caregiving/gap", "caregiving/male", "dropped", "unfinished"):
        assert weak[name].reason == ""


def test_usability_is_of_texts_about_both_genders():
    women, men = of(2, 3, 5), of(4, 0, 2)
    records = [
        record("female", women, drawn=14, unfinished=3),
        record("male", men, drawn=6, unfinished=1),
    ]
    scores = by_name()
    for name, hits, total in (
        ("dropped", 4, 20),
        ("unfinished", 4, 16),
        ("distinct", 16, 16),
    ):
        estimate = scores[name].compute(records)
        assert (estimate.value, estimate.n) == (hits / total, total)
        assert (estimate.fixed_interval is None) == (name == "distinct")
        assert (
            scores[name].compute([record("female", [], drawn=0)]).reason == "no texts"
        )
    assert scores["unfinished"].contribution(record("female", [], drawn=9)) is None
    # the same text about women and about men is one text
    assert (
        scores["distinct"]
        .compute(both(((1, 1, 0), (1, 1, 0)), wordings=["a", "b"]))
        .value
        == 0.5
    )
