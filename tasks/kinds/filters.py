"""Filters for generated answers of several benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lm_eval.api.filter import Filter

from lm_eval_bias.tasks.kinds.bbq_records import QuestionDocument
from lm_eval_bias.tasks.kinds.lettered_questions import reader


class LetteredAnswerFilter(Filter):
    """Turns each answer into the letter (A, B, C) that it takes, or one of ``answers.UNANSWERED``."""

    def apply(self, resps: Iterable[Sequence[str]], docs: Sequence[QuestionDocument]) -> list[str]:
        """Read the first text of every document.

        Args:
            resps: Generated texts per document, without thoughts.
            docs: The documents.
        """
        return [reader(doc).read(texts[0] if texts else "") for texts, doc in zip(resps, docs, strict=True)]
