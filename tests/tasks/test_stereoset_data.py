"""StereoSet's documents: the real files where they are, and the rules on small ones."""

import copy
from collections import Counter

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.stereoset import hooks, stereoset_items


@pytest.mark.parametrize("language", stereoset_items.LANGUAGES)
def test_released_sizes(mirror, language):
    intra, inter = stereoset_items.read(language, "intra"), stereoset_items.read(language, "inter")
    assert len(inter) == 2123
    assert len(intra) == (2103 if language == "de" else 2106)
    types = Counter(item["bias_type"] for item in inter)
    assert types == {"race": 976, "profession": 827, "gender": 242, "religion": 78}
    for items in (intra, inter):
        assert len({item["term"] for item in items}) == 79
    types_of = {}
    for item in intra + inter:
        types_of.setdefault(item["term"], set()).add(item["bias_type"])
    assert all(len(found) == 1 for found in types_of.values())  # a term is within one bias type
    assert sum(item["context"][-1] not in ".!?" for item in inter) > 250


def test_one_term_in_all_languages(mirror):
    terms = [
        {item["term"] for item in stereoset_items.read(language, "inter")} for language in stereoset_items.LANGUAGES
    ]
    assert all(found == terms[0] for found in terms)
    german = stereoset_items.read("de", "inter")
    assert len({item["target"] for item in german}) != 79  # the translated targets merge and split


def test_stored_sentences_are_kept(mirror):
    different = total = 0
    for item in stereoset_items.read("en", "intra"):
        for candidate in item["candidates"]:
            total += 1
            different += item["context"].replace("BLANK", candidate["word"]) != candidate["sentence"]
    assert different / total > 0.3
    contexts = [item["context"] for item in stereoset_items.read("de", "intra")]
    assert sum("BLANKST" in context for context in contexts) > 1
    assert sum(context.count("BLANK") == 2 for context in contexts) == 2
    assert "\u00a0" in "".join(item["context"] for item in stereoset_items.read("fr", "intra"))


def test_any_beginning_is_spread(mirror):
    docs = hooks.documents({"language": "en", "tests": ["inter", "intra"]})
    assert len(docs) == 4229
    assert Counter(doc["test"] for doc in docs[:158]) == {"inter": 79, "intra": 79}
    assert len({doc["term"] for doc in docs[:158]}) == 79
    assert docs[0]["test"] == "inter"  # so that a model without next sentences says so before anything is run


def damaged(change):
    def make(items):
        changed = copy.deepcopy(items)
        change(changed)
        return changed

    return make


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda i: i[1]["candidates"][0].update(label="related"), "item intra1: labels .* once"),
        (lambda i: i[1]["candidates"][0].update(label=i[1]["candidates"][1]["label"]), "item intra1: labels .* once"),
        (lambda i: i[1]["candidates"].pop(), "item intra1: labels .* is needed once"),
        (lambda i: i[1].update(id="intra0"), "the id intra0 appears twice"),
        (lambda i: i[1]["candidates"][0].update(id=i[0]["candidates"][0]["id"]), "appears twice"),
        (lambda i: i[1].update(context="no hole"), "item intra1: the context holds no BLANK"),
        (lambda i: i[1]["candidates"][2].update(word=" "), "item intra1: an empty"),
        (lambda i: i[1].update(term=None), "item intra1: an empty"),
    ],
)
def test_items_that_cannot_be_scored_are_refused(tiny_mirror, change, problem):
    items = stereoset_items.read("de", "intra")
    stereoset_items.check_items(items, "mine")
    with pytest.raises(BiasError, match=f"mine, .*{problem}|{problem}"):
        stereoset_items.check_items(damaged(change)(items), "mine")


def test_questions_carry_what_each_family_needs(tiny_mirror):
    docs = hooks.documents({"language": "fr", "tests": ["inter", "intra"]}, bos="all")
    inter, intra = docs[0], next(doc for doc in docs if doc["test"] == "intra")
    (question, *_) = hooks.questions(intra)
    assert question.kind == "cloze"
    assert question.arguments == (
        "L'ingénieure est «\u00a0BLANK\u00a0»\u00a0!",
        "précise",
        "L'ingénieure est «\u00a0précise\u00a0»\u00a0!",
        {"bos": "all", "masked": "left_to_right", "inter": "gen"},
    )
    (question, *_) = hooks.questions(inter)
    assert question.kind == "next_sentence"
    assert question.arguments[:2] == ("Où est l'ingénieure\u00a0?", "Elle écrit\u00a0!")
    (question, *_) = hooks.questions(hooks.documents({"language": "fr", "tests": ["inter"], "variants": True})[0])
    assert question.kind == "sentence_likelihoods"


def test_the_comparison_takes_no_choice(tiny_mirror):
    with pytest.raises(BiasError, match="compares all of them"):
        hooks.documents({"language": "fr", "tests": ["inter"], "variants": True}, inter="gen")


def test_wrong_number_of_answers(tiny_mirror):
    (doc, *_) = hooks.documents({"language": "fr", "tests": ["inter"]})
    with pytest.raises(BiasError, match="item inter0: 2 answers for 3 candidates"):
        hooks.record(doc, [(0.1, 1), (0.2, 1)])
