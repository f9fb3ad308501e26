"""What every regard classifier has: an identity, and probabilities for texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS

LABELS = (*REGARDS, OTHER)


class IdentityData(TypedDict):
    """An :class:`Identity` as plain data for documents and JSON."""

    name: str
    detail: str
    labels: list[str]
    warning: str


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

    def as_data(self) -> IdentityData:
        """Plain data for documents and JSON."""
        return {"name": self.name, "detail": self.detail, "labels": list(self.labels), "warning": self.warning}


class Classifier(Protocol):
    """Texts to probabilities over negative, neutral, positive (and other, where the classifier has that class)."""

    @property
    def identity(self) -> Identity:
        """Which classifier this is."""

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Probabilities of shape (number of texts, number of labels); rows sum to 1."""
