"""The filter that reads which candidate a generated answer takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lm_eval.api.filter import Filter

from lm_eval_bias.tasks.stereoset import choices
from lm_eval_bias.tasks.stereoset.stereoset_items import Document


class CandidateFilter(Filter):
    """Turns each answer into the letter of the candidate that it takes, or one of ``answers.UNANSWERED``."""

    def apply(self, resps: Iterable[Sequence[str]], docs: Sequence[Document]) -> list[str]:
        """Read the first text of every document.

        Args:
            resps: Generated texts per document, without thoughts.
            docs: The documents.
        """
        return [choices.reader(doc).read(texts[0] if texts else "") for texts, doc in zip(resps, docs, strict=True)]
