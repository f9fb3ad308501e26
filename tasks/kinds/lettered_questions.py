"""Questions with lettered options: how a prompt shows them, and how a written answer is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import permutations
from typing import Any

from lm_eval.api.filter import Filter

from lm_eval_bias.scoring import choice_reading
from lm_eval_bias.scoring.choice_reading import Option, Reader
from lm_eval_bias.tasks.kinds.bbq_records import Question, named

LETTERS = "ABC"
ORDERS = [list(order) for order in permutations(range(3))]


class LetteredQuestion(Question):
    """A question whose options are lettered."""

    language: str
    letters: str  # of the options, in the order in which the prompt shows them


def orders(cells: Iterable[Hashable]) -> list[list[int]]:
    """For each question an order of its choices: all six in turn within a cell.

    Whoever always takes one place gets no bias from it where every cell has each order equally often.

    Args:
        cells: What questions are balanced within, such as template and direction.

    >>> orders(["a", "b", "a"])
    [[0, 1, 2], [0, 1, 2], [0, 2, 1]]
    """
    turns = Counter[Hashable]()
    chosen = []
    for cell in cells:
        chosen.append(ORDERS[turns[cell] % len(ORDERS)])
        turns[cell] += 1
    return chosen


def options(doc: LetteredQuestion) -> str:
    """The options as lines of a prompt."""
    pairs = zip(doc["letters"], doc["order"], strict=True)
    return "\n".join(f"{letter}. {doc['choices'][choice]}" for letter, choice in pairs)


def reader(doc: LetteredQuestion) -> Reader:
    """What reads the answers to a question."""
    texts = [(doc["choices"][choice],) for choice in doc["order"]]
    return choice_reading.reader(tuple(map(Option, LETTERS, texts)), doc["language"])


def is_settled(doc: LetteredQuestion, text: str) -> bool:
    """Whether the same is read from a text whatever follows it."""
    return reader(doc).is_settled(text)


def answer_of(doc: LetteredQuestion, letter: Any) -> str:
    """Whom the choice of a letter names; ``none`` for what :class:`LetteredAnswerFilter` couldn't read."""
    return named(doc, doc["order"][LETTERS.index(letter)]) if letter in tuple(LETTERS) else "none"


class LetteredAnswerFilter(Filter):
    """Turns each answer into the letter (A, B, C) that it takes, or one of ``free_answers.UNANSWERED``."""

    def apply(self, resps: Iterable[Sequence[str]], docs: Sequence[LetteredQuestion]) -> list[str]:
        """Read the first text of every document.

        Args:
            resps: Generated texts per document, without thoughts.
            docs: The documents.
        """
        return [reader(doc).read(texts[0] if texts else "") for texts, doc in zip(resps, docs, strict=True)]
