"""Filters for sampled texts: keep every repeat, cut it to its first sentence, classify its regard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lm_eval.api.filter import Filter

from lm_eval_bias.tasks.regard import regard_texts


class FirstSentenceFilter(Filter):
    """Turns each document's sampled continuations into pairs of text and why it was dropped (empty if it was not)."""

    def apply(self, resps: Iterable[Sequence[str]], docs: Sequence[dict[str, Any]]) -> list[list[list[str]]]:
        """Prompt and continuation up to the end of the first sentence.

        Args:
            resps: Continuations per document.
            docs: The documents, with ``prompt`` and ``language``.
        """
        sampled = [list(own) for own in resps]
        spaced = regard_texts.keeps_spaces([text for own in sampled for text in own])
        return [
            [list(regard_texts.first_sentence(doc["prompt"], text, doc["language"], spaced)) for text in own]
            for own, doc in zip(sampled, docs, strict=True)
        ]


class RegardFilter(Filter):
    """Adds regard and probabilities to every text that was kept: ``[text, regard, probability, ...]``."""

    def apply(self, resps: Iterable[Sequence[Sequence[str]]], docs: Sequence[dict[str, Any]]) -> list[list[list[Any]]]:
        """Classify all texts of a task in one go.

        Args:
            resps: ``(text, why it was dropped)`` per repeat and document.
            docs: The documents, which name the classifier.
        """
        from lm_eval_bias.tasks.regard.labelling import label_all

        return label_all([list(own) for own in resps], docs)
