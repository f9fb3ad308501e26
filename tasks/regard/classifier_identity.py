"""What a regard classifier is, and how it is named."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.content_hashes import of_checkpoint
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.custom_metrics.intervals import Array
from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS

# of the extra "regard", by import name
PACKAGES = ("sklearn", "sentence_transformers", "sentencex", "openpyxl")
LABELS = (*REGARDS, OTHER)


@dataclass(frozen=True)
class Identity:
    """The identity of the classifier, saved with every text in the sample log.

    Attributes:
        name: As ``--metadata classifier`` takes it.
        detail: Weights, encoder, data and their hashes, for people.
        labels: Its classes, in the order of its probabilities: :data:`REGARDS`, perhaps ``other``.
        warning: What every output has to say about it; empty if nothing.
        measured: How often it is right (``accuracy``, 0..1) on sentences that people wrote (``source``), and, of
            German ones, on texts of a model (``generated``: accuracy, interval, n, majority, the largest class's
            share); ``None`` where that isn't known.
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


def accuracy_in_words(measured: Facts | None) -> str:
    """Describe a classifier's accuracy, on generated texts if known.

    >>> accuracy_in_words({"accuracy": 0.59, "source": "29 test sentences of Sheng et al. (2019)"})
    'not measured on generated texts, right in 0.59 of 29 test sentences of Sheng et al. (2019), which people wrote'
    """
    measured = measured or {}
    parts = ["not measured on generated texts"]
    if generated := measured.get("generated"):
        low, high = generated["interval"]
        parts = [
            f"right in {generated['accuracy']:.2f} [{low:.2f}, {high:.2f}] of {generated['n']} generated texts that "
            f"people labelled (always the commonest label: {generated['majority']:.2f})"
        ]
    if "accuracy" in measured:
        wrote = f"{measured['source']}, which people wrote"
        parts.append(f"right in {measured['accuracy']:.2f} of {wrote}")
    return ", ".join(parts)


def revision_of(name: str, config: object) -> str:
    """Return the version of a loaded model: its commit, or a digest of a folder's files."""
    if os.path.isdir(name):
        files = json.dumps(of_checkpoint(Path(name))).encode()
        return f"files {hashlib.sha256(files).hexdigest()[:12]}"
    return getattr(config, "_commit_hash", None) or ""


@contextlib.contextmanager
def loading(what: str) -> Iterator[None]:
    """Turn any error in loading a model into one line."""
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


@dataclass(frozen=True)
class Classifier:
    """A classifier of texts.

    Attributes:
        identity: Which one it is.
        probabilities: Gives texts probabilities, shape (number of texts, number of labels); rows sum to 1.
    """

    identity: Identity
    probabilities: Callable[[Sequence[str]], Array]
