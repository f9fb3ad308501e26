"""The identity of a regard classifier, and the protocol that every classifier follows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.custom_metrics.intervals import Array
from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS

LABELS = (*REGARDS, OTHER)


@dataclass(frozen=True)
class Identity:
    """The classifier that labelled the texts; goes with every text into the sample log.

    Attributes:
        name: As ``--metadata classifier`` takes it.
        detail: Weights, encoder, data and their hashes, for people.
        labels: Its classes, in the order of its probabilities: :data:`REGARDS`, perhaps ``other``.
        warning: What every output has to say about it; empty if nothing.
        measured: How often it is right (``accuracy``, 0..1), and on which texts that people labelled (``source``);
            ``None`` where that isn't known.
    """

    name: str
    detail: str
    labels: tuple[str, ...]
    warning: str = ""
    measured: Facts | None = None

    def as_data(self) -> Data:
        """Return plain data for documents and JSON."""
        data = {**asdict(self), "labels": list(self.labels)}
        if self.measured is None:
            del data["measured"]
        return data


@contextlib.contextmanager
def loading(what: str) -> Iterator[None]:
    """Say in one line that a model cannot be loaded, whatever its library raises."""
    from safetensors import SafetensorError

    try:
        yield
    except BiasError:
        raise
    except (
        OSError,
        ValueError,
        LookupError,
        ImportError,
        RuntimeError,
        TypeError,
        SafetensorError,
    ) as error:
        raise BiasError(f"{what} cannot be loaded: {one_line(error)[:300]}") from error


class Classifier(Protocol):
    """Anything that gives texts probabilities of negative, neutral, positive (and perhaps other)."""

    @property
    def identity(self) -> Identity:
        """Which classifier this is."""

    def probabilities(self, texts: Sequence[str]) -> Array:
        """Return probabilities of shape (number of texts, number of labels); rows sum to 1."""
