"""Saved answers that don't depend on what was asked: of a server that gives every token the same log-probability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_FEWEST = 12  # answers that are alike by no chance
_LONGEST = 64  # tokens of a continuation
CONTROLS = {"bias-chance", "bias-dial"}  # model types that may give every word the same on purpose


class Numbers:
    """The numbers in a log's answers, as long as they may be multiples of one."""

    def __init__(self) -> None:
        self._count = 0
        self._distinct: set[tuple[bool, float]] = set()  # whether it is a log-likelihood, and what it is

    def add(self, answers: Sequence[Any]) -> None:
        """Take note of a document's answers: log-likelihoods, alone or with lengths, or scores."""
        for answer in answers:
            numbers = isinstance(answer, tuple) and all(isinstance(part, int | float) for part in answer)
            if len(self._distinct) > _LONGEST or not numbers or not answer:
                return
            if len(answer) > 1 and isinstance(answer[1], bool):
                fresh = {(True, answer[0])}
            else:
                fresh = {(True, number) for number in answer[::2]} if len(answer) == 6 else {(False, answer[0])}
            self._distinct |= fresh
            self._count += 1

    def problem(self) -> str:
        """What is wrong with them; empty where nothing is."""
        values = {abs(value) for _, value in self._distinct}
        if not 0 < len(values) <= _LONGEST or self._count < _FEWEST or not all(map(math.isfinite, values)):
            return ""
        least = min(values)
        alike = len(values) == 1
        if not alike and least > 0 and all(logarithmic for logarithmic, _ in self._distinct):
            ratios = [value / least for value in values]
            alike = all(ratio <= _LONGEST and abs(ratio - round(ratio)) < 1e-9 for ratio in ratios)
        return f"all {self._count} answers are {least:g} or multiples of it: they don't depend on the text" * alike
