"""What is said about items: each check by itself, and the published sets."""

import copy
from collections import Counter

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.stereoset import stereoset_items
from lm_eval_bias.tasks.stereoset.commands import set_checks
from tests.support.example_items import DUTCH, ENGLISH, item

SAID = (
    "missing or",
    "same",
    "expected",
    "touches",
    "punctuation",
    "empty",
    "no letters",
)


def parts(own, source=None):
    return {fault.partition(":")[0] for fault in set_checks.check_item(own, source)}


def told(own, source=None):
    return "; ".join(set_checks.check_item(own, source))


def changed(number, **more):
    """A Dutch item with other fields, or texts of candidates (``sentence0``, ``word1``)."""
    own = copy.deepcopy(DUTCH[number])
    for key, value in more.items():
        (own["candidates"][int(key[-1])] if key[-1].isdigit() else own)[
            key.rstrip("012")
        ] = value
    return own


def test_good_items_have_no_faults():
    for own, source in zip(DUTCH, ENGLISH, strict=True):
        assert parts(own, source) == parts(own) == parts(source) == set()


def test_the_blank():
    says = {
        "heel.": "missing or translated",
        "blank.": "missing or translated",
        "BLANK BLANK.": "2 times, and 1 expected",
        "BLANKe.": "touches letters",
        "onBLANK.": "touches letters",
    }
    for context, said in says.items():
        bad = item(
            "intra",
            "a1",
            f"De tuinman was vandaag {context}",
            ["geduldig", "ongedurig", "lamp"],
        )
        assert said in told(bad, ENGLISH[2])
        assert said in told(bad)
    assert "BLANK 1 times, and 0 expected" in told(changed(0, context="De BLANK."))


def test_equal_candidates():
    same, different = (
        ("café cafe\u0301 lamp", "BUS bus lamp"),
        ("sınır sinir şinir", "schön schon Straße"),
    )
    for words in (*same, *different):
        for test, context in (("intra", "Dat is BLANK."), ("inter", "Dat is zo.")):
            own = item(test, "x", context, words.split())
            assert ("the same" in told(own)) == (words in same)


@pytest.mark.parametrize(
    ("more", "alone", "beside"),
    [
        ({"sentence0": "..."}, {"stereotype"}, {"stereotype"}),
        ({"label2": "stereotype"}, {"item"}, {"item"}),
        ({"context": "De tuinman kwam vroeg thuis"}, set(), {"context"}),
        ({"context": "De tuinman kwam vroeg „thuis!” "}, set(), set()),
    ],
)
def test_labels_and_texts(more, alone, beside):
    assert parts(changed(0, **more)) == alone
    assert parts(changed(0, **more), ENGLISH[0]) >= beside


@pytest.mark.parametrize("number", range(2))
def test_doubled_ids_are_refused(number):
    items = [DUTCH[0], copy.deepcopy(DUTCH[1])]
    name = items[0]["id"]
    if number:
        name = items[0]["candidates"][0]["id"]
        items[1]["candidates"][0]["id"] = name
    else:
        items[1]["id"] = name
    with pytest.raises(BiasError, match=f"mine, item .*: {name} appears 2 times"):
        set_checks.check_items(items, "mine")


# items by what is said of them: real anomalies, looked at one by one
PUBLISHED = {
    "en": {"touches": 1, "expected": 2},
    "de": {"touches": 9, "punctuation": 20},
    "es": {"punctuation": 27, "same": 4},
    "fr": {"punctuation": 19, "same": 2},
    "tr": {"punctuation": 2, "same": 12, "touches": 1},
}


@pytest.mark.parametrize("language", PUBLISHED)
def test_the_published_sets(language, mirror):
    sources = {item["id"]: item for item in stereoset_items.read_all("en")}
    counts = Counter()
    for own in stereoset_items.read_all(language):
        source = sources[own["id"]] if language != "en" else None
        said = told(own, source)
        counts.update(word for word in SAID if word in said)
    assert counts == PUBLISHED[language]
