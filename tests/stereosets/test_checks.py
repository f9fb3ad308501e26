"""What is said about items: each check by itself, damage to good items, the published sets."""

import copy
from itertools import islice
from random import Random

import pytest

from lm_eval_bias.tasks.stereoset import released_sets, stereoset_items
from lm_eval_bias.tasks.stereoset.own_sets import set_checks
from tests.conftest import find_mirror
from tests.stereosets import example_items
from tests.stereosets.example_items import DUTCH, ENGLISH, item


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
    cases = [changed(0, id="A"), changed(1, id="a")]  # ids may differ in case alone
    assert set_checks.check_set(cases, None, "nl") == {}


class Published(dict):
    """The published items by language and test, each read when it is first asked for."""

    def __missing__(self, key):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LM_EVAL_BIAS_DATA", str(find_mirror()))
            self[key] = released_sets.read(*key)
        return self[key]


@pytest.fixture(scope="module")
def published():
    if find_mirror() is None:
        pytest.skip("no mirror of the upstream data (set LM_EVAL_BIAS_DATA)")
    return Published()


@pytest.mark.parametrize(("language", "with_source"), [("de", True), ("tr", True), ("en", False), ("de", False)])
@pytest.mark.parametrize("number", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_damage_is_found(published, language, with_source, number):
    lost = set()
    for test in stereoset_items.TESTS:
        source = {i["id"]: i for i in published["en", test]} if with_source else {}
        draw = Random(f"{language} {test}")  # noqa: S311
        items = draw.sample(published[language, test], len(published[language, test]))
        every = (i for i in items if not set_checks.check_item(i, source.get(i["id"]), language))
        good = list(islice(every, number))
        assert len(good) == number
        for kind in [*example_items.DAMAGE[test], *(example_items.WITH_SOURCE if with_source else ())]:
            for own in good:
                bad, original = example_items.damaged(own, kind, draw), source.get(own["id"])
                whole = kind.startswith("cut") and test == "inter" and not (original and ends_differ(bad, original))
                if bad != own and not whole and not problems(bad, original, language):
                    lost.add(kind)
    assert lost == set()


def ends_differ(own, source):
    """Whether a text lacks the full stop that its source has: else nobody can know that it was cut."""
    pairs = [(own["context"], source["context"])]
    pairs += [(a["sentence"], b["sentence"]) for a, b in zip(own["candidates"], source["candidates"], strict=True)]
    return any(theirs.rstrip()[-1] in ".!?" and text[-1] not in ".!?\"'”" for text, theirs in pairs)


# items by check: real anomalies, looked at one by one
PUBLISHED = {
    "en": {"fill": 3, "glued": 1, "doubled": 2, "stray": 1},
    "de": {"missing": 3, "glued": 9, "punctuation": 20},
    "es": {"punctuation": 27, "equal": 4},
    "fr": {"punctuation": 19, "equal": 2},
    "tr": {"punctuation": 2, "equal": 12, "glued": 1, "untranslated": 2},
}
NOTES = {"en": {"fill": 1}, **dict.fromkeys(("de", "es", "fr", "tr"), {"doubled": 2, "stray": 1})}


@pytest.mark.parametrize(
    "language", ["en", "de", "tr", *(pytest.param(name, marks=pytest.mark.slow) for name in ("es", "fr"))]
)
def test_the_published_sets(published, language):
    counts = {set_checks.PROBLEM: {}, set_checks.NOTE: {}}
    for test in stereoset_items.TESTS:
        source = published["en", test] if language != "en" else None
        for name, own in set_checks.check_set(published[language, test], source, language).items():
            for code, level in {(f.code, f.level) for f in own}:
                counts[level].setdefault(code, set()).add(name)
    sizes = {level: {code: len(names) for code, names in found.items()} for level, found in counts.items()}
    assert sizes == {set_checks.PROBLEM: PUBLISHED[language], set_checks.NOTE: NOTES[language]}
