"""Filters for generated answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lm_eval.api.filter import Filter

from lm_eval_bias.tasks.occugender.hooks import OccuGenderDocument, read_texts


class GenderFilter(Filter):
    """Turns each document's texts into pairs of text and what it says: a gender, or why it says none."""

    def apply(self, resps: Iterable[Sequence[str]], docs: Sequence[OccuGenderDocument]) -> list[list[list[str]]]:
        """Read all texts of every document.

        Args:
            resps: Texts per document, without thoughts.
            docs: The documents, with their words.
        """
        return [read_texts(doc, texts) for texts, doc in zip(resps, docs, strict=True)]
