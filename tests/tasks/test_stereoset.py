"""StereoSet's documents, questions and choices: the real files where they are, and the rules on small ones."""

import copy

import pytest

from lm_eval_bias.core import registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.stereoset import LANGUAGES, choices, hooks, stereoset_items
from lm_eval_bias.tasks.stereoset.commands import set_checks


def documents(language="en", tests=("inter", "intra"), **more):
    return hooks.documents({"language": language, "tests": list(tests), **more})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            lambda first, second: second["candidates"][0].update(label="related"),
            "item intra1: item: labels ",
        ),
        (
            lambda first, second: second.update(id="intra0"),
            "intra0 appears 2 times",
        ),
        (
            lambda first, second: second.update(context="no hole"),
            "item intra1: context: BLANK",
        ),
        (
            lambda first, second: second["candidates"][2].update(word=" "),
            "item intra1: .*the word is empty",
        ),
        (
            lambda first, second: second.update(term=" "),
            "item intra1: term: the group is empty",
        ),
    ],
)
def test_items_that_cannot_be_scored_are_refused(tiny_mirror, change, named):
    items = copy.deepcopy(stereoset_items.read("de", "intra"))
    set_checks.check_items(items, "mine")
    change(*items)
    with pytest.raises(BiasError, match=f"mine, .*{named}"):
        set_checks.check_items(items, "mine")


def test_questions_carry_a_text_as_it_is(tiny_mirror):
    docs = hooks.documents({"language": "fr", "tests": ["inter", "intra"]}, bos="all")
    inter, intra = docs[0], next(doc for doc in docs if doc["test"] == "intra")
    asked = [hooks.questions(doc)[0].arguments for doc in (inter, intra)]
    assert asked[0][:2] == ("Où est l'ingénieure\u00a0?", "Elle écrit\u00a0!")
    assert (asked[1][1] in asked[1][2], asked[1][3]["bos"]) == (True, "all")
    with pytest.raises(BiasError, match="--metadata inter"):
        hooks.documents(
            {"language": "fr", "tests": ["inter"], "variants": True}, inter="gen"
        )


def test_every_published_language_has_both_prompts_and_the_ranked_tasks_items(
    tiny_mirror,
):
    assert set(choices.prompts()) == set(LANGUAGES)
    for language, own in choices.prompts().items():
        assert set(own) == {"inter", "intra"}
        for text in own.values():
            assert (text.count("{context}"), text.count("{options}")) == (1, 1)
            assert all(f" {letter}" in text for letter in "ABC"), language
        assert "BLANK" in own["intra"]
        keys = [registry.get("stereoset").key(doc) for doc in documents(language)]
        assert [
            registry.get("stereoset_choices").key(doc)
            for doc in documents(language, choices=True)
        ] == keys
    doc = documents(choices=True)[0]
    assert "{options} {0}\nA. " in choices.prompt(
        {**doc, "context": "{options} {0}"}
    )  # an item's braces stay
    with pytest.raises(BiasError, match="'nl'"):
        documents("nl", choices=True, dataset={"file": "nl.json"})
