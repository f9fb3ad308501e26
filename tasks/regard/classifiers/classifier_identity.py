"""What every regard classifier has: an identity, and probabilities for texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.misclassification import Counts
from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS, Confusion

LABELS = (*REGARDS, OTHER)


class _Named(TypedDict):
    name: str
    detail: str
    labels: list[str]
    warning: str


class IdentityData(_Named, total=False):
    """An :class:`Identity` as plain data for documents and JSON; ``confusion`` is absent where it isn't known."""

    confusion: Confusion


@dataclass(frozen=True)
class Identity:
    """Which classifier labelled the texts; goes with every text into the sample log.

    Attributes:
        name: As ``--metadata classifier`` takes it.
        detail: Weights, encoder, data and their hashes, for people.
        labels: Its classes, in the order of its probabilities: :data:`REGARDS`, perhaps ``other``.
        warning: What every output has to say about it; empty if nothing.
        confusion: Its confusion counts on held-out texts, which correct shares for its errors.
    """

    name: str
    detail: str
    labels: tuple[str, ...]
    warning: str = ""
    confusion: Confusion | None = None

    def as_data(self) -> IdentityData:
        """Plain data for documents and JSON."""
        named: IdentityData = {
            "name": self.name, "detail": self.detail, "labels": list(self.labels), "warning": self.warning
        }  # fmt: skip
        return named if self.confusion is None else {**named, "confusion": self.confusion}


def confusion_counts(
    source: str, true: Sequence[int], given: Sequence[int], classes: int, genders: Sequence[str] | None = None
) -> Confusion:
    """How often each class was given to texts of each true class.

    Args:
        source: Which texts, for people.
        true: Numbers of their classes.
        given: Numbers of the classes that the classifier gave them.
        classes: How many classes there are.
        genders: Whom each text is about; ``None`` where that isn't known or makes no difference.
    """
    keys = list(genders) if genders is not None else ["all"] * len(true)
    counts = {key: np.zeros((classes, classes), dtype=int) for key in sorted(set(keys))}
    for key, row, column in zip(keys, true, given, strict=True):
        counts[key][row, column] += 1
    return {"source": source, "counts": {key: table.tolist() for key, table in counts.items()}}


def read_confusion(raw: object, classes: int) -> Confusion | None:
    """Confusion counts as a file holds them, ``None`` where it holds none.

    Raises:
        ValueError: They are no counts of that many classes.
    """
    if raw is None:
        return None
    counts = raw.get("counts") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or not isinstance(counts, dict) or not counts:
        raise ValueError("no confusion counts")
    tables: dict[str, Counts] = {}
    for key, given in counts.items():
        table = np.asarray(given)
        if table.shape != (classes, classes) or table.dtype.kind not in "iu" or table.min() < 0:
            raise ValueError(f"confusion counts must be {classes} rows of {classes} whole numbers")
        tables[str(key)] = table.tolist()
    return {"source": str(raw.get("source") or ""), "counts": tables}


class Classifier(Protocol):
    """Texts to probabilities over negative, neutral, positive (and other, where the classifier has that class)."""

    @property
    def identity(self) -> Identity:
        """Which classifier this is."""

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Probabilities of shape (number of texts, number of labels); rows sum to 1."""
