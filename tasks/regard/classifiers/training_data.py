"""Labelled rows in numbers, on which a classifier is trained and tested: a corpus's vectors, or precomputed ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.regard import GENDERS, REGARDS
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import read_bytes
from lm_eval_bias.tasks.regard.classifiers import regard_corpus

Features = NDArray[Any]  # a row's vector, or its text for a model that makes its own features
Labels = NDArray[np.int64]
Encode = Callable[[Sequence[str]], Features]


@dataclass(frozen=True)
class TrainingData:
    """Features and labels of a corpus.

    Attributes:
        dev_x: Features to develop on, shape (n, d).
        dev_y: Their labels, 0 negative, 1 neutral, 2 positive.
        test_x: Features to test on; none of them is in ``dev_x``.
        test_y: Their labels.
        pairs: The same sentences about a woman and about a man, shape (m, d) each, and which development row each one
            is (-1 for none); ``None`` where there are none.
        name: For people.
        sha256: Of the data.
        left_out: Number of test rows that were left out because they are in ``dev_x`` too.
        second: Features and labels of a second, machine-written test set, where the corpus has one.
    """

    dev_x: Features
    dev_y: Labels
    test_x: Features
    test_y: Labels
    pairs: tuple[Features, Features, Labels] | None
    name: str
    sha256: str
    left_out: int
    second: tuple[Features, Labels] | None = None


def from_corpus(corpus: regard_corpus.Corpus, encode: Encode) -> TrainingData:
    """Encode a corpus; the sentences that tell no gender are encoded about a woman and about a man."""
    rows, dev = [*corpus.dev, *corpus.test], len(corpus.dev)
    free = [i for i, row in enumerate(rows) if row.gender == "N"]
    sides = [[regard_corpus.with_subject(rows[i].text, corpus.language, gender) for i in free] for gender in GENDERS]
    texts = [[row.text for row in rows], *sides, [row.text for row in corpus.second]]
    ends = np.cumsum([len(part) for part in texts])[:-1]
    x, women, men, second = np.split(encode([text for part in texts for text in part]), ends)
    places = np.array([i if i < dev else -1 for i in free], dtype=np.int64)
    y = regard_corpus.labels(rows)
    return TrainingData(
        x[:dev], y[:dev], x[dev:], y[dev:], (women, men, places), corpus.name, corpus.sha256, corpus.left_out,
        (second, regard_corpus.labels(corpus.second)) if corpus.second else None,
    )  # fmt: skip


def from_file(path: Path) -> TrainingData:
    """Precomputed vectors: an ``.npz`` with ``dev_X``, ``dev_Y``, ``test_X`` and ``test_Y``.

    Test rows whose vector is in ``dev_X`` too are left out. ``woman_X`` and ``man_X`` (the same sentences about
    either) and ``pair_dev`` (each one's row in ``dev_X``, -1 for none) are needed for the bias check.

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
        raise BiasError(f"{path}: no .npz of plain arrays, or damaged ({error})") from error
    needed = ("dev_X", "dev_Y", "test_X", "test_Y")
    if missing := [name for name in needed if name not in arrays]:
        raise BiasError(f"{path}: no array {missing[0]}; needed are {', '.join(needed)}")
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
    known = {row.tobytes() for row in dev_x}
    fresh = np.array([row.tobytes() not in known for row in test_x])
    return TrainingData(dev_x, dev_y, test_x[fresh], test_y[fresh], pairs, path.name,
                        hashlib.sha256(raw).hexdigest(), int((~fresh).sum()))  # fmt: skip


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
    return y.astype(np.int64)
