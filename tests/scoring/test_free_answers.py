"""What free answers have in common: thoughts, refusals, markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lm_eval_bias as leb
from lm_eval_bias.core.answers import ENDLESS, UNANSWERED
from lm_eval_bias.scoring import free_answers
from lm_eval_bias.scoring.free_answers import (
    WithoutThoughtsFilter,
    listed,
    marks_thoughts,
    opening_of_thoughts,
    plain_lines,
    refuses,
    without_thoughts,
)
from lm_eval_bias.tasks.occugender import answer_extraction
from tests.support.chat_styles import MARKS


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
        # names that no list has: a block that stands before something else is a thought
        ("<düşünce>A?</düşünce>B", "B"),
        ("<plan>A?</plan>\n<check>B?</check>\n\nC", "C"),
        ("<plan>A?", ENDLESS),
        ("<|ponder|>A?<|/ponder|>B", "B"),
        ("<plan>B</plan>", "<plan>B</plan>"),  # nothing else: the answer itself
        # answers and HTML are none
        ("<answer>B</answer> because A is", "<answer>B</answer> because A is"),
        ("<final_answer>B</final_answer>\n", "<final_answer>B</final_answer>\n"),
        ("<b>B</b> The man", "<b>B</b> The man"),
        ("<|assistant|>B", "<|assistant|>B"),
        ("<scratchpad>A?</scratchpad>\n<answer>B</answer>", "<answer>B</answer>"),
        ("<|begin_of_thought|>A?", ENDLESS),
        # thoughts behind an answer, and of another answer
        ("B\n<reasoning>A?</reasoning>", "B\n"),
        ("A?</think>", ""),
        (
            "<|channel|>analysis<|message|>A?<|end|><|start|>assistant<|channel|>commentary<|message|>B",
            ENDLESS,
        ),
    ],
)
def test_thoughts_are_cut(text, answer):
    assert without_thoughts(text) == answer


@pytest.mark.parametrize(("opens", "closes"), MARKS)
def test_marks_of_todays_models(opens, closes, caplog):
    assert without_thoughts(f"{opens}The answer is A.{closes}B") == "B"
    assert without_thoughts(f"\n{opens}\nThe answer is A.") == ENDLESS
    assert marks_thoughts(opens + "A")
    if "channel" not in opens:  # which the model writes
        prompt = f"Who?<|assistant|>{opens}\n"
        assert opening_of_thoughts(prompt) == opens
    assert opening_of_thoughts(opens + closes) == ""
    assert not caplog.records


def test_a_mark_that_no_list_knows_is_named_once(caplog):
    free_answers._warn_once.cache_clear()
    for text in ("<deliberate>A?</deliberate>B", "<deliberate>B?</deliberate>C"):
        without_thoughts(text)
    assert [record.getMessage() for record in caplog.records] == [
        "an answer begins with a block in marks named deliberate: taken for a model's thoughts, and not read"
    ]


GENDERS = {"Female": "female", "He": "male", "they": "diverse"}
READERS = {
    "without_thoughts": without_thoughts,
    "opening_of_thoughts": opening_of_thoughts,
    "marks_thoughts": marks_thoughts,
    "plain_lines": plain_lines,
    **{f"refuses {name}": lambda text, name=name: refuses(text, name) for name in listed("refusals.yaml")["firm"]},
    **{
        kind: lambda text, kind=kind: answer_extraction.read(text, kind, GENDERS, "I met")
        for kind in ("explicit", "implicit", "stories")
    },
}  # fmt: skip
ANY_TEXT = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=()), max_size=20),
        st.sampled_from([*sum(MARKS, ()), "*", "**", "\n", "\\boxed{", "&#x110000;", "I", "İ", "He", "they"]),
    ),
    max_size=20,
).map("".join)  # fmt: skip


@pytest.mark.parametrize("name", READERS)
@given(text=ANY_TEXT)
def test_nothing_that_a_text_says_raises(name, text):
    READERS[name](text)


@pytest.mark.parametrize(
    "scrap", ["<think>", "<", ":", "\n", "The man, ", "*", "ß", "\ud800", "가"]
)
def test_long_texts_are_read(scrap):
    text = (scrap * 100_000)[:100_000] + "x"
    for read in READERS.values():
        read(text)
    said = leb.extract_choice(text, ["The woman", "The man", "Not known"], "en")
    assert said in {"A", "B", "C", *UNANSWERED}


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
    assert plain_lines("**B**'dir, **B**입니다") == ["B'dir, B입니다"]
    assert plain_lines("Lehrer*in, a_b") == ["Lehrer*in, a_b"]
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
