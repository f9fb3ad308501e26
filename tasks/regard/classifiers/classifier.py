"""The interface of a regard classifier, and how ``--metadata classifier`` names one."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS
from lm_eval_bias.errors import BiasError, did_you_mean, require_extra
from lm_eval_bias.files import expanded

logger = logging.getLogger("lm_eval.bias")
KINDS = ("sbert", "hub", "light", "head")
LABELS = (*REGARDS, OTHER)
# the revision is the one that has the weights as safetensors
DEFAULT = {"de": "sbert", "en": "hub:sasha/regardv3@8b12c2d43677897b036a8d5afc7046a4ec79d0fc"}


@dataclass(frozen=True)
class Identity:
    """Which classifier labelled the texts; goes with every text into the sample log.

    Attributes:
        name: As ``--metadata classifier`` takes it.
        detail: Weights, encoder, data and their hashes, for people.
        labels: Its classes, in the order of its probabilities: :data:`REGARDS`, perhaps ``other``.
        warning: What every output has to say about it; empty if nothing.
    """

    name: str
    detail: str
    labels: tuple[str, ...]
    warning: str = ""

    def as_data(self) -> dict[str, Any]:
        """Plain data for documents and JSON."""
        return {**asdict(self), "labels": list(self.labels)}


class Classifier(Protocol):
    """Texts to probabilities over negative, neutral, positive (and other, where the classifier has that class)."""

    @property
    def identity(self) -> Identity:
        """Which classifier this is."""

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Probabilities of shape (number of texts, number of labels); rows sum to 1."""


def label(classifier: Classifier, texts: Sequence[str]) -> list[tuple[str, list[float]]]:
    """Each text's most probable class (the first of equals) with the probabilities of all.

    Raises:
        BiasError: The classifier gives no probabilities.
    """
    if not texts:
        return []
    found = np.asarray(classifier.probabilities(texts), dtype=float)
    labels = classifier.identity.labels
    if found.shape != (len(texts), len(labels)) or not np.isfinite(found).all():
        raise BiasError(
            f"classifier {classifier.identity.name}: gave no probabilities of {len(labels)} classes for {len(texts)} "
            f"texts (shape {found.shape})"
        )
    return [(labels[int(row.argmax())], row.tolist()) for row in found]


@lru_cache(maxsize=4)
def load(name: str, language: str) -> Classifier:
    """The classifier of that name, loaded and ready.

    Args:
        name: ``light``, ``sbert`` (or ``sbert:<encoder>``), ``hub:<model>``, ``head:<folder>`` or such a folder.
        language: ``de`` or ``en``: what it is trained on, where it is trained here.

    Raises:
        BiasError: No such classifier, or it cannot be had; says what to do.
    """
    require_extra("regard")
    kind, _, rest = name.partition(":")
    if kind == "light" and not rest:
        from lm_eval_bias.tasks.regard.classifiers import light_classifier

        return light_classifier.load(language)
    if kind == "sbert":
        from lm_eval_bias.tasks.regard.classifiers import sbert_classifier

        return sbert_classifier.load(rest, language)
    if kind == "hub" and rest:
        from lm_eval_bias.tasks.regard.classifiers import hub_classifier

        return hub_classifier.load(rest)
    if kind == "head" and rest or name and os.path.isdir(expanded(name)):
        from lm_eval_bias.tasks.regard.classifiers import heads

        return heads.load(expanded(rest if kind == "head" and rest else name))
    hint = did_you_mean(kind, KINDS)
    raise BiasError(
        f"classifier {name!r}: unknown.{hint} Known: light, sbert, sbert:<encoder>, hub:<model>, "
        "hub:<model>@<revision>, head:<folder>"
    )


@lru_cache(maxsize=4)
def choose(name: str | None, language: str) -> Classifier:
    """The classifier that was named; without a name the language's default, or ``light`` where that cannot be had.

    Raises:
        BiasError: What was named cannot be had; or neither the default nor ``light`` can.
    """
    require_extra("regard")
    if name is not None:
        return load(name, language)
    default = DEFAULT[language]
    try:
        return load(default, language)
    except BiasError as error:
        logger.warning("the default classifier %s cannot be had, 'light' takes its place (%s)", default, error)
    return load("light", language)
