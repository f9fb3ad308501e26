"""Which option a free answer takes: against answers labelled by reading them."""

import json
import re

import pytest

from lm_eval_bias.core.answers import EMPTY, ENDLESS, REFUSED, SEVERAL, UNREADABLE
from lm_eval_bias.scoring.choice_reading import ChoiceReader, Option
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
    own = reader([["nurse", "My sister is a nurse."], ["engineer"], ["table"]])
    assert own.read(text) in ("A", SEVERAL, UNREADABLE)
