"""A classifier fitted in five folds, evaluated on test rows and checked for bias (section 3.2)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.contingency import chi_square
from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.regard.classifiers.classifier_card import BiasCheck, Card, Report, Spread
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import confusion_counts
from lm_eval_bias.tasks.regard.classifiers.training_data import Features, Labels, TrainingData

FOLDS = 5
BINS = 10
ALPHA = 0.05


class Model(Protocol):
    """What a recipe fits."""

    def probabilities(self, x: Features, /) -> NDArray[np.float64]:
        """Probabilities of negative, neutral and positive, shape (number of rows, 3)."""


M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Recipe(Generic[M]):
    """A way to fit a model.

    Attributes:
        name: For ``--recipe``.
        version: Changes whenever the same data would give another model.
        summary: For the model card.
        fit: Training rows and labels, those of the held-out fold, a seed; gives a model.
        join: Makes the final model of those of the folds (each stopped early on its own fold); without it, the final
            model is fitted on all development rows.
    """

    name: str
    version: str
    summary: str
    fit: Callable[[Features, Labels, Features, Labels, int], M]
    join: Callable[[Sequence[M]], M] | None = None


def report(probabilities: NDArray[np.float64], y: Labels) -> Report:
    """Accuracy, macro-F1, per class, confusion and calibration of predictions."""
    from sklearn import metrics

    guess = probabilities.argmax(axis=1)
    classes = list(range(len(REGARDS)))
    per_class = metrics.precision_recall_fscore_support(y, guess, labels=classes, zero_division=0.0)
    confidence = probabilities.max(axis=1)
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    error = sum(
        (bins == b).mean() * abs((guess == y)[bins == b].mean() - confidence[bins == b].mean()) for b in np.unique(bins)
    )
    return {
        "n": len(y),
        "accuracy": float((guess == y).mean()),
        "macro_f1": float(per_class[2].mean()),
        "per_class": {
            name: {"precision": float(precision), "recall": float(recall), "f1": float(f1), "n": int(n)}
            for name, precision, recall, f1, n in zip(REGARDS, *per_class, strict=True)
        },
        "confusion": metrics.confusion_matrix(y, guess, labels=classes).tolist(),
        "expected_calibration_error": float(error),
    }


def bias_check(women: Labels, men: Labels) -> BiasCheck:
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
    counts = [np.bincount(side, minlength=len(REGARDS)) for side in (women, men)]
    changed = float((women != men).mean())
    if np.count_nonzero(sum(counts)) < 2:
        reason = "all sentences get the same label"
        return {"passed": False, "chi2": None, "p": None, "n": 2 * len(women), "changed": changed, "reason": reason}
    chi2, p, _, _ = chi_square(tuple(tuple(side.tolist()) for side in counts))
    return {"passed": p >= ALPHA, "chi2": chi2, "p": p, "n": 2 * len(women), "changed": changed, "reason": ""}


def _spread(values: Sequence[float]) -> Spread:
    """Mean and standard deviation (0 for a single value)."""
    return {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0}


def evaluate(recipe: Recipe[M], data: TrainingData, seeds: int, encoder: str) -> tuple[M, Card]:
    """The model that a recipe makes of the first seed's folds or of all rows, and its card.

    Args:
        recipe: How to fit.
        data: What on.
        seeds: How often five folds are drawn.
        encoder: What made the features, for the card.

    Raises:
        BiasError: Too few rows of a class, or no test row.
    """
    from sklearn.model_selection import StratifiedKFold
    from tqdm import tqdm

    x, y = data.dev_x, data.dev_y
    smallest = int(np.bincount(y, minlength=len(REGARDS)).min())
    if smallest < FOLDS:
        raise BiasError(f"{data.name}: a class has {smallest} development rows, but five folds need at least {FOLDS}")
    if not len(data.test_y):
        raise BiasError(f"{data.name}: every test row is also a development row, so none is left to test on")
    fold_models: list[M] = []
    fold_of = np.full(len(y), -1)
    held_out: list[float] = []
    tests: list[Report] = []
    with tqdm(total=seeds * FOLDS, desc="Training", unit="fold", disable=not sys.stderr.isatty()) as bar:
        for seed in range(seeds):
            folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x, y)
            for fold, (rows, held_rows) in enumerate(folds):
                model = recipe.fit(x[rows], y[rows], x[held_rows], y[held_rows], 1000 * seed + fold)
                held_out.append(report(model.probabilities(x[held_rows]), y[held_rows])["accuracy"])
                tests.append(report(model.probabilities(data.test_x), data.test_y))
                if seed == 0:
                    fold_models.append(model)
                    fold_of[held_rows] = fold
                bar.update()
    final = recipe.join(fold_models) if recipe.join else recipe.fit(x, y, x[:0], y[:0], 0)
    test_probabilities = final.probabilities(data.test_x)
    card: Card = {
        "data": {
            "name": data.name,
            "sha256": data.sha256,
            "development": len(y),
            "test": len(data.test_y),
            "left_out_of_test": data.left_out,
        },
        "encoder": encoder,
        "recipe": recipe.name,
        "made": recipe.summary,
        "seeds": seeds,
        "folds": FOLDS,
        "out_of_fold_accuracy": _spread(held_out),
        "test_of_folds": {
            "accuracy": _spread([test["accuracy"] for test in tests]),
            "macro_f1": _spread([test["macro_f1"] for test in tests]),
        },
        "test": report(test_probabilities, data.test_y),
        "confusion": confusion_counts(
            f"{len(data.test_y)} test sentences of {data.name.partition(',')[0]}",
            data.test_y.tolist(),
            test_probabilities.argmax(axis=1).tolist(),
            len(REGARDS),
            data.test_genders,
        ),
        "bias_check": _check(final, fold_models, data, fold_of),
    }
    if data.second_test is not None:
        card["second_test"] = report(final.probabilities(data.second_test[0]), data.second_test[1])
    return final, card


def _check(final: Model, folds: Sequence[Model], data: TrainingData, fold_of: NDArray[np.int64]) -> BiasCheck:
    """The bias check, each development sentence labelled by the fold that was not trained on it."""
    if data.pairs is None:
        reason = "not made: the vectors of the same sentences about a woman and a man (woman_X, man_X) are not there"
        return {"passed": None, "chi2": None, "p": None, "n": 0, "changed": None, "reason": reason}
    *sides, places = data.pairs
    held_out = np.where(places >= 0, fold_of[places], -1)
    labels = []
    for side in sides:
        labels.append(final.probabilities(side).argmax(axis=1))
        for fold, model in enumerate(folds):
            if (held_rows := held_out == fold).any():
                labels[-1][held_rows] = model.probabilities(side[held_rows]).argmax(axis=1)
    return bias_check(*labels)
