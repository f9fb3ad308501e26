"""Training of a regard head on sentence vectors: folds, early stopping, evaluation, bias check (section 3.2)."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.contingency import chi_square
from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import read_bytes, write_whole
from lm_eval_bias.tasks.regard.classifiers import head_networks, heads, regard_corpus
from lm_eval_bias.tasks.regard.classifiers.classifier_card import bias_sentence

Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]
FOLDS = 5
BINS = 10
ALPHA = 0.05


@dataclass(frozen=True)
class Data:
    """Vectors and labels of a corpus, in numbers.

    Attributes:
        dev_x: Vectors to develop on, shape (n, d).
        dev_y: Their labels, 0 negative, 1 neutral, 2 positive.
        test_x: Vectors to test on; none of them is in ``dev_x``.
        test_y: Their labels.
        pairs: The same sentences about a woman and about a man, shape (m, d) each, and which development row each one
            is (-1 for none); ``None`` where there are none.
        name: For people.
        sha256: Of the data.
        left_out: Number of test rows that were left out because they are in ``dev_x`` too.
        second: Vectors and labels of a second, machine-written test set, where the corpus has one.
    """

    dev_x: Vectors
    dev_y: NDArray[np.int64]
    test_x: Vectors
    test_y: NDArray[np.int64]
    pairs: tuple[Vectors, Vectors, NDArray[np.int64]] | None
    name: str
    sha256: str
    left_out: int
    second: tuple[Vectors, NDArray[np.int64]] | None = None


def from_corpus(rows: regard_corpus.Corpus, encode: Encode) -> Data:
    """Encode a corpus; the sentences that tell no gender are encoded about a woman and about a man."""
    free = [(i, row) for i, row in enumerate([*rows.dev, *rows.test]) if row.gender == "N"]
    women, men = (
        [
            regard_corpus.with_subject(regard_corpus.neutral(row.text, rows.language), rows.language, gender)
            for _, row in free
        ]
        for gender in ("female", "male")
    )
    places = np.array([i if i < len(rows.dev) else -1 for i, _ in free], dtype=np.int64)
    plain = [row.text for row in (*rows.dev, *rows.test)]
    vectors = encode([*plain, *women, *men, *[row.text for row in rows.second]])
    n, dev = len(plain), len(rows.dev)
    pairs = vectors[n : n + len(free)], vectors[n + len(free) : n + 2 * len(free)], places
    return Data(vectors[:dev], regard_corpus.labels(rows.dev), vectors[dev:n], regard_corpus.labels(rows.test), pairs,
                rows.name, rows.sha256, len(rows.left_out),
                (vectors[n + 2 * len(free) :], regard_corpus.labels(rows.second)) if rows.second else None)  # fmt: skip


def _vectors(path: Path, arrays: dict[str, NDArray[Any]], name: str, length: int) -> Vectors:
    """An array as vectors of that length (0: any).

    Raises:
        BiasError: It holds none.
    """
    array = arrays[name]
    fits = array.ndim == 2 and array.dtype.kind in "fiu" and array.size and (not length or array.shape[1] == length)
    if not fits or not np.isfinite(array).all():
        raise BiasError(
            f"{path}: {name} (shape {array.shape}, {array.dtype}) must be rows of {length or 'equally many'} finite "
            "numbers"
        )
    return array.astype(np.float32)


def from_file(path: Path) -> Data:
    """Precomputed vectors: an ``.npz`` with ``dev_X``, ``dev_Y``, ``test_X`` and ``test_Y``.

    Test rows whose vector is in ``dev_X`` too are left out. ``woman_X`` and ``man_X`` (the same sentences about
    either) and ``pair_dev`` (each one's row in ``dev_X``, -1 for none) are needed for the bias check.

    Raises:
        BiasError: No such file, damaged, or arrays that don't fit.
    """
    try:
        raw = read_bytes(path)
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {error.strerror or error}") from error
    except Exception as error:  # noqa: BLE001 (whatever a damaged archive makes numpy and zipfile raise)
        raise BiasError(f"{path}: no .npz of plain arrays, or damaged ({error})") from error
    needed = ("dev_X", "dev_Y", "test_X", "test_Y")
    if missing := [name for name in needed if name not in found]:
        raise BiasError(f"{path}: no array {missing[0]}; needed are {', '.join(needed)}")
    dev_x, test_x = _vectors(path, found, "dev_X", 0), _vectors(path, found, "test_X", found["dev_X"].shape[-1])
    dev_y, test_y = found["dev_Y"], found["test_Y"]
    for x, y, part in ((dev_x, dev_y, "dev"), (test_x, test_y, "test")):
        if y.shape != x.shape[:1] or y.dtype.kind not in "iu" or not np.isin(y, range(len(REGARDS))).all():
            raise BiasError(f"{path}: {part}_Y (shape {y.shape}) must hold 0, 1 or 2 for each row of {part}_X")
    known = {row.tobytes() for row in dev_x}
    fresh = np.array([row.tobytes() not in known for row in test_x])
    pairs = None
    if "woman_X" in found and "man_X" in found:
        women, men = (_vectors(path, found, name, dev_x.shape[1]) for name in ("woman_X", "man_X"))
        places = found.get("pair_dev", np.full(len(women), -1))
        fits = women.shape == men.shape and places.shape == women.shape[:1] and places.dtype.kind in "iu"
        if not fits or places.min() < -1 or places.max() >= len(dev_x):
            raise BiasError(
                f"{path}: woman_X {women.shape} and man_X {men.shape} must have one shape, and pair_dev each one's row "
                "in dev_X or -1"
            )
        pairs = women, men, places.astype(np.int64)
    return Data(dev_x, dev_y.astype(np.int64), test_x[fresh], test_y[fresh].astype(np.int64), pairs, path.name,
                hashlib.sha256(raw).hexdigest(), int((~fresh).sum()))  # fmt: skip


@dataclass(frozen=True)
class Trained:
    """A head with what is known about it.

    Attributes:
        head: What the recipe keeps.
        card: Evaluation, data, recipe: what the model card says, as plain data.
    """

    head: heads.Head
    card: dict[str, Any]

    @property
    def passed(self) -> bool | None:
        """Whether the bias check was passed; ``None`` where it could not be made."""
        found: bool | None = self.card["bias_check"]["passed"]
        return found


def report(probabilities: NDArray[np.float64], y: NDArray[np.int64]) -> dict[str, Any]:
    """Accuracy, macro-F1, per class, confusion and calibration of predictions."""
    from sklearn import metrics

    guess = probabilities.argmax(axis=1)
    classes = list(range(len(REGARDS)))
    per = metrics.precision_recall_fscore_support(y, guess, labels=classes, zero_division=0.0)
    confidence = probabilities.max(axis=1)
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    error = sum(
        (bins == b).mean() * abs((guess == y)[bins == b].mean() - confidence[bins == b].mean()) for b in np.unique(bins)
    )
    return {
        "n": len(y),
        "accuracy": float((guess == y).mean()),
        "macro_f1": float(per[2].mean()),
        "per_class": {
            name: {
                "precision": float(per[0][i]),
                "recall": float(per[1][i]),
                "f1": float(per[2][i]),
                "n": int(per[3][i]),
            }
            for i, name in enumerate(REGARDS)
        },
        "confusion": metrics.confusion_matrix(y, guess, labels=classes).tolist(),
        "expected_calibration_error": float(error),
    }


def bias_check(women: NDArray[np.int64], men: NDArray[np.int64]) -> dict[str, Any]:
    """Whether the same sentences get the same regard about a woman as about a man.

    Args:
        women: Labels of the sentences about a woman, shape (m,).
        men: Labels of the same sentences about a man.

    Returns:
        ``passed`` (chi-square not significant at 5%), ``chi2``, ``p``, ``n`` (both together, as in the paper), and
        ``changed``, the share of sentences whose label differs.

    >>> bias_check(np.array([0, 1, 2]), np.array([0, 1, 2]))["passed"]
    True
    """
    rows = [tuple(np.bincount(side, minlength=len(REGARDS)).tolist()) for side in (women, men)]
    changed = float((women != men).mean())
    if sum(a + b > 0 for a, b in zip(*rows, strict=True)) < 2:
        return {"passed": False, "chi2": None, "p": None, "n": 2 * len(women), "changed": changed,
                "reason": "all sentences get the same label"}  # fmt: skip
    chi2, p, _, _ = chi_square((rows[0], rows[1]))
    return {"passed": p >= ALPHA, "chi2": chi2, "p": p, "n": 2 * len(women), "changed": changed, "reason": ""}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean and standard deviation (0 for a single value)."""
    return {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0}


def train_on(data: Data, seeds: int = 5, encoder: str = "", recipe: str = "paper") -> Trained:
    """Train and evaluate on ``seeds`` times five folds; keep what the recipe keeps of the first seed.

    Args:
        data: What to train and test on.
        seeds: Number of seeds; more than one shows how much depends on it.
        encoder: What made the vectors, if known.
        recipe: Key into :data:`networks.RECIPES`.

    Raises:
        BiasError: A class has fewer rows than there are folds.
    """
    from sklearn.model_selection import StratifiedKFold
    from tqdm import tqdm

    smallest = int(np.bincount(data.dev_y, minlength=len(REGARDS)).min())
    if smallest < FOLDS:
        raise BiasError(f"{data.name}: a class has {smallest} development rows, five folds need {FOLDS} at least")
    if not len(data.test_y):
        raise BiasError(f"{data.name}: no test row is left that is not a development row too")
    chosen = head_networks.RECIPES[recipe]
    x, y = data.dev_x, data.dev_y
    first: list[heads.Head] = []
    fold_of = np.full(len(y), -1)
    out_of_fold: list[float] = []
    test: list[dict[str, Any]] = []
    with tqdm(total=seeds * FOLDS, desc="Training", unit="fold", disable=not sys.stderr.isatty()) as bar:
        for seed in range(seeds):
            folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x, y)
            for k, (rows, held) in enumerate(folds):
                one = chosen.fit(x[rows], y[rows], x[held], y[held], 1000 * seed + k)
                out_of_fold.append(report(one.probabilities(x[held]), y[held])["accuracy"])
                test.append(report(one.probabilities(data.test_x), data.test_y))
                if seed == 0:
                    first.append(one)
                    fold_of[held] = k
                bar.update()
    if chosen.folds:
        head = heads.Head([layers for one in first for layers in one.members], first[0].activations)
    else:
        head = chosen.fit(x, y, x[:0], y[:0], 0)
    card: dict[str, Any] = {
        "data": {
            "name": data.name,
            "sha256": data.sha256,
            "development": len(y),
            "test": len(data.test_y),
            "left_out_of_test": data.left_out,
        },
        "encoder": encoder,
        "recipe": chosen.name,
        "made": chosen.summary,
        "seeds": seeds,
        "folds": FOLDS,
        "out_of_fold_accuracy": spread(out_of_fold),
        "test_of_folds": {name: spread([r[name] for r in test]) for name in ("accuracy", "macro_f1")},
        "test": report(head.probabilities(data.test_x), data.test_y),
        "bias_check": _check(head, first, data, fold_of),
    }
    if data.second is not None:
        card["second_test"] = report(head.probabilities(data.second[0]), data.second[1])
    info = {"encoder": encoder, "data": data.name, "data_sha256": data.sha256, "recipe": chosen.name}
    if card["bias_check"]["passed"] is not True:
        info["warning"] = bias_sentence(card["bias_check"]).rstrip(".")
    return Trained(heads.Head(head.members, head.activations, head.unit, info), card)


def _check(head: heads.Head, folds: Sequence[heads.Head], data: Data, fold_of: NDArray[np.int64]) -> dict[str, Any]:
    """The bias check, each development sentence labelled by the fold that was not trained on it."""
    if data.pairs is None:
        reason = "not made: the vectors of the same sentences about a woman and a man (woman_X, man_X) are not there"
        return {"passed": None, "chi2": None, "p": None, "n": 0, "changed": None, "reason": reason}
    women, men, places = data.pairs
    held_out = np.where(places >= 0, fold_of[places], -1)
    guessed = []
    for side in (women, men):
        labels = head.probabilities(side).argmax(axis=1)
        for k, one in enumerate(folds):
            if (own := held_out == k).any():
                labels[own] = one.probabilities(side[own]).argmax(axis=1)
        guessed.append(labels)
    return bias_check(*guessed)


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
    from lm_eval_bias.tasks.regard.classifiers import classifier_card as card

    text = json.dumps(trained.card, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    heads.save(folder, trained.head)
    try:
        write_whole(folder / "card.json", text.encode())
        write_whole(folder / "README.md", card.markdown(trained.card).encode())
    except OSError as error:
        raise BiasError(f"{folder} cannot be written: {error.strerror}") from error
