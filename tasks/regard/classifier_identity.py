"""The identity of a regard classifier, and the protocol that every classifier follows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS, Confusion

LABELS = (*REGARDS, OTHER)


@dataclass(frozen=True)
class Identity:
    """The classifier that labelled the texts; goes with every text into the sample log.

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

    def as_data(self) -> dict[str, Any]:
        """Plain data for documents and JSON."""
        data: dict[str, Any] = {
            "name": self.name, "detail": self.detail, "labels": list(self.labels), "warning": self.warning
        }  # fmt: skip
        return data if self.confusion is None else {**data, "confusion": self.confusion}


def confusion_counts(
    source: str, true: Sequence[int], given: Sequence[int], classes: int, genders: Sequence[str] | None = None
) -> Confusion:
    """Count how often each class was given to texts of each true class.

    Args:
        source: Which texts, for people.
        true: Numbers of their classes.
        given: Numbers of the classes that the classifier gave them.
        classes: How many classes there are.
        genders: Whom each text is about; ``None`` where that isn't known or makes no difference.
    """
    keys = ["all"] * len(true) if genders is None else genders
    counts = {key: np.zeros((classes, classes), dtype=int) for key in sorted(set(keys))}
    for key, row, column in zip(keys, true, given, strict=True):
        counts[key][row, column] += 1
    return {"source": source, "counts": {key: table.tolist() for key, table in counts.items()}}


@contextlib.contextmanager
def loading(what: str) -> Iterator[None]:
    """Say in one line that a model cannot be loaded, whatever its library raises."""
    from safetensors import SafetensorError

    try:
        yield
    except BiasError:
        raise
    except (OSError, ValueError, LookupError, ImportError, RuntimeError, TypeError, SafetensorError) as error:
        raise BiasError(f"{what} cannot be loaded: {one_line(error)[:300]}") from error


class Classifier(Protocol):
    """Texts to probabilities over negative, neutral, positive (and other, where the classifier has that class)."""

    @property
    def identity(self) -> Identity:
        """Which classifier this is."""

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Probabilities of shape (number of texts, number of labels); rows sum to 1."""
