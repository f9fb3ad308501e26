"""What is said about items: each check by itself, and the published sets."""

import copy
from collections import Counter

import pytest

from lm_eval_bias.tasks.stereoset import stereoset_items
from lm_eval_bias.tasks.stereoset.commands import set_checks
from tests.support.example_items import DUTCH, ENGLISH, item


def found(own, source=None, language="nl"):
    return {(f.code, f.part, f.level) for f in set_checks.check_item(own, source, language)}


def problems(own, source=None, language="nl"):
    return {code for code, _, level in found(own, source, language) if level == set_checks.PROBLEM}


def changed(number, **more):
    return copy.deepcopy(DUTCH[number]) | more


def test_good_items_have_no_findings():
    for own, source in zip(DUTCH, ENGLISH, strict=True):
        assert found(own, source) == set()
        assert found(own) == set()
    assert set_checks.check_set(DUTCH, ENGLISH, "nl") == {}
    assert set_checks.check_set(DUTCH, None, "nl") == {}
    assert found(ENGLISH[0], ENGLISH[0], "en") == set()  # an English set can be a corrected one


@pytest.mark.parametrize(
    ("context", "code"),
    [
        ("De tuinman was vandaag heel.", "blank"),
        ("De tuinman was vandaag heel blank.", "blank"),
        ("De tuinman was vandaag heel BLANK BLANK.", "doubled"),
        ("De tuinman was vandaag heel BLANKe.", "glued"),
        ("De tuinman was vandaag onBLANK.", "glued"),
    ],
)
def test_the_blank(context, code):
    bad = item("intra", "a1", context, ["geduldig", "ongedurig", "lamp"])
    assert code in problems(bad, ENGLISH[2])
    assert code in problems(bad)


def test_a_blank_that_the_source_doubles_is_noted_only():
    source = item("intra", "x", "BLANK and BLANK again.", ["Rain", "Sun", "Soup"])
    own = item("intra", "x", "BLANK en nog eens BLANK.", ["Regen", "Zon", "Soep"])
    assert found(own, source) == {("doubled", "context", "note")}
    assert problems(own) == {"doubled"}


def test_scripts_without_spaces_have_letters_beside_the_blank():
    own = item("intra", "x", "园丁很BLANK。", ["耐心", "急躁", "灯"])
    assert found(own, language="zh") == set()
    assert problems(item("intra", "x", "정원사는 BLANK는 사람이다.", ["a", "b", "c"]), language="ko") == {"glued"}


def test_a_blank_between_sentences():
    own = changed(0, context="De BLANK kwam vroeg thuis.")
    assert "stray" in problems(own, ENGLISH[0])
    source = copy.deepcopy(ENGLISH[0]) | {"context": "The BLANK came home early."}
    assert found(own, source) == {("stray", "context", "note")}
    own = changed(0)
    own["candidates"][1]["sentence"] = "BLANK was moe."
    assert ("stray", "anti-stereotype", "problem") in found(own, ENGLISH[0])


def test_words_and_sentences_that_do_not_belong_together():
    own = changed(2)
    one, other, _ = own["candidates"]
    one["word"], other["word"] = other["word"], one["word"]
    assert problems(own) == {"swapped"}
    own = changed(2)
    own["candidates"][0]["word"] = "rustig"
    assert found(own) == {("fill", "stereotype", "problem")}
    own = changed(2)
    own["candidates"][0]["sentence"] = "De tuinman was vandaag echt heel geduldig."
    assert found(own) == {("fill", "stereotype", "problem")}
    own["candidates"][0]["sentence"] = "De tuinman is vandaag heel geduldig."
    assert found(own) == {("fill", "stereotype", "note")}
    own["candidates"][0]["sentence"] = "de tuinman was vandaag: heel Geduldig"  # spelling is no difference
    assert found(own) == set()


@pytest.mark.parametrize(
    ("words", "equal"),
    [
        (["café", "cafe\u0301", "lamp"], True),
        (["BUS", "bus ", "lamp"], True),
        (["sınır", "sinir", "şinir"], False),
        (["schön", "schon", "Straße"], False),
    ],
)
def test_equal_candidates(words, equal):
    assert ("equal" in problems(item("intra", "x", "Dat is BLANK.", words))) == equal
    assert ("equal" in problems(item("inter", "x", "Dat is zo.", words))) == equal


def test_empty_texts():
    own = changed(0)
    own["candidates"][0]["sentence"] = "..."
    assert problems(own) == {"empty"}
    assert ("empty", "term", "problem") in found(changed(0, term=" "))


def test_labels_ids_and_kinds_against_the_source():
    own = changed(0)
    one, other, third = own["candidates"]
    one["label"], other["label"] = other["label"], one["label"]
    assert problems(own) == set()
    assert problems(own, ENGLISH[0]) == {"label"}
    third["label"] = "stereotype"
    assert "label" in problems(own)
    own = changed(0)
    own["candidates"][0]["id"] = "other"
    assert problems(own, ENGLISH[0]) == {"id"}
    for key in ("bias_type", "term", "test"):
        assert "source" in problems(changed(0, **{key: "gender" if key == "bias_type" else "intra"}), ENGLISH[0])


@pytest.mark.parametrize(
    ("context", "codes"),
    [
        ("De tuinman kwam vroeg thuis", {"punctuation"}),
        ("De tuinman kwam vroeg „thuis!” ", set()),
        ("The gardener came home early.", {"untranslated"}),
        ("De tuinman came home and they were early.", set()),
        ("Hij.", {"length"}),
        ("De tuinman kwam vandaag " + "heel erg " * 20 + "vroeg thuis.", {"length"}),
    ],
)
def test_texts_against_their_source(context, codes):
    assert problems(changed(0, context=context), ENGLISH[0]) == codes


def test_a_set_names_missing_doubled_and_foreign_items():
    assert {n: {f.code for f in own} for n, own in set_checks.check_set(DUTCH[:3], ENGLISH, "nl").items()} == {
        "a2": {"missing"}
    }
    twice = set_checks.check_set([*DUTCH, DUTCH[1]], ENGLISH, "nl")
    assert {f.code for f in twice["e2"]} == {"id"}
    foreign = changed(0, id="new")
    assert {f.code for f in set_checks.check_set([*DUTCH[1:], foreign], ENGLISH, "nl")["new"]} == {"id"}
    assert set_checks.check_set([changed(0, id="A"), changed(1, id="a")], None, "nl") == {}


# items by check: real anomalies, looked at one by one
PUBLISHED = {
    "en": {"fill": 3, "glued": 1, "doubled": 2, "stray": 1},
    "de": {"missing": 3, "glued": 9, "punctuation": 20},
    "es": {"punctuation": 27, "equal": 4},
    "fr": {"punctuation": 19, "equal": 2},
    "tr": {"punctuation": 2, "equal": 12, "glued": 1, "untranslated": 2},
}
NOTES = {"en": {"fill": 1}, **dict.fromkeys(("de", "es", "fr", "tr"), {"doubled": 2, "stray": 1})}


SLOW = [pytest.param(language, marks=pytest.mark.slow) for language in ("es", "fr")]


@pytest.mark.parametrize("language", ["en", "de", "tr", *SLOW])
def test_the_published_sets(language, mirror):
    counts = {set_checks.PROBLEM: Counter(), set_checks.NOTE: Counter()}
    source = stereoset_items.read_all("en") if language != "en" else None
    for own in set_checks.check_set(stereoset_items.read_all(language), source, language).values():
        for code, level in {(f.code, f.level) for f in own}:
            counts[level][code] += 1
    assert counts == {set_checks.PROBLEM: PUBLISHED[language], set_checks.NOTE: NOTES[language]}
