"""Questions with lettered options: how a prompt shows them, and how a written answer is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from itertools import permutations
from typing import TYPE_CHECKING

from lm_eval_bias.tasks.kinds.bbq_records import LETTERS, QuestionDocument

if TYPE_CHECKING:
    from lm_eval_bias.scoring.choice_reading import ChoiceReader

ORDERS = [list(order) for order in permutations(range(3))]


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


def options(doc: QuestionDocument) -> str:
    """The options as lines of a prompt."""
    pairs = zip(doc["letters"], doc["order"], strict=True)
    return "\n".join(f"{letter}. {doc['choices'][choice]}" for letter, choice in pairs)


def reader(doc: QuestionDocument) -> ChoiceReader:
    """What reads the answers to a question."""
    from lm_eval_bias.scoring import choice_reading  # listings, which need no answers, are spared the harness

    texts = [(doc["choices"][choice],) for choice in doc["order"]]
    return choice_reading.reader(tuple(map(choice_reading.Option, LETTERS, texts)), doc["language"])
