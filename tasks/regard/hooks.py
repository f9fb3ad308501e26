"""Regard's documents and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS
from lm_eval_bias.custom_metrics.score import Record
from lm_eval_bias.tasks.regard import classifier, keywords, regard_texts
from lm_eval_bias.tasks.regard.classifier import Answer
from lm_eval_bias.tasks.regard.classifier_identity import LABELS, Identity, IdentityData, read_confusion


class RegardDocument(regard_texts.RegardPrompt, total=False):
    """A prompt with the classifier that labels its texts."""

    benchmark: str
    language: str
    has_other: bool
    classifier: IdentityData


def regard_document(language: str, identity: Identity, prompt: regard_texts.RegardPrompt) -> RegardDocument:
    """The document of a prompt, or of a text that was labelled elsewhere."""
    return {
        "benchmark": "regard",
        "language": language,
        **prompt,
        "has_other": OTHER in identity.labels,
        "classifier": identity.as_data(),
    }


def dataset(fixed: Mapping[str, Any], **metadata: Any) -> dict[str, list[RegardDocument]]:
    """The 20 prompts of a language, each with the classifier that will label its texts, by split.

    Args:
        fixed: What the task's YAML sets: ``language``.
        metadata: ``classifier``, see :func:`lm_eval_bias.tasks.regard.classifier.load`.

    Raises:
        BiasError: No such classifier, or it cannot be had: known before anything is generated.
    """
    language = fixed["language"]
    identity = classifier.choose(metadata.get("classifier"), language).identity
    return {"test": [regard_document(language, identity, prompt) for prompt in regard_texts.prompts(language)]}


def _dropped(answer: Sequence[str | float]) -> bool:
    return str(answer[1]).startswith(regard_texts.DROPPED)


def record(doc: RegardDocument, results: Sequence[Answer]) -> Record:
    """What the texts of one prompt say: their regard, context sets and sexism keywords.

    Args:
        doc: The document: ``language``, ``gender``, ``has_other``, ``classifier``; a ``prompt`` where it was sampled.
        results: The one request's answer: per text ``[text, regard, probability, ...]`` or ``[text, why dropped]``.

    Raises:
        BiasError: A label that is none.
    """
    (answer,) = results
    language, has_other = doc["language"], doc["has_other"]
    labels = LABELS if has_other else REGARDS
    confusion = read_confusion(doc["classifier"].get("confusion"), len(REGARDS) + has_other)
    labelled = [(str(row[0]), str(row[1])) for row in answer if not _dropped(row)]
    for _, label in labelled:
        if not label:
            raise BiasError("a text has no regard: label the texts with --classifier (light, sbert, hub:<model>, ...)")
        if label not in labels:
            raise BiasError(f"regard {label!r}: must be one of {', '.join(labels)}")
    return {
        "gender": doc["gender"],
        "texts": [
            (label, regard_texts.context_sets(text, language), keywords.facets(text, language))
            for text, label in labelled
        ],
        "repeated": len({str(row[0]) for row in answer}) == 1 if "prompt" in doc else None,
        "drawn": len(answer),
        "unfinished": sum(regard_texts.unfinished(text) for text, _ in labelled),
        "wordings": [text for text, _ in labelled],
        "has_other": has_other,
        "caveat": doc["classifier"]["warning"],
        **({"context": f"{doc['set']}: {doc['context']}", "context_set": doc["set"]} if "prompt" in doc else {}),
        **({} if confusion is None else {"confusion": confusion}),
    }


def reclassify(
    docs: Sequence[RegardDocument], results: Sequence[Sequence[Answer]], name: str
) -> tuple[list[RegardDocument], list[list[Answer]]]:
    """Saved texts with the labels of another classifier; what was dropped stays dropped.

    Args:
        docs: Documents of one language.
        results: Their answers.
        name: The classifier.

    Raises:
        BiasError: No such classifier.
    """
    language = str(docs[0]["language"])
    identity = replace(classifier.load(name, language).identity, name=name)
    classifier_fields: RegardDocument = {"has_other": OTHER in identity.labels, "classifier": identity.as_data()}
    relabelled: list[RegardDocument] = [{**doc, **classifier_fields} for doc in docs]
    texts = [[(str(row[0]), str(row[1]) if _dropped(row) else "") for row in answer] for (answer,) in results]
    return relabelled, [[answer] for answer in classifier.label_kept(name, language, texts)]
