"""What is said about items: each check by itself, damage to good items, the published sets."""

import copy
from itertools import islice
from random import Random

import pytest

from lm_eval_bias.tasks.stereoset import released_sets, stereoset_items
from lm_eval_bias.tasks.stereoset.own_sets import set_checks, set_texts
from tests.conftest import find_mirror
from tests.stereosets import example_items
from tests.stereosets.example_items import DUTCH, ENGLISH, item


def found(own, source=None, language="nl", **more):
    return {(f.code, f.part, f.level) for f in set_checks.check_item(own, source, language, **more)}


def problems(own, source=None, language="nl", **more):
    return {code for code, _, level in found(own, source, language, **more) if level == set_checks.PROBLEM}


def changed(number, **more):
    own = copy.deepcopy(DUTCH[number])
    own.update(more)
    return own


def source_of(context):
    own = copy.deepcopy(ENGLISH[0])
    own["context"] = context
    return own


def test_good_items_have_no_findings():
    for own, source in zip(DUTCH, ENGLISH, strict=True):
        assert found(own, source) == set()
        assert found(own) == set()
    assert set_checks.check_set(DUTCH, ENGLISH, "nl") == {}
    assert set_checks.check_set(DUTCH, None, "nl") == {}


@pytest.mark.parametrize(
    ("context", "code"),
    [
        ("De tuinman was vandaag heel.", "blank"),
        ("De tuinman was vandaag heel LEEG.", "blank"),
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
    source = copy.deepcopy(ENGLISH[0])
    source["context"] = "The BLANK came home early."
    assert found(own, source) == {("stray", "context", "note")}
    own = copy.deepcopy(DUTCH[0])
    own["candidates"][1]["sentence"] = "BLANK was moe."
    assert ("stray", "anti-stereotype", "problem") in found(own, ENGLISH[0])


def test_swapped_words_and_sentences_are_told_from_forms_of_a_word():
    swapped = copy.deepcopy(DUTCH[2])
    one, other, _ = swapped["candidates"]
    one["word"], other["word"] = other["word"], one["word"]
    assert problems(swapped) == {"swapped"}
    inflected = copy.deepcopy(DUTCH[2])
    inflected["candidates"][0]["word"] = "geduld"
    assert found(inflected) == {("fill", "stereotype", "note")}
    inflected["candidates"][0]["word"] = "rustig"
    assert problems(inflected) == {"fill"}
    longer = copy.deepcopy(DUTCH[2])
    longer["candidates"][0]["sentence"] = "De tuinman was vandaag heel erg geduldig."
    assert problems(longer) == {"fill"}


def test_words_that_look_alike_are_swapped_words_all_the_same():
    own = item("intra", "x", "Der BLANK half uns gern.", ["Lehrer", "Lehrerin", "Lampe"])
    one, other, _ = own["candidates"]
    one["word"], other["word"] = other["word"], one["word"]
    assert problems(own) == {"swapped"}
    for candidate in own["candidates"]:
        candidate["sentence"] = candidate["sentence"].replace("gern", "sehr gern")
    one["word"], other["word"], own["candidates"][2]["word"] = "Lampe", "Lehrerin", "Lehrer"
    assert {(f.code, f.part) for f in set_checks.check_item(own) if f.level == set_checks.PROBLEM} >= {
        ("swapped", "stereotype")
    }


def test_a_context_that_ends_before_its_sentences():
    own = item("intra", "x", "De BLANK tuinman was vandaag thuis.", ["luie", "vlijtige", "ronde"])
    own["context"] = "De BLANK tuinman was."
    assert ("cut", "context", "problem") in found(own)


def test_articles_that_differ_between_sentences_are_the_trap_of_grammar():
    own = item("intra", "x", "Der BLANK half uns gern.", ["Lehrer", "Lehrerin", "Auto"])
    for candidate, article in zip(own["candidates"], ("Der", "Die", "Das"), strict=True):
        candidate["sentence"] = f"{article} {candidate['word']} half uns gern."
    assert {(code, level) for code, _, level in found(own, language="de")} == {("grammar", "note")}
    for candidate in own["candidates"]:  # another beginning for all of them lets no candidate win
        candidate["sentence"] = f"Dieser {candidate['word']} half uns gern."
    assert {(code, level) for code, _, level in found(own, language="de")} == {("fill", "note")}


@pytest.mark.parametrize(
    ("language", "context", "words", "caught"),
    [
        ("de", "Sie ist eine BLANK.", ["Mutter", "Mann", "Lampe"], True),
        ("de", "Er bestellte eine BLANK.", ["Zeitung", "Mitteilung", "Freiheit"], False),
        ("de", "Der BLANK kam.", ["Physikerin", "König", "Tisch"], True),
        ("de", "Ich half der BLANK sehr.", ["Physikerin", "König", "Tisch"], False),
        ("de", "Er war ein BLANK Mann.", ["kluger", "dummer", "Freiheit"], False),
        ("de", "Er war ein BLANK Mann.", ["dement", "jung", "Zeitung"], False),
        ("es", "Es un BLANK.", ["perro", "mesa", "problema"], True),
        ("es", "Es un BLANK.", ["perro", "gato", "problema"], False),
        ("fr", "C'est un groupe de BLANK.", ["garçons", "amis", "tables"], True),
        ("fr", "Il est un BLANK.", ["homme", "femme", "x"], True),
        ("en", "He is a BLANK.", ["teacher", "artist", "lamp"], True),
        ("en", "He is a BLANK.", ["teacher", "unicorn", "honest man"], False),
        ("tr", 'Vietnam halkı BLANK"ın tadını çıkarıyor.', ["bağımsızlık", "komünizm", "kordon"], True),
        ("tr", 'Vietnam halkı BLANK"ın tadını çıkarıyor.', ["bağımsızlık", "kapı", "kordon"], False),
        ("tr", 'Bu BLANK"in rengi.', ["komünizm", "savaş", "ev"], True),
        ("nl", "Het is een BLANK.", ["man", "vrouw", "lamp"], False),
    ],
)
def test_the_trap_of_grammar(language, context, words, caught):
    own = item("intra", "x", context, words)
    assert found(own, language=language) == ({("grammar", "context", "note")} if caught else set())


@pytest.mark.parametrize(
    ("ending", "fits"), [("in", "komünizm, ev, not with savaş"), ("ın", "savaş, not with komünizm, ev")]
)
def test_vowel_harmony(ending, fits):
    own = item("intra", "x", f'Bu BLANK"{ending} rengi.', ["komünizm", "savaş", "ev"])
    (finding,) = set_checks.check_item(own, language="tr")
    assert finding.text.endswith(f"goes with {fits}")


def test_equal_and_empty_candidates():
    own = copy.deepcopy(DUTCH[0])
    own["candidates"][0]["sentence"] = "de lamp brandt. "
    assert problems(own) == {"equal"}
    own["candidates"][0]["sentence"] = "..."
    assert "empty" in problems(own)
    assert ("empty", "term", "problem") in found(changed(0, term=" "))


def test_labels_ids_and_kinds_against_the_source():
    own = copy.deepcopy(DUTCH[0])
    one, other, third = own["candidates"]
    one["label"], other["label"] = other["label"], one["label"]
    assert problems(own) == set()
    assert problems(own, ENGLISH[0]) == {"label"}
    third["label"] = "stereotype"
    assert "label" in problems(own)
    own = copy.deepcopy(DUTCH[0])
    own["candidates"][0]["id"] = "other"
    assert problems(own, ENGLISH[0]) == {"id"}
    for key in ("bias_type", "term", "test"):
        assert "source" in problems(changed(0, **{key: "gender" if key == "bias_type" else "intra"}), ENGLISH[0])


@pytest.mark.parametrize(
    ("context", "codes"),
    [
        ("De tuinman kwam vroeg thuis", {"punctuation"}),
        ("De tuinman", {"cut"}),
        ("De tuinman kwam vroeg thuis?", set()),
        ("The gardener came home early.", {"untranslated"}),
        ("De tuinman came home and they were early.", set()),
        ("Hij.", {"length"}),
        ("De tuinman kwam vandaag " + "heel erg " * 20 + "vroeg thuis.", {"length"}),
    ],
)
def test_texts_against_their_source(context, codes):
    assert problems(changed(0, context=context), ENGLISH[0]) == codes


def test_a_text_that_is_partly_the_source():
    source = source_of("The gardener came home and he had a very loud voice when they were there.")
    own = changed(0, context="De tuinman kwam thuis, and he had a very loud voice when hij er was.")
    assert problems(own, source) == {"untranslated"}
    assert problems(changed(0, context="They were there when the people left their house.")) == {"untranslated"}


def test_a_missing_sentence_and_a_stop_that_is_no_end():
    source = source_of("The gardener came to it. Then Mr. Poe left.")
    assert problems(changed(0, context="De tuinman kwam erbij."), source) == {"cut"}
    assert problems(changed(0, context="De tuinman kwam erbij. Toen ging meneer Poe weg."), source) == set()
    source = source_of("She has just finished 5th grade with us.")
    assert found(changed(0, context="Sie hat gerade die 5."), source, "de") == {("open", "context", "note")}


def test_texts_without_a_final_mark_are_noted():
    own = changed(0, context="De tuinman kwam vroeg thuis")
    source = source_of("The gardener came home early")
    assert found(own, source) == found(own) == {("open", "context", "note")}
    assert found(changed(0, context="De tuinman kwam vroeg thuis.."), ENGLISH[0]) == {
        ("punctuation", "context", "note")
    }


def test_memory_knows_texts_that_moved():
    memory = {
        english["sentence"]: dutch["sentence"]
        for one, other in zip(ENGLISH[:1], DUTCH[:1], strict=True)
        for english, dutch in zip(one["candidates"], other["candidates"], strict=True)
    }
    assert found(DUTCH[0], ENGLISH[0], translations=memory) == set()
    own = copy.deepcopy(DUTCH[0])
    one, other, _ = own["candidates"]
    one["sentence"], other["sentence"] = other["sentence"], one["sentence"]
    assert found(own, ENGLISH[0]) == set()  # nothing but the memory can know
    assert problems(own, ENGLISH[0], translations=memory) == {"swapped"}
    own["candidates"][0]["sentence"] = "Hij was erg moe."  # corrected by a person
    assert ("swapped", "stereotype", "problem") not in found(own, ENGLISH[0], translations=memory)
    same = dict.fromkeys(memory, "Hij was moe.")  # an engine that gives one text for all makes them equal, not swapped
    assert problems(DUTCH[0], ENGLISH[0], translations=same) == set()


def test_a_set_names_missing_doubled_and_foreign_items():
    assert {n: {f.code for f in own} for n, own in set_checks.check_set(DUTCH[:3], ENGLISH, "nl").items()} == {
        "a2": {"missing"}
    }
    twice = set_checks.check_set([*DUTCH, DUTCH[1]], ENGLISH, "nl")
    assert {f.code for f in twice["e2"]} == {"id"}
    foreign = changed(0, id="new")
    assert {f.code for f in set_checks.check_set([*DUTCH[1:], foreign], ENGLISH, "nl")["new"]} == {"id"}


def test_lengths_of_an_unknown_language_are_the_sets_own():
    words = ["went home by train", "came back with a lamp", "sat under the tree"]
    source = [
        item("inter", str(n), f"The gardener went home number {n:02}.", [f"She {word}." for word in words])
        for n in range(30)
    ]
    own = [item("inter", str(n), f"GGH{n:02}.", ["Gbt.", "Gkl.", "Gzb."]) for n in range(30)]
    assert any(f.code == "length" for f in set_checks.check_item(own[0], source[0], "zz"))
    assert set_checks.check_set(own, source, "zz") == {}


def test_final_punctuation_behind_quotes():
    ends = [set_texts.final(text) for text in ("Il dit\xa0: «\xa0Non\xa0!\xa0»", "„Nein!“", "他来了。", "no", "")]
    assert ends == ["!", "!", "。", "", ""]


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


def missed(published, language, number, with_source):
    """Kinds of damage that weren't found in so many items without findings, with one item each."""
    lost = {}
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
                memory = translations(own, original) if kind == "moved texts" else None
                levels = {(f.code, f.level) for f in set_checks.check_item(bad, original, language, memory)}
                told = {level for _, level in levels} == {"note"} and ("open", "note") in levels
                found = set_checks.PROBLEM in {level for _, level in levels} or (kind.startswith("cut") and told)
                whole = not with_source and test == "inter" and kind.startswith("cut") and looks_whole(own, bad)
                if bad != own and not whole and not found:
                    lost[kind] = bad
    return lost


def translations(own, source):
    """What was translated to what in an item."""
    pairs = zip(source["candidates"], own["candidates"], strict=True)
    return {theirs["sentence"]: candidate["sentence"] for theirs, candidate in pairs}


def looks_whole(good, bad):
    """Whether a text was cut behind a full stop: without a source nobody can know."""
    pairs = [(good["context"], bad["context"])]
    pairs += [(a["sentence"], b["sentence"]) for a, b in zip(good["candidates"], bad["candidates"], strict=True)]
    return any(one != other and set_texts.final(other) for one, other in pairs)


@pytest.mark.parametrize(("language", "with_source"), [("de", True), ("tr", True), ("en", False), ("de", False)])
def test_damage_is_found(published, language, with_source):
    assert missed(published, language, 30, with_source) == {}


@pytest.mark.slow
@pytest.mark.parametrize("language", list(stereoset_items.LANGUAGES))
def test_damage_to_many_items_is_found(published, language):
    if language != "en":
        assert missed(published, language, 500, with_source=True) == {}
    assert missed(published, language, 500, with_source=False) == {}


# items by check: real anomalies, looked at one by one but for the notes of several hundred
PUBLISHED = {
    "en": {"fill": 1, "glued": 1, "doubled": 2, "stray": 1},
    "de": {"missing": 3, "glued": 9, "punctuation": 20},
    "es": {"punctuation": 27, "equal": 4},
    "fr": {"punctuation": 19, "equal": 2},
    "tr": {"punctuation": 2, "equal": 12, "glued": 1, "untranslated": 3},
}
NOTES = {
    "en": {"fill": 3, "open": 734, "grammar": 46, "punctuation": 3},
    "de": {"doubled": 2, "stray": 1, "open": 665, "grammar": 9, "punctuation": 1},
    "es": {"doubled": 2, "stray": 1, "open": 681, "grammar": 51, "punctuation": 3},
    "fr": {"doubled": 2, "stray": 1, "open": 700, "grammar": 108, "punctuation": 2},
    "tr": {"doubled": 2, "stray": 1, "open": 716, "grammar": 100, "punctuation": 278},
}


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


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("tr", ["sınır", "sinir", "şinir"]),
        ("tr", ["İlik", "ılık", "ölü"]),
        ("el", ["νόμος", "νομός", "λόγος"]),
        ("ru", ["слово", "слева", "мука"]),
        ("de", ["schön", "schon", "Straße"]),
        ("fr", ["côté", "côte", "cote"]),
        ("fa", ["می‌خواهم", "می‌خواهی", "چراغ"]),
        ("hi", ["क्‍ष", "कष", "दिया"]),
    ],
)
def test_candidates_that_are_told_apart(language, words):
    own = item("intra", "x", "BLANK …", words)
    assert {code for code, _, _ in found(own, language=language)} & {"equal", "script"} == set()


def test_items_that_appear_again():
    again = copy.deepcopy(DUTCH[0])
    again["id"] = "again"
    again["candidates"].reverse()
    for candidate in again["candidates"]:
        candidate["id"] += "again"
    findings = set_checks.check_set([*DUTCH, again], None, "nl")
    assert {(name, f.code, f.text) for name, own in findings.items() for f in own} == {
        ("again", "repeated", f"the texts of item {DUTCH[0]['id']}")
    }
    twice = [changed(0, id="A"), changed(1, id="a")]  # ids may differ in case alone
    assert set_checks.check_set(twice, None, "nl") == {}


def test_an_english_text_that_is_its_foreign_source():
    source, own = changed(0), changed(0)
    memory = {source["context"]: source["context"]}
    assert ("untranslated", "context", "problem") in found(own, source, "en", translations=memory)
    assert found(own, source, "en") == set()  # an English set can be a corrected one
