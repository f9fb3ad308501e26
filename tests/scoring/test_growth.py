"""What readers of answers take grows as the answers do: ratios of processor time between lengths, with room."""

import time

import pytest

from lm_eval_bias.core.answers import LONGEST_READ
from lm_eval_bias.scoring.answer_extraction import ChoiceExtractor, Option, languages
from lm_eval_bias.scoring.free_answers import refuses, without_thoughts
from lm_eval_bias.tasks.occugender import hooks
from lm_eval_bias.tasks.occugender.answer_extraction import read

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


def taken(function, text):
    """The least processor time of two goes."""
    times = []
    for _ in range(2):
        begun = time.process_time()
        function(text)
        times.append(time.process_time() - begun)
    return min(times)


def growth(function, piece, length):
    """How much longer four times the length takes; 0 where both take next to nothing."""
    shorter, longer = (
        piece * (size // len(piece)) + "x" for size in (length, 4 * length)
    )
    long = taken(function, longer)
    return long / taken(function, shorter) if long > NOTHING else 0.0


def readers():
    for language in languages():
        options = [
            Option(letter, (text,))
            for letter, text in zip(
                "ABC", ["The woman", "The man", "Unknown"], strict=True
            )
        ]
        yield f"choices in {language}", ChoiceExtractor(options, language).read
    for kind in ("explicit", "implicit", "stories"):
        words = hooks.genders_by_word(
            None, "explicit" if kind == "explicit" else "implicit"
        )
        yield kind, lambda text, kind=kind, words=words: read(text, kind, words, "She")
    yield "refusals", lambda text: refuses(text, "en")
    yield "thoughts", without_thoughts


READERS = dict(readers())


# the rules are the same in every language, with other words
@pytest.mark.parametrize("name", ["choices in en", "refusals", "thoughts"])
def test_reading_grows_as_the_answer_does(name):
    function = READERS[name]
    function("x")
    found = {piece: growth(function, piece, LONGEST_READ // 4) for piece in PIECES}
    again = [
        piece for piece in found if found[piece] > QUADRATIC
    ]  # somebody else may have been at work
    assert {
        piece: grown
        for piece in again
        if (grown := growth(function, piece, LONGEST_READ // 4)) > QUADRATIC
    } == {}
