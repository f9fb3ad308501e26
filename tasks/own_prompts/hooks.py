"""Documents and records of a user's own prompts."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from lm_eval_bias.custom_metrics.own_prompts import Comparison, PromptRecord
from lm_eval_bias.custom_metrics.regard import FACETS, OTHER, REGARDS
from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.own_prompts import keyword_file, prompt_file
from lm_eval_bias.tasks.regard import regard_texts
from lm_eval_bias.tasks.regard.classifiers import classifier
from lm_eval_bias.tasks.regard.classifiers.classifier import Answer
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import IdentityData

logger = logging.getLogger("lm_eval.bias")
EXAMPLE = """--metadata '{"prompts": "my.csv", "language": "en"}'"""
NO_CLASSIFIER: IdentityData = {"name": "", "detail": "", "labels": [], "warning": ""}


class OwnDocument(TypedDict):
    """A prompt, with all that its texts are judged by."""

    benchmark: str
    language: str
    prompt: str
    group: str
    cluster: str
    comparison: Comparison
    keywords: str | keyword_file.Entries  # a language that has some, or those of a file; empty for none
    has_other: bool
    classifier: IdentityData  # without a name where there is none for the language
    unlabelled: str  # why there is none; empty where there is one


def _language(metadata: Mapping[str, Any]) -> str:
    language = metadata.get("language")
    if language in (None, ""):  # as in the YAML
        raise BiasError(f"own_prompts: name the language of the prompts: {EXAMPLE}")
    if not isinstance(language, str) or not re.fullmatch("[a-z]{2,3}", language):
        raise BiasError(f"--metadata language={language!r}: must be a code such as en, de, fr")
    return language


def _keywords(metadata: Mapping[str, Any], language: str) -> tuple[str | keyword_file.Entries, list[str]]:
    """Keywords and their facets: those of a file, or of the language."""
    if metadata.get("keywords") is not None:
        entries = keyword_file.read(metadata["keywords"])
        return entries, list(entries)
    return (language, list(FACETS)) if language in regard_texts.LANGUAGES else ("", [])


def _no_classifier(language: str) -> str:
    known = " and ".join(classifier.DEFAULT)
    return f"no regard: classifiers are for {known}, name one for {language!r} with --metadata classifier=hub:<model>"


def _documents(metadata: Mapping[str, Any]) -> list[OwnDocument]:
    """The documents, but for their classifier."""
    if metadata.get("prompts") is None:
        raise BiasError(f"own_prompts: name a file of prompts: {EXAMPLE}")
    language = _language(metadata)
    if metadata.get("classifier") is not None:
        classifier.check_name(metadata["classifier"])
        classifier.check_language(metadata["classifier"], language)
    keywords, facets = _keywords(metadata, language)
    prompts = prompt_file.read(metadata["prompts"])
    remarks = prompt_file.remarks(prompts)
    if not facets:
        remarks.append(f"no keywords: there are none for {language!r}, name a file with --metadata keywords")
    comparison: Comparison = {
        "groups": list(dict.fromkeys(prompt.group for prompt in prompts)),
        "reference": prompt_file.reference(prompts, metadata.get("reference")),
        "facets": facets,
        "clusters": len(prompt_file.by_cluster(prompts)),
        "remarks": remarks,
    }
    return [
        {
            "benchmark": "own_prompts",
            "language": language,
            "prompt": prompt.text,
            "group": prompt.group,
            "cluster": prompt.cluster,
            "comparison": comparison,
            "keywords": keywords,
            "has_other": False,
            "classifier": NO_CLASSIFIER,
            "unlabelled": _no_classifier(language),
        }
        for prompt in prompts
    ]


def check_options(metadata: Mapping[str, Any]) -> None:
    """Refuse what :func:`documents` would, but for a classifier that can't be had."""
    _documents(metadata)


def documents(**metadata: Any) -> list[OwnDocument]:
    """The prompts of a file, in its order, each with the classifier that will label its texts.

    Args:
        metadata: ``prompts`` and ``language``; ``reference``, ``keywords``, ``classifier`` where they are given.

    Raises:
        BiasError: A bad file or option, or a classifier that cannot be had: known before anything is generated.
    """
    docs, name = _documents(metadata), metadata.get("classifier")
    language, remarks = docs[0]["language"], docs[0]["comparison"]["remarks"]
    is_labelled = name is not None or language in classifier.DEFAULT
    for remark in remarks if is_labelled else [*remarks, _no_classifier(language)]:
        logger.warning("own_prompts: %s", remark)
    if not is_labelled:
        return docs
    identity = classifier.choose(name, language).identity
    labelled = {"has_other": OTHER in identity.labels, "classifier": identity.as_data(), "unlabelled": ""}
    return [cast(OwnDocument, {**doc, **labelled}) for doc in docs]


def dataset(**metadata: Any) -> dict[str, list[OwnDocument]]:
    """The documents as the harness wants them, by split."""
    return {"test": documents(**metadata)}


def record(doc: OwnDocument, results: Sequence[Answer]) -> PromptRecord:
    """What the texts of one prompt say: their regard, keywords and length.

    Args:
        doc: The document.
        results: The one request's answer: per text ``[text, regard, probability, ...]`` or ``[text, why dropped]``; the
            regard is empty where there is no classifier.

    Raises:
        BiasError: A label that is none.
    """
    (answer,) = results
    name, used = doc["classifier"]["name"], doc["classifier"]
    labels = (*REGARDS, OTHER) if doc["has_other"] else REGARDS
    kept = [(str(row[0]), str(row[1])) for row in answer if not str(row[1]).startswith(regard_texts.DROPPED)]
    if unknown := next((label for _, label in kept if label not in (labels if name else ("",))), None):
        raise BiasError(f"regard {unknown!r}: must be one of {', '.join(labels)}")
    if name and any(not label for _, label in kept):
        raise BiasError("a text has no regard: label the texts with --classifier (light, sbert, hub:<model>, ...)")
    return {
        "group": doc["group"],
        "cluster": doc["cluster"],
        "comparison": doc["comparison"],
        "texts": [
            (label, keyword_file.facets(text, doc["keywords"]), len(text[len(doc["prompt"]) :].split()))
            for text, label in kept
        ],
        "drawn": len(answer),
        "unfinished": sum(regard_texts.unfinished(text) for text, _ in kept),
        "wordings": [text for text, _ in kept],
        "has_other": doc["has_other"],
        "caveat": str(used["warning"]),
        "unlabelled": "" if name else _no_classifier(doc["language"]),
    }
