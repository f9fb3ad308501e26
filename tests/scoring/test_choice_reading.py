"""Which option a free answer takes: against answers labelled by reading them, and whatever follows a settled one."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lm_eval_bias.core.answers import EMPTY, ENDLESS, REFUSED, SEVERAL, UNREADABLE
from lm_eval_bias.scoring.choice_reading import ChoiceReader, Option, words
from tests.support.places import ROOT

LABELLED = json.loads((ROOT / "tests" / "golden" / "choice_answers.json").read_text(encoding="utf-8"))
MARKERS = {REFUSED: "refused", SEVERAL: "several", UNREADABLE: "unreadable", EMPTY: "empty", ENDLESS: "endless"}
PAGE = (ROOT / "tests" / "golden" / "README.md").read_text(encoding="utf-8")


def reader(options, language="en"):
    return ChoiceReader([Option(letter, tuple(texts)) for letter, texts in zip("ABC", options, strict=True)], language)


def of_question(answer):
    question = LABELLED["questions"][answer["question"]] if "question" in answer else answer
    return reader(question["options"], question["language"])


@pytest.fixture(scope="module")
def read():
    """Every labelled answer with what is read from it."""
    letters = [(answer, of_question(answer).read(answer["text"])) for answer in LABELLED["answers"]]
    return [(answer, MARKERS.get(letter, letter)) for answer, letter in letters]


@pytest.mark.parametrize(
    ("name", "wanted", "real"),
    [
        ("choices, SmolLM2", set("ABC"), True),
        ("choices, awkward", set("ABC"), False),
        ("refusals, awkward", {"refused"}, False),
    ],
)
def test_precision_and_recall_are_those_of_the_page(read, name, wanted, real):
    pairs = [(answer["label"], got) for answer, got in read if ("model" in answer) is real]
    right = sum(label == got for label, got in pairs if got in wanted)
    got, labelled = (sum(pair[place] in wanted for pair in pairs) for place in (1, 0))
    row = f"| {name} | {len(pairs)} | {right} of {got} | {right} of {labelled} |"
    assert row in PAGE, row


def test_every_miss_is_listed(read):
    misses = [(" ".join(a["text"].split()), a["label"], got) for a, got in read if a["label"] != got]
    assert misses == re.findall(r"^- `(.+)`: (\w+), read as (\w+)", PAGE, flags=re.MULTILINE)


def test_letter_goes_before_text_and_statement_before_refusal():
    own = reader([["nurse"], ["engineer"], ["As an AI, I cannot say"]])
    assert own.read("A) because an engineer would not") == "A"
    assert own.read("A) engineer") == SEVERAL  # they disagree
    assert own.read("As an AI, I cannot say.") == "C"  # what reads like a refusal is an option
    assert own.read("My choice is: as an AI, I cannot say") == "C"
    assert own.read("I cannot say. The nurse, perhaps.") == REFUSED
    assert own.read("None of A, B and C.") == REFUSED
    assert own.read("Choose A, B or C.") == SEVERAL
    assert own.read("A. nurse\nB. engineer\nC. As an") == SEVERAL  # cut off
    assert own.read("Choices:\nA. nurse\nB. engineer") == SEVERAL


def test_an_option_within_another_is_not_mentioned():
    own = reader([["the nurse"], ["the nurse's friend"], ["unknown"]])
    assert own.read("I would say that it was the nurse's friend.") == "B"
    assert own.read("I would say that it was the nurse.") == "A"


def test_equal_options_differ_by_letter_alone():
    own = reader([["nurse"], ["nurse"], ["engineer"]])
    assert own.read("B. nurse") == "B"
    assert own.read("A. nurse") == "A"
    assert own.read("nurse") == SEVERAL
    assert own.read("It must be a nurse, I think") == SEVERAL
    assert own.read("A. nurse\nB. nurse\nC. engineer") == SEVERAL


@pytest.mark.parametrize(
    "text", ["A, " * 5000, "A or B, " * 3000, "A. nurse\n" * 3000, "not A " * 3000, "nurse " * 4000]
)
def test_long_answers_are_read(text):
    assert reader(OPTIONS[0]).read(text) in ("A", SEVERAL, UNREADABLE)


GERMAN = [["Der Mann"], ["Die Frau"], ["keine Antwort"]]
OPTIONS = [
    [["nurse", "My sister is a nurse."], ["engineer"], ["table"]],
    [["A kinder man is hard to find."], ["He drinks."], ["B"]],
    [["nurse"], ["nurses"], ["a nurse"]],
    GERMAN,
    [["Ann"], ["Anna"], ["keine Antwort"]],
    [["Frau"], ["Frau, die"], ["keine Antwort"]],
    [["Antwort Eins"], ["Eins"], ["keine Antwort"]],
    [["Maria"], ["Maria"], ["keine Antwort"]],
]
PIECES = [
    "A", "B", "C", "a)", "B)", "(C", "nurse", "nurses", "engineer", "A. nurse", "B. engineer", "C. table", "He drinks",
    "Der Mann", "Die Frau", "die Frau", "Ann", "Anna", "a", "Frau", ", die", "Maria", "keine Antwort", "Antwort: ",
    "Eins", "oder", "Answer: ", "The answer is ", "I cannot", "None of them", "not ", "or ", ".", ",", ", ", ":", " ",
    "\n", "\r", "\r\n", "\n\n", "**", "„", "'", "t",
]  # fmt: skip
TEXT = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@given(st.sampled_from(OPTIONS), st.sampled_from(sorted(words())), TEXT, TEXT)
@example(OPTIONS[5], "de", "Frau,\nt\n", " die.")
@example(OPTIONS[6], "de", "Antwort Eins.\n\nt\n", "\n")
@example(GERMAN, "de", "A, B, ", "nna ist es\nDie Frau")
def test_nothing_that_follows_a_settled_answer_is_read(options, language, text, more):
    own = reader(options, language)
    if own.is_settled(text):
        assert own.read(text + more) == own.read(text)


def test_usual_answers_are_settled():
    own = reader(OPTIONS[0])
    assert own.is_settled("B\n\nSentence:\n")
    assert own.is_settled("B. engineer\nbecause\n")
    assert own.is_settled("A, B, C, D, E")
    assert not own.is_settled("A. nurse\n")  # perhaps the options are repeated
    assert not own.is_settled("A. nurse\nB. engineer\nC. table\n")
    assert not own.is_settled("<think>\nB\nbecause\n")
