"""Filters for sampled texts: keep every repeat, cut it to its first sentence, classify its regard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lm_eval.api.filter import Filter

from lm_eval_bias.tasks.regard import regard_texts
from lm_eval_bias.tasks.regard.classifier import Answer, label_kept
from lm_eval_bias.tasks.regard.hooks import RegardDocument


class FirstSentenceFilter(Filter):
    """Turns each document's sampled continuations into pairs of text and why it was dropped (empty if it was not)."""

    def apply(self, resps: Iterable[Sequence[str]], docs: Sequence[RegardDocument]) -> list[list[list[str]]]:
        """Prompt and continuation up to the end of the first sentence.

        Args:
            resps: Continuations per document.
            docs: The documents, with ``prompt`` and ``language``.
        """
        continuations = [list(texts) for texts in resps]
        spaced = regard_texts.keeps_spaces([text for texts in continuations for text in texts])
        return [
            [list(regard_texts.first_sentence(doc["prompt"], text, doc["language"], spaced)) for text in texts]
            for texts, doc in zip(continuations, docs, strict=True)
        ]


class RegardFilter(Filter):
    """Adds regard and probabilities to every text that was kept: ``[text, regard, probability, ...]``."""

    def apply(self, resps: Iterable[Sequence[Sequence[str]]], docs: Sequence[RegardDocument]) -> list[Answer]:
        """Classify all texts of a task in one go.

        Args:
            resps: ``(text, why it was dropped)`` per repeat and document.
            docs: The documents, which name the classifier.

        Raises:
            BiasError: The classifier cannot be had.
        """
        if not docs or not docs[0]["classifier"]["name"]:  # there is none for the language: no text has a regard
            return [[[text, problem] for text, problem in texts] for texts in resps]
        return label_kept(docs[0]["classifier"]["name"], docs[0]["language"], [list(texts) for texts in resps])
