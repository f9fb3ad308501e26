"""What is said about items: each check by itself, and the published sets."""

import copy
from collections import Counter

import pytest

from lm_eval_bias.tasks.stereoset import stereoset_items
from lm_eval_bias.tasks.stereoset.commands import set_checks
from tests.support.example_items import DUTCH, ENGLISH, item


def found(own, source=None, language="nl"):
    return {
        (f.code, f.part, f.level) for f in set_checks.check_item(own, source, language)
    }


def problems(own, source=None, language="nl"):
    return {
        code
        for code, _, level in found(own, source, language)
        if level == set_checks.PROBLEM
    }


def changed(number, **more):
    """A Dutch item with other fields, or texts of candidates (``sentence0``, ``word1``)."""
    own = copy.deepcopy(DUTCH[number])
    for key, value in more.items():
        (own["candidates"][int(key[-1])] if key[-1].isdigit() else own)[
            key.rstrip("012")
        ] = value
    return own


def test_good_items_have_no_findings():
    for own, source in zip(DUTCH, ENGLISH, strict=True):
        assert found(own, source) == found(own) == set()
    assert (
        set_checks.check_set(DUTCH, ENGLISH, "nl")
        == set_checks.check_set(DUTCH, None, "nl")
        == {}
    )
    assert (
        found(ENGLISH[0], ENGLISH[0], "en") == set()
    )  # an English set can be a corrected one


def test_the_blank():
    codes = {
        "heel.": "blank",
        "blank.": "blank",
        "BLANK BLANK.": "doubled",
        "BLANKe.": "glued",
        "onBLANK.": "glued",
    }
    for context, code in codes.items():
        bad = item(
            "intra",
            "a1",
            f"De tuinman was vandaag {context}",
            ["geduldig", "ongedurig", "lamp"],
        )
        assert code in problems(bad, ENGLISH[2]) & problems(bad), context


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"word0": "ongedurig", "word1": "geduldig"}, {("fill", "problem")}),
        ({"word0": "rustig"}, {("fill", "problem")}),
        (
            {"sentence0": "De tuinman was vandaag echt heel geduldig."},
            {("fill", "problem")},
        ),
        ({"sentence0": "De tuinman is vandaag heel geduldig."}, {("fill", "note")}),
        (
            {"sentence0": "de tuinman was vandaag: heel Geduldig"},
            set(),
        ),  # spelling is no difference
    ],
)
def test_words_and_sentences_that_do_not_belong_together(more, expected):
    assert {(code, level) for code, _, level in found(changed(2, **more))} == expected


def test_equal_candidates():
    same, different = (
        ("café cafe\u0301 lamp", "BUS bus lamp"),
        ("sınır sinir şinir", "schön schon Straße"),
    )
    for words in (*same, *different):
        for test, context in (("intra", "Dat is BLANK."), ("inter", "Dat is zo.")):
            assert ("equal" in problems(item(test, "x", context, words.split()))) == (
                words in same
            )


@pytest.mark.parametrize(
    ("more", "alone", "beside"),
    [
        ({"sentence0": "..."}, {"empty"}, {"empty"}),
        ({"label0": "anti-stereotype", "label1": "stereotype"}, set(), {"label"}),
        ({"label2": "stereotype"}, {"label"}, {"label"}),
        ({"id0": "other"}, set(), {"id"}),
        ({"bias_type": "gender"}, set(), {"source"}),
        ({"context": "De tuinman kwam vroeg thuis"}, set(), {"punctuation"}),
        ({"context": "De tuinman kwam vroeg „thuis!” "}, set(), set()),
        ({"context": "The gardener came home early."}, set(), {"untranslated"}),
        ({"context": "De tuinman came home and they were early."}, set(), set()),
        (
            {"context": "De tuinman kwam vandaag " + "heel erg " * 20 + "vroeg thuis."},
            set(),
            {"length"},
        ),
    ],
)
def test_labels_ids_and_texts(more, alone, beside):
    assert problems(changed(0, **more)) == alone
    assert problems(changed(0, **more), ENGLISH[0]) == beside


def test_a_set_names_missing_doubled_and_foreign_items():
    def codes(items, source=ENGLISH):
        return {
            name: {f.code for f in own}
            for name, own in set_checks.check_set(items, source, "nl").items()
        }

    assert codes(DUTCH[:3]) == {"a2": {"missing"}}
    assert codes([*DUTCH, DUTCH[1]])["e2"] == {"id"}
    assert codes([*DUTCH[1:], changed(0, id="new")])["new"] == {"id"}
    assert "source" in codes([changed(0, test="intra")])["e1"]
    assert codes([changed(0, id="A"), changed(1, id="a")], None) == {}


# items by check: real anomalies, looked at one by one
PUBLISHED = {
    "en": {"fill": 3, "glued": 1, "doubled": 2, "stray": 1},
    "de": {"missing": 3, "glued": 9, "punctuation": 20},
    "es": {"punctuation": 27, "equal": 4},
    "fr": {"punctuation": 19, "equal": 2},
    "tr": {"punctuation": 2, "equal": 12, "glued": 1, "untranslated": 2},
}
NOTES = {
    "en": {"fill": 1},
    **dict.fromkeys(("de", "es", "fr", "tr"), {"doubled": 2, "stray": 1}),
}


@pytest.mark.parametrize(
    "language",
    [
        *("en", "de", "tr"),
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("es", "fr")),
    ],
)
def test_the_published_sets(language, mirror):
    counts = {set_checks.PROBLEM: Counter(), set_checks.NOTE: Counter()}
    source = stereoset_items.read_all("en") if language != "en" else None
    for own in set_checks.check_set(
        stereoset_items.read_all(language), source, language
    ).values():
        for code, level in {(f.code, f.level) for f in own}:
            counts[level][code] += 1
    assert counts == {
        set_checks.PROBLEM: PUBLISHED[language],
        set_checks.NOTE: NOTES[language],
    }
