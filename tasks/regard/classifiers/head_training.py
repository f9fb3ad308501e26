"""Training of a regard head on sentence vectors: where they come from, and the folder that the head is saved in."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import read_bytes
from lm_eval_bias.tasks.regard.classifiers import classifier_card, cross_validation, heads, regard_corpus
from lm_eval_bias.tasks.regard.classifiers.head_networks import RECIPES
from lm_eval_bias.tasks.regard.classifiers.training_data import Encode, Features, Labels, TrainingData, from_corpus


def from_file(path: Path) -> TrainingData:
    """Precomputed vectors: an ``.npz`` with ``dev_X``, ``dev_Y``, ``test_X`` and ``test_Y``.

    Rows with the same vector need the same label. Test rows whose vector is in ``dev_X`` too are left out. ``woman_X``
    and ``man_X`` (the same sentences about either) and ``pair_dev`` (each one's row in ``dev_X``, -1 for none) are
    needed for the bias check.

    Raises:
        BiasError: No such file, damaged, or arrays that don't fit.
    """
    try:
        raw = read_bytes(path)
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {error.strerror or error}") from error
    except Exception as error:  # noqa: BLE001 (whatever a damaged archive makes numpy and zipfile raise)
        raise BiasError(f"{path}: not an .npz file of plain arrays, or damaged ({error})") from error
    names = ("dev_X", "dev_Y", "test_X", "test_Y")
    if missing := [name for name in names if name not in arrays]:
        raise BiasError(f"{path}: no array {missing[0]}; needed are {', '.join(names)}")
    dev_x = _vectors(path, arrays, "dev_X", 0)
    length = dev_x.shape[1]
    test_x = _vectors(path, arrays, "test_X", length)
    dev_y, test_y = (_labels(path, arrays[f"{part}_Y"], x, part) for part, x in (("dev", dev_x), ("test", test_x)))
    pairs = None
    if "woman_X" in arrays and "man_X" in arrays:
        women, men = (_vectors(path, arrays, name, length) for name in ("woman_X", "man_X"))
        places = arrays.get("pair_dev", np.full(len(women), -1))
        fits = women.shape == men.shape and places.shape == women.shape[:1] and places.dtype.kind in "iu"
        if not fits or places.min() < -1 or places.max() >= len(dev_x):
            raise BiasError(
                f"{path}: woman_X {women.shape} and man_X {men.shape} must have one shape, and pair_dev each one's row "
                "in dev_X or -1"
            )
        pairs = women, men, places.astype(np.int64)
    dev_vectors = {row.tobytes() for row in dev_x}
    unseen = np.array([row.tobytes() not in dev_vectors for row in test_x])
    return TrainingData(dev_x, dev_y, test_x[unseen], test_y[unseen], pairs, path.name,
                        hashlib.sha256(raw).hexdigest(), int((~unseen).sum()))  # fmt: skip


def _vectors(path: Path, arrays: dict[str, NDArray[Any]], name: str, length: int) -> NDArray[np.float32]:
    """An array as vectors of that length (0: any)."""
    array = arrays[name]
    fits = array.ndim == 2 and array.dtype.kind in "fiu" and array.size and (not length or array.shape[1] == length)
    if not fits or not np.isfinite(array).all():
        raise BiasError(
            f"{path}: {name} (shape {array.shape}, {array.dtype}) must be rows of {length or 'equally many'} finite "
            "numbers"
        )
    return array.astype(np.float32)


def _labels(path: Path, y: NDArray[Any], x: Features, part: str) -> Labels:
    if y.shape != x.shape[:1] or y.dtype.kind not in "iu" or not np.isin(y, range(len(REGARDS))).all():
        raise BiasError(f"{path}: {part}_Y (shape {y.shape}) must hold 0, 1 or 2 for each row of {part}_X")
    labels: dict[bytes, int] = {}
    for number, (vector, label) in enumerate(zip(x, y.tolist(), strict=True)):
        if (other := labels.setdefault(vector.tobytes(), label)) != label:
            raise BiasError(f"{path}: {part}_Y row {number} is {label}, but {other} for the same vector above")
    return y.astype(np.int64)


@dataclass(frozen=True)
class Trained:
    """A head with what is known about it.

    Attributes:
        head: What the recipe keeps.
        card: Evaluation, data, recipe: what the model card says.
    """

    head: heads.Head
    card: classifier_card.Card

    @property
    def passed(self) -> bool | None:
        """Whether the bias check was passed; ``None`` where it could not be made."""
        return self.card["bias_check"]["passed"]


def train_on(data: TrainingData, seeds: int = 5, encoder: str = "", recipe: str = "paper") -> Trained:
    """Train and evaluate on ``seeds`` times five folds; keep what the recipe keeps of the first seed.

    Args:
        data: Vectors and labels.
        seeds: How often; the head is made of the first one's folds.
        encoder: Its name, so that the head can be used; empty if unknown.
        recipe: Key into :data:`RECIPES`.

    Raises:
        BiasError: Too few rows of a class, or no test row.
    """
    head, card = cross_validation.evaluate(RECIPES[recipe], data, seeds, encoder)
    info = {"encoder": encoder, "data": data.name, "data_sha256": data.sha256, "recipe": recipe,
            "confusion": card["confusion"]}  # fmt: skip
    if card["bias_check"]["passed"] is not True:
        info["warning"] = classifier_card.bias_sentence(card["bias_check"]).rstrip(".")
    return Trained(replace(head, info=info), card)


def train(
    rows: regard_corpus.Corpus, encode: Encode, seeds: int = 5, encoder: str = "", recipe: str = "paper"
) -> Trained:
    """:func:`train_on` a corpus's vectors; the head remembers some by which its encoder can be told again."""
    trained = train_on(from_corpus(rows, encode), seeds, encoder, recipe)
    trained.head.info["probe"] = heads.probe(encode)
    return trained


def save(folder: Path, trained: Trained) -> None:
    """Write head, card (JSON) and model card (Markdown) into a folder.

    Raises:
        BiasError: It cannot be written.
    """
    card = json.dumps(trained.card, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    heads.save(folder, trained.head, {"card.json": card, "README.md": classifier_card.markdown(trained.card)})
