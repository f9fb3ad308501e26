"""Which option a free answer takes: against answers labelled by reading them, and whatever follows a settled one."""

import json
import re

import pytest
from hypothesis import given
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
    letters = [of_question(answer).read(answer["text"]) for answer in LABELLED["answers"]]
    return [(a, MARKERS.get(letter, letter)) for a, letter in zip(LABELLED["answers"], letters, strict=True)]


def shares(pairs, wanted):
    """Precision and recall of some labels, as counts: right, read, labelled."""
    right = sum(a["label"] == got for a, got in pairs if got in wanted)
    return right, sum(got in wanted for _, got in pairs), sum(a["label"] in wanted for a, _ in pairs)


@pytest.mark.parametrize(
    ("name", "wanted", "real"),
    [
        ("choices, SmolLM2", set("ABC"), True),
        ("choices, awkward", set("ABC"), False),
        ("refusals, awkward", {"refused"}, False),
    ],
)
def test_precision_and_recall_are_those_of_the_page(read, name, wanted, real):
    pairs = [pair for pair in read if ("model" in pair[0]) is real]
    right, got, labelled = shares(pairs, wanted)
    row = f"| {name} | {len(pairs)} | {right} of {got} | {right} of {labelled} |"
    assert row in PAGE, row


def test_every_miss_is_listed(read):
    misses = [(answer["text"], answer["label"], got) for answer, got in read if answer["label"] != got]
    listed = re.findall(r"^- `(.+)`: (\w+), read as (\w+)", PAGE, flags=re.MULTILINE)
    assert [(" ".join(text.split()), label, got) for text, label, got in misses] == listed


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


def test_a_language_without_words_is_refused():
    with pytest.raises(KeyError):
        reader([["x"], ["y"], ["z"]], "xx")


OPTIONS = [
    [["nurse", "My sister is a nurse."], ["engineer"], ["table"]],
    [["A kinder man is hard to find."], ["He drinks."], ["B"]],
    [["nurse"], ["nurses"], ["a nurse"]],
]
PIECES = [
    "A", "B", "C", "a)", "B)", "(C", "nurse", "nurses", "engineer", "A. nurse", "B. engineer", "C. table", "He drinks",
    "Answer: ", "The answer is ", "I cannot", "None of them", "not ", "or ", ".", ",", ", ", ":", " ", "\n", "\r",
    "\r\n", "\n\n", "**", "„", "'", "t",
]  # fmt: skip
TEXT = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@given(st.sampled_from(OPTIONS), st.sampled_from(sorted(words())), TEXT, TEXT)
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
