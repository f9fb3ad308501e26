"""Classification heads on sentence vectors: small networks, kept as safetensors beside a description in JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import read_bytes, read_text, why, write_together, writing
from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import read_confusion

FORMAT = "lm-eval-bias regard head"
VERSION = 2  # 1 had other activations, too
CONFIG, WEIGHTS, CARD = "head.json", "head.safetensors", "README.md"
Layer = tuple[NDArray[np.float32], NDArray[np.float32]]
Encode = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True)
class Head:
    """Small networks whose probabilities are averaged, with a tanh before the last layer of each.

    Attributes:
        members: Per network its layers as (weight of shape (out, in), bias).
        info: What its description holds: encoder, data, data_sha256, recipe, confusion, warning, probe; sha256.
    """

    members: list[list[Layer]]
    info: dict[str, Any] = field(default_factory=dict)

    def probabilities(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Mean over the members of the softmax, shape (number of vectors, 3)."""
        from scipy.special import softmax

        total = np.zeros((len(vectors), len(REGARDS)))
        for *hidden, last in self.members:
            x = np.asarray(vectors, dtype=np.float64)
            for weight, bias in hidden:
                x = x @ weight.T.astype(np.float64) + bias.astype(np.float64)
            total += softmax(np.tanh(x) @ last[0].T.astype(np.float64) + last[1].astype(np.float64), axis=1)
        return total / len(self.members)


def probe(encode: Encode) -> list[list[float]]:
    """The beginnings of two sentences' vectors, by which an encoder can be told from another of the same name."""
    vectors = encode(["Die Person galt als freundlich.", "The person was known for stealing."])
    return [[round(float(x), 4) for x in row[:16]] for row in vectors]


def save(folder: Path, head: Head, card: str) -> None:
    """Write weights, description and model card; what was there before stays if the folder cannot be written.

    Raises:
        BiasError: It cannot be written.
    """
    from safetensors.numpy import save as to_bytes

    weights = to_bytes(
        {
            f"member{m}.layer{n}.{part}": np.ascontiguousarray(array, dtype=np.float32)
            for m, layers in enumerate(head.members)
            for n, layer in enumerate(layers)
            for part, array in zip(("weight", "bias"), layer, strict=True)
        }
    )
    config = {
        **head.info,
        "format": FORMAT,
        "version": VERSION,
        "labels": list(REGARDS),
        "members": len(head.members),
        "sha256": hashlib.sha256(weights).hexdigest(),
    }
    text = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    contents = {WEIGHTS: weights, CONFIG: text.encode(errors="backslashreplace"), CARD: card.encode()}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_together({folder / name: content for name, content in contents.items()})


def read(folder: Path) -> Head:
    """Read a saved head.

    Raises:
        BiasError: Missing, damaged, or of another format.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    where = f"regard head {folder}"
    try:
        config = json.loads(read_text(folder / CONFIG))
        raw = read_bytes(folder / WEIGHTS)
        if not isinstance(config, dict) or (config.get("format"), config.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"{CONFIG} is not a {FORMAT!r} of version {VERSION}")
        if hashlib.sha256(raw).hexdigest() != config.get("sha256"):
            raise ValueError(f"{WEIGHTS} is not the file that {CONFIG} describes (SHA-256)")
        read_confusion(config.get("confusion"), len(REGARDS))
        np.asarray(config["probe"], dtype=np.float64)
        tensors = from_bytes(raw)
        layers = range(len(tensors) // (2 * config["members"]))
        members = [
            [(tensors[f"member{m}.layer{n}.weight"], tensors[f"member{m}.layer{n}.bias"]) for n in layers]
            for m in range(config["members"])
        ]
        return Head(members, {**config, "encoder": str(config["encoder"])})
    except OSError as error:
        raise BiasError(f"{where}: {error.filename}: {why(error)}") from error
    except (SafetensorError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise BiasError(f"{where}: damaged ({error}): train it again") from error
