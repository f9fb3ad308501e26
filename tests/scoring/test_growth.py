"""What readers of answers take grows as the answers do: ratios of processor time between lengths, with room."""

import time
from functools import partial

import pytest

from lm_eval_bias.core.answers import LONGEST_READ
from lm_eval_bias.scoring.free_answers import refuses, without_thoughts
from tests.support.labelled_answers import read, reader

# repeated as often as fits
PIECES = [
    ":", "=", "\n", " ", "\t", "*", "-", "- ", "(", "[", "#", "| ", "'", "_", "<", "\u00a0", ".", "x", "\\", "\\boxed ",
    "**a ", "~~a", "&lt;", "A ", "A. ", "A\n", "A: ", "A; ", "A, B, ", "A or ", "1. ", "so, ", "not ", "if ", "word ",
    "word. ", "answer ", "answer: ", "The man ", "The man. ", "they ", "he or ", "s are ", "a nurse and any ", "a man ",
    "my man father ", "<think>", "</think>", "[/THINK]", "<plan>", "<plan>x</plan> ", "<|a|>", "<think", "think",
    "analysis ", "cannot, ",
]  # fmt: skip
QUADRATIC = 9.0  # of four times the length: as much as linear with room, and less than its square, 16
NOTHING = 0.03  # seconds that tell nothing
READERS = {
    "choices": reader("en", ["The woman", "The man", "Unknown"]).read,
    "implicit": lambda text: read({"kind": "implicit", "text": text, "right": ""}),
    "refusals": partial(refuses, language="en"),
    "thoughts": without_thoughts,
}


def taken(function, piece, length):
    """The processor time for a text of that length; the least of two goes."""
    text = piece * (length // len(piece)) + "x"
    times = []
    for _ in range(2):
        begun = time.process_time()
        function(text)
        times.append(time.process_time() - begun)
    return min(times)


@pytest.mark.parametrize("name", READERS)
def test_reading_grows_as_the_answer_does(name):
    function = READERS[name]
    function("x")
    for piece in PIECES:
        for _ in range(3):  # somebody else may be at work
            long = taken(function, piece, LONGEST_READ)
            if long < QUADRATIC * taken(function, piece, LONGEST_READ // 4) + NOTHING:
                break
        else:
            pytest.fail(piece)
