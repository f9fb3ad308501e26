"""Regard's documents and records, and the filters that make answers of sampled texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from lm_eval.api.filter import Filter

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.content_hashes import of_text
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.custom_metrics.regard import BY_HAND, OTHER, REGARDS
from lm_eval_bias.custom_metrics.score import Record
from lm_eval_bias.tasks.regard import classifier, keywords, regard_texts
from lm_eval_bias.tasks.regard.classifier import LabelledTexts
from lm_eval_bias.tasks.regard.classifier_identity import LABELS, Identity

# A prompt with the classifier that labels its texts; of a text that was labelled elsewhere no more than the gender.


def regard_document(language: str, identity: Identity, prompt: Facts) -> Data:
    """Make the document of a prompt, or of a text that was labelled elsewhere."""
    return {
        "benchmark": "regard",
        "language": language,
        **prompt,
        "has_other": OTHER in identity.labels,
        "classifier": identity.as_data(),
    }


def dataset(fixed: Facts, **metadata: object) -> Data:
    """Make the 20 prompts of a language, each with the classifier that will label its texts, by split.

    Args:
        fixed: What the task's YAML sets: ``language``.
        metadata: ``classifier``, see :func:`lm_eval_bias.tasks.regard.classifier.load`.

    Raises:
        BiasError: No such classifier, or it cannot be had: known before anything is generated.
    """
    language = fixed["language"]
    identity = classifier.choose(metadata.get("classifier"), language).identity
    return {
        "test": [
            regard_document(language, identity, prompt)
            for prompt in regard_texts.prompts(language)
        ]
    }


def kept_texts(answer: LabelledTexts, labels: Sequence[str]) -> list[tuple[str, str]]:
    """List the kept texts of an answer, each with its regard.

    Raises:
        BiasError: A regard that is not among the labels.
    """
    kept = [
        (str(row[0]), str(row[1])) for row in answer if not regard_texts.is_dropped(row)
    ]
    if unknown := [label for _, label in kept if label not in labels]:
        raise BiasError(
            f"regard {unknown[0]!r}: must be one of {', '.join(labels)}: label the texts with --classifier (light, "
            "sbert, hub:<model>, ...)"
        )
    return kept


def about_texts(
    doc: Facts, answer: LabelledTexts, kept: Sequence[tuple[str, str]]
) -> Data:
    """Add the usability of a prompt's texts, and their classifier, to a record."""
    return {
        "drawn": len(answer),
        "unfinished": sum(regard_texts.unfinished(text) for text, _ in kept),
        "wordings": [of_text(text) for text, _ in kept],
        "has_other": doc["has_other"],
        "warning": doc["classifier"]["warning"],
    }


def record(doc: Facts, results: Sequence[LabelledTexts]) -> Record:
    """Make the record of a prompt's texts: their regard, context sets and sexism keywords.

    Args:
        doc: The document: ``language``, ``gender``, ``has_other``, ``classifier``; a ``prompt`` where it was sampled.
        results: The one request's answer: per text ``[text, regard, probability, ...]`` or ``[text, why dropped]``.

    Raises:
        BiasError: A label that is none.
    """
    language = doc["language"]
    labels = LABELS if doc["has_other"] else REGARDS
    kept = kept_texts(results[0], labels)
    texts = []
    for text, label in kept:
        sets = regard_texts.context_sets(text, language)
        facets = keywords.facets(text, language)
        if "by_hand" in doc:
            facets += map(BY_HAND.format, doc["by_hand"][text.strip()])
        texts.append((label, sets, facets))
    made = {
        **about_texts(doc, results[0], kept),
        "gender": doc["gender"],
        "texts": texts,
        "by_hand": "by_hand" in doc,
    }
    if "prompt" not in doc:
        return {**made, "repeated": None}
    return {
        **made,
        "repeated": len({str(row[0]) for row in results[0]}) == 1,
        "context": f"{doc['set']}: {doc['context']}",
        "context_set": doc["set"],
    }


def reclassify(
    docs: Documents, results: Sequence[Sequence[LabelledTexts]], name: str
) -> tuple[list[Data], list[list[LabelledTexts]]]:
    """Label saved texts with another classifier; what was dropped stays dropped.

    Args:
        docs: Documents of one language.
        results: Their answers.
        name: The classifier.

    Raises:
        BiasError: No such classifier.
    """
    language = str(docs[0]["language"])
    identity = replace(classifier.load(name, language).identity, name=name)
    labelled_by = {
        "has_other": OTHER in identity.labels,
        "classifier": identity.as_data(),
    }
    texts = []
    for (answer,) in results:
        sampled = []
        for row in answer:
            label = str(row[1]) if regard_texts.is_dropped(row) else ""
            sampled.append((str(row[0]), label))
        texts.append(sampled)
    answers = classifier.label_kept(name, language, texts)
    return [{**doc, **labelled_by} for doc in docs], [[answer] for answer in answers]


class FirstSentenceFilter(Filter):
    """A filter that cuts continuations to one sentence: pairs of text and the reason for dropping it (or empty)."""

    def apply(
        self, resps: Iterable[Sequence[str]], docs: Documents
    ) -> list[list[list[str]]]:
        """Cut prompt and continuation at the end of the first sentence.

        Args:
            resps: Continuations per document.
            docs: The documents, with ``prompt`` and ``language``.
        """
        continuations = [list(texts) for texts in resps]
        spaced = regard_texts.keeps_spaces(list(chain.from_iterable(continuations)))
        cut = []
        for doc, texts in zip(docs, continuations, strict=True):
            begin = partial(regard_texts.first_sentence, doc["prompt"])
            cut.append([list(begin(text, doc["language"], spaced)) for text in texts])
        return cut


class RegardFilter(Filter):
    """A filter that adds regard and probabilities to every kept text: ``[text, regard, probability, ...]``."""

    def apply(
        self, resps: Iterable[Sequence[Sequence[str]]], docs: Documents
    ) -> list[LabelledTexts]:
        """Classify all texts of a task at once.

        Args:
            resps: ``(text, why it was dropped)`` per repeat and document.
            docs: The documents, which name the classifier.

        Raises:
            BiasError: The classifier cannot be had.
        """
        sampled: list[Any] = [list(map(list, texts)) for texts in resps]
        # without a classifier for the language no text has a regard
        if not docs or not docs[0]["classifier"]["name"]:
            return sampled
        name = docs[0]["classifier"]["name"]
        language = docs[0]["language"]
        return classifier.label_kept(name, language, sampled)
