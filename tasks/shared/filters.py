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
    """A filter that extracts the answer of each document's first text, without thoughts."""

    reads_again = True  # by rule alone, from the text and its document

    @abstractmethod
    def reader(self, doc: Facts) -> ChoiceExtractor:
        """Make the extractor for a document."""

    def apply(
        self, resps: Iterable[Sequence[str | None]], docs: Documents
    ) -> list[str]:
        """Extract the answer of each document's first text.

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
    """A filter that extracts the chosen letter (A, B, C), or one of ``answers.UNANSWERED``."""

    def reader(self, doc: Facts) -> ChoiceExtractor:
        """Make the extractor."""
        return reader(doc)
