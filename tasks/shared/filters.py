"""Filters for generated answers of several benchmarks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from lm_eval.api.filter import Filter

from lm_eval_bias.core import Facts
from lm_eval_bias.core.answers import reading
from lm_eval_bias.custom_metrics.score import Documents
from lm_eval_bias.scoring.answer_extraction import ChoiceExtractor
from lm_eval_bias.tasks.shared.bbq_records import reader


class FirstTextFilter(Filter):
    """Reads the first text of every document, without thoughts."""

    reads_again = True  # by rule alone, from the text and its document

    @abstractmethod
    def reader(self, doc: Facts) -> ChoiceExtractor:
        """Make the reader of a document's texts."""

    def apply(
        self, resps: Iterable[Sequence[str | None]], docs: Documents
    ) -> list[str]:
        """Read the first text of every document.

        Args:
            resps: Generated texts per document.
            docs: The documents.
        """
        found = []
        for texts, doc in zip(resps, docs, strict=True):
            text = texts[0] if texts else None
            found.append(reading("" if text is None else text, self.reader(doc).read))
        return found


class LetteredAnswerFilter(FirstTextFilter):
    """Turns each answer into the letter (A, B, C) that it takes, or one of ``answers.UNANSWERED``."""

    def reader(self, doc: Facts) -> ChoiceExtractor:
        """Make the reader."""
        return reader(doc)
