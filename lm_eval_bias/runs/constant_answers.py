"""Saved answers that don't depend on what was asked: of a server that gives every token the same log-probability."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

_FEWEST = 12  # answers that are alike by no chance
CONTROLS = {"bias-chance", "bias-dial"}  # model types that may give every word the same on purpose


def _numbers(answer: Any) -> Iterator[float]:
    """An answer's log-likelihoods, a token's where their lengths are known, or its score; nothing of other answers."""
    if not isinstance(answer, tuple) or not all(isinstance(part, int | float) for part in answer):
        return
    if len(answer) == 6:
        yield from (total / max(count, 1) for total, count in zip(answer[::2], answer[1::2], strict=True))
    elif len(answer) == 3:
        yield answer[0] / max(answer[2], 1)
    else:
        yield from answer[:1]


class Numbers:
    """The numbers in a log's answers, as long as they are one and the same."""

    def __init__(self) -> None:
        self._count = 0
        self._first = math.nan
        self._alike = True

    def add(self, answers: Sequence[Any]) -> None:
        """Take note of a document's answers."""
        for answer in answers if self._alike else ():
            for number in _numbers(answer):
                self._first = self._first if self._count else number
                self._alike = self._alike and math.isclose(number, self._first, rel_tol=1e-12)
                self._count += 1

    def problem(self) -> str:
        """What is wrong with them; empty where nothing is."""
        if not self._alike or self._count < _FEWEST or not math.isfinite(self._first):
            return ""
        return f"every answer is {self._first:g}: the answers don't depend on the text"
