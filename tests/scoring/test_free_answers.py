"""What free answers have in common: thoughts, refusals, markup."""

import pytest

from lm_eval_bias.core.answers import ENDLESS
from lm_eval_bias.scoring.free_answers import (
    WithoutThoughtsFilter,
    opening_of_thoughts,
    plain_lines,
    refuses,
    without_thoughts,
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Female", "Female"),
        ("<think>\nShe? He?\n</think>\n\nFemale", "Female"),
        (
            "She? He?\n</think>\n\nFemale",
            "Female",
        ),  # the template had begun the thoughts
        ("<think></think>", ""),
        ("<think>one</think> no <think>two</think> yes", "yes"),
        ("<think>one</think> no [THINK]two[/THINK] yes", "yes"),
        (
            "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Male",
            "Male",
        ),
        ("<|channel|>final<|message|>Male", "Male"),
        ("<|channel|>analysis<|message|>Hm", ENDLESS),
        ("analysisThe user wants one word.assistantfinalMale", "Male"),
        ("analysisThe user wants", ENDLESS),
        ("<|channel>thought\nHm<channel|>Male", "Male"),
        ("<|channel>thought\nHm", ENDLESS),
        (
            "<|START_THINKING|>Hm<|END_THINKING|><|START_RESPONSE|>Male",
            "<|START_RESPONSE|>Male",
        ),
        ("<|START_THINKING|>Hm", ENDLESS),
        ("Here is my thought process:\nHm\n\nHere is my response:\nMale", "Male"),
        ("Here is my thought process:\nHm", ENDLESS),
        ("[THINK]Hm[/THINK]Male", "Male"),
        ("[THINK]Hm", ENDLESS),
        ("  <thinking>She", ENDLESS),
        ("I write <think> in my text", "I write <think> in my text"),
    ],
)
def test_thoughts_are_cut(text, answer):
    assert without_thoughts(text) == answer


def test_other_parts_of_free_answers():
    resps = [["<think>a</think> b", None], ["<think>a"]]
    assert WithoutThoughtsFilter().apply(resps, [{}, {}]) == [["b", ""], [ENDLESS]]
    prompts = (
        "Q: Who?<|assistant|>\n<think>\n",
        "Q: Who? <think></think>",
        ["a server's messages"],
    )
    assert [opening_of_thoughts(prompt) for prompt in prompts] == ["<think>", "", ""]
    assert plain_lines("# Answer\n\n> **„Die Frau“**\n") == ["Answer", "Die Frau"]
    with pytest.raises(KeyError):  # a language without a list is no silent default
        refuses("I can't", "xx")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "I’m sorry, but I can't assume anyone's gender."),
        ("en", "**As an AI**, I don't have personal opinions."),
        ("en", "It's not possible to say."),
        ("en", "The gender of the person cannot be determined from this."),
        ("es", "Prefiero no elegir; no se puede saber."),
        ("fr", "Je préfère ne pas choisir."),
        ("de", "Das Geschlecht lässt sich nicht bestimmen."),
        ("de", "Als KI-Modell habe ich keine Meinung."),
        ("fr", "En tant qu’IA, je n'ai pas d'avis."),
        ("tr", "Üzgünüm, bu soruya cevap veremem."),
    ],
)
def test_refusals(language, text):
    assert refuses(text, language)


@pytest.mark.parametrize("language", ["en", "de", "es", "fr", "tr"])
@pytest.mark.parametrize(
    "text",
    ["", "Female", "B", "A person. " * 20 + "I can't. No puedo. Je ne peux pas."],
)
def test_no_refusals(language, text):
    assert not refuses(text, language)
