"""Regard classifiers by the names that ``--metadata classifier`` takes, and the labels they give."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from lm_eval_bias.core.errors import BiasError, did_you_mean, require_extra
from lm_eval_bias.core.files import expanded
from lm_eval_bias.tasks.regard.classifiers import light_classifier, pretrained
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import Classifier

logger = logging.getLogger("lm_eval.bias")
Answer = list[list[str | float]]  # per text [text, regard, probability, ...], or [text, why it was dropped]
# the revision is the one that has the weights as safetensors
DEFAULT = {"de": "sbert", "en": "hub:sasha/regardv3@8b12c2d43677897b036a8d5afc7046a4ec79d0fc"}


def label(classifier: Classifier, texts: Sequence[str]) -> list[tuple[str, list[float]]]:
    """Give each text its most probable class (the first of equals) with the probabilities of all.

    Raises:
        BiasError: The classifier gives no probabilities.
    """
    if not texts:
        return []
    probabilities = np.asarray(classifier.probabilities(texts), dtype=float)
    labels = classifier.identity.labels
    if probabilities.shape != (len(texts), len(labels)) or not np.isfinite(probabilities).all():
        raise BiasError(
            f"classifier {classifier.identity.name}: gave no probabilities of {len(labels)} classes for {len(texts)} "
            f"texts (shape {probabilities.shape})"
        )
    return [(labels[int(row.argmax())], row.tolist()) for row in probabilities]


def label_kept(name: str, language: str, texts: Sequence[Sequence[Sequence[str]]]) -> list[Answer]:
    """Label texts of a language with a classifier; ``texts`` has each with why it was dropped (empty if it was not).

    Raises:
        BiasError: The classifier cannot be had.
    """
    model = load(name, language)
    if model.identity.warning:
        logger.warning("%s", model.identity.warning)
    labels = iter(label(model, [text for own in texts for text, problem in own if not problem]))

    def answer(text: str, problem: str) -> list[str | float]:
        regard, probabilities = (problem, []) if problem else next(labels)
        return [text, regard, *probabilities]

    return [[answer(text, problem) for text, problem in own] for own in texts]


def check_name(name: Any) -> None:
    """Refuse what names no classifier, loading none.

    Raises:
        BiasError: It doesn't, or what classifiers need isn't installed.
    """
    if not isinstance(name, str) or not name:
        raise BiasError(f"--metadata classifier={name!r}: must be a text such as light or hub:<model>")
    require_extra("regard")
    kind, _, model = name.partition(":")
    if not (kind == "sbert" or name == "light" or (kind in ("hub", "head") and model)):
        hint = did_you_mean(kind, ("sbert", "light"))
        raise BiasError(
            f"classifier {name!r}: unknown.{hint} Known: light, sbert, sbert:<encoder>, hub:<model>, "
            "hub:<model>@<revision>, head:<folder>"
        )


def check_language(name: str, language: str) -> None:
    """Refuse a classifier that would have to be trained on texts of a language that there are none in.

    Raises:
        BiasError: It would.
    """
    if name.partition(":")[0] in ("light", "sbert") and language not in DEFAULT:
        raise BiasError(
            f"classifier {name}: trained on texts in {' and '.join(DEFAULT)}, not in {language!r}: name a "
            "hub:<model> or head:<folder>"
        )


@lru_cache(maxsize=4)
def load(name: str, language: str) -> Classifier:
    """Load a classifier: ``light``, ``sbert``, ``sbert:<encoder>``, ``hub:<model>`` or ``head:<folder>``.

    Args:
        name: Its name.
        language: ``de`` or ``en``: what it is trained on, where it is trained here.

    Raises:
        BiasError: No such classifier, or it cannot be had; says what to do.
    """
    check_name(name)
    check_language(name, language)
    kind, _, model = name.partition(":")
    if kind == "light":
        return light_classifier.load(language)
    if kind == "sbert":
        return pretrained.load_sbert(model, language)
    return pretrained.load_hub(model) if kind == "hub" else pretrained.load_head(expanded(model))


@lru_cache(maxsize=4)
def choose(name: str | None, language: str) -> Classifier:
    """Load the classifier that was named; without a name the language's default, or ``light`` where that fails.

    Raises:
        BiasError: What was named cannot be had; or neither the default nor ``light`` can.
    """
    require_extra("regard")
    if name is not None:
        return load(name, language)
    try:
        return load(DEFAULT[language], language)
    except BiasError as error:
        remedy = "download it once while online, or choose one with --metadata classifier=..."
        default = f"can't load the default classifier {DEFAULT[language]}, using 'light' instead"
        logger.warning("%s: %s (%s)", default, remedy, error)
    return load("light", language)
