"""Filters for generated answers of several benchmarks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from lm_eval.api.filter import Filter

from lm_eval_bias.core.answers import reading
from lm_eval_bias.tasks.kinds.bbq_records import reader


class FirstTextFilter(Filter):
    """Reads the first text of every document, without thoughts."""

    reads_again = True  # by rule alone, from the text and its document

    @abstractmethod
    def read(self, doc: Any, text: str) -> str:
        """Read a text, which is empty for a document without one (a server's null)."""

    def apply(
        self, resps: Iterable[Sequence[str | None]], docs: Sequence[Any]
    ) -> list[str]:
        """Read the first text of every document.

        Args:
            resps: Generated texts per document.
            docs: The documents.
        """
        found = []
        for texts, doc in zip(resps, docs, strict=True):
            text = texts[0] if texts else None
            found.append(reading("" if text is None else text, partial(self.read, doc)))
        return found


class LetteredAnswerFilter(FirstTextFilter):
    """Turns each answer into the letter (A, B, C) that it takes, or one of ``answers.UNANSWERED``."""

    def read(self, doc: Any, text: str) -> str:
        """Read the letter."""
        return reader(doc).read(text)
