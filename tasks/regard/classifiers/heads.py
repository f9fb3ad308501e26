"""Classification heads on sentence vectors: small networks, kept as safetensors beside a description in JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import read_bytes, read_text, write_together, writing
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import read_confusion

FORMAT = "lm-eval-bias regard head"
VERSION = 1
CONFIG, WEIGHTS = "head.json", "head.safetensors"
_KEYS = ("format", "version", "labels", "members", "layers", "activations", "unit", "sha256")
_ACTIVATIONS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "none": lambda x: x,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
}
Layer = tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True)
class Head:
    """An ensemble of small networks whose probabilities are averaged.

    Attributes:
        members: Per network its layers as (weight of shape (out, in), bias).
        activations: What follows each layer but the last: ``none``, ``tanh`` or ``relu``.
        unit: Whether vectors are first scaled to length 1.
        info: What else its description holds (encoder, data, evaluation, warning).
    """

    members: list[list[Layer]]
    activations: list[str]
    unit: bool = False
    info: dict[str, Any] = field(default_factory=dict)

    def probabilities(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Mean over the members of the softmax, shape (number of vectors, 3)."""
        from scipy.special import softmax

        x = np.asarray(vectors, dtype=np.float64)
        if self.unit:
            x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
        total = np.zeros((len(x), len(REGARDS)))
        for layers in self.members:
            h = x
            for (weight, bias), activation in zip(layers, [*self.activations, "none"], strict=True):
                h = _ACTIVATIONS[activation](h @ weight.T.astype(np.float64) + bias.astype(np.float64))
            total += softmax(h, axis=1)
        return total / len(self.members)

    @property
    def dimension(self) -> int:
        """Length of the vectors that it takes."""
        return int(self.members[0][0][0].shape[1])


def save(folder: Path, head: Head, files: Mapping[str, str] | None = None) -> None:
    """Write weights and description; what was there before stays if the folder cannot be written.

    Args:
        folder: Is made if it isn't there.
        head: What to write.
        files: Texts of further files, by name.

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
        "format": FORMAT,
        "version": VERSION,
        "labels": list(REGARDS),
        "members": len(head.members),
        "layers": len(head.members[0]),
        "activations": head.activations,
        "unit": head.unit,
        "sha256": hashlib.sha256(weights).hexdigest(),
        **{key: value for key, value in head.info.items() if key not in _KEYS},
    }
    text = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    texts = {CONFIG: text.encode(errors="backslashreplace")}  # which JSON reads as it writes
    texts |= {name: content.encode() for name, content in (files or {}).items()}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_together({folder / name: content for name, content in {WEIGHTS: weights, **texts}.items()})


def _problem(config: object) -> str:
    """What is wrong with a description; empty if nothing."""
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        return f"is not a {FORMAT!r}"
    if config.get("version") != VERSION:
        return f"has version {config.get('version')!r}, this package reads {VERSION}"
    if config.get("labels") != list(REGARDS):
        return f"has the classes {config.get('labels')}, needed are {', '.join(REGARDS)}"
    members, layers, between = (config.get(key) for key in ("members", "layers", "activations"))
    if not (isinstance(members, int) and members > 0 and isinstance(layers, int) and layers > 0):
        return "says no number of members and layers"
    if not isinstance(between, list) or len(between) != layers - 1 or any(str(n) not in _ACTIVATIONS for n in between):
        return f"needs {layers - 1} activations out of {', '.join(_ACTIVATIONS)}"
    try:
        probe = np.asarray(config.get("probe") or [[]], dtype=np.float64)
        sound = probe.ndim == 2 and np.isfinite(probe).all()
    except (ValueError, TypeError, OverflowError):
        sound = False
    if not sound:
        return "has a probe that is not two beginnings of vectors"
    try:
        read_confusion(config.get("confusion"), len(REGARDS))
    except ValueError as error:
        return f"has a field confusion that is damaged ({error})"
    return ""


def _layers(tensors: Mapping[str, NDArray[np.float32]], config: Mapping[str, Any]) -> list[list[Layer]]:
    """The networks.

    Raises:
        ValueError: A tensor is missing, too many, no number or of a shape that doesn't fit its neighbours.
    """
    networks: list[list[Layer]] = []
    for m in range(config["members"]):
        layers: list[Layer] = []
        for n in range(config["layers"]):
            names = [f"member{m}.layer{n}.{part}" for part in ("weight", "bias")]
            if missing := [name for name in names if name not in tensors]:
                raise ValueError(f"{missing[0]} is missing")
            weight, bias = (tensors[name] for name in names)
            fits = weight.ndim == 2 and bias.shape == weight.shape[:1]
            if not fits or (layers and weight.shape[1] != layers[-1][0].shape[0]):
                raise ValueError(f"{names[0]} has shape {weight.shape}, its bias {bias.shape}")
            if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
                raise ValueError(f"{names[0]} holds values that are not numbers")
            layers.append((weight, bias))
        networks.append(layers)
        if layers[-1][0].shape[0] != len(REGARDS) or layers[0][0].shape[1] != networks[0][0][0].shape[1]:
            raise ValueError(f"member {m} doesn't give {len(REGARDS)} classes from vectors of one length")
    if len(tensors) != 2 * config["members"] * config["layers"]:
        raise ValueError(f"{len(tensors)} tensors for {config['members']} members of {config['layers']} layers")
    return networks


def read(folder: Path) -> Head:
    """A saved head.

    Raises:
        BiasError: Missing, damaged, of another format, or with other classes.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    try:
        config = json.loads(read_text(folder / CONFIG))
        json.dumps(config, allow_nan=False)
        raw = read_bytes(folder / WEIGHTS)
    except OSError as error:
        raise BiasError(f"regard head {folder}: {error.filename}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BiasError(f"regard head {folder / CONFIG}: damaged or not JSON ({error})") from error
    if problem := _problem(config):
        raise BiasError(f"regard head {folder / CONFIG}: {problem}")
    if hashlib.sha256(raw).hexdigest() != config.get("sha256"):
        raise BiasError(
            f"regard head {folder / WEIGHTS}: not the file that {CONFIG} describes (SHA-256): train it again"
        )
    try:
        members = _layers(from_bytes(raw), config)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BiasError(f"regard head {folder / WEIGHTS}: damaged ({error}): train it again") from error
    info = {key: value for key, value in config.items() if key not in _KEYS}
    return Head(members, list(config["activations"]), bool(config.get("unit")), {**info, "sha256": config["sha256"]})


_PROBE = ("Die Person galt als freundlich.", "The person was known for stealing.")


def probe(encode: Callable[[Sequence[str]], NDArray[np.float32]]) -> list[list[float]]:
    """The beginnings of two sentences' vectors, by which an encoder can be told from another of the same name."""
    return [[round(float(x), 4) for x in row[:16]] for row in encode(list(_PROBE))]
