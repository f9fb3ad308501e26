"""The light classifier: character n-grams and logistic regression, trained in seconds from the pinned corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.tasks.regard.classifiers import regard_corpus
from lm_eval_bias.tasks.regard.classifiers.classifier import Identity

# accuracy on the test rows, and what it is to be compared with (measured: see the task's README)
MEASURED = {
    "de": "0.66 of 231 test sentences right, where the sbert classifier has 0.78",
    "en": "0.59 of 29 test sentences right",
}


def warning(language: str) -> str:
    """What every output of the light classifier has to say.

    >>> warning("de")[:43]
    'regard labels come from the light classifie'
    """
    return (
        f"regard labels come from the light classifier, which is weak ({MEASURED[language]}): for trying out, "
        "not for findings"
    )


def pipeline(seed: int = 0) -> Any:
    """The untrained model: TF-IDF of character n-grams within words, L2-regularised logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(
        TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)),
        LogisticRegression(C=3.0, class_weight="balanced", max_iter=2000, random_state=seed),
    )


class LightClassifier:
    """Character n-grams of the text about a neutral subject, so that the subject's gender cannot change the label."""

    def __init__(self, language: str, rows: Sequence[regard_corpus.Row]) -> None:
        """Train on these rows."""
        self._language = language
        self._model = pipeline().fit(self._features([row.text for row in rows]), regard_corpus.labels(rows))
        self.identity = Identity("light", f"character TF-IDF, {len(rows)} sentences", REGARDS, warning(language))

    def _features(self, texts: Sequence[str]) -> list[str]:
        return [regard_corpus.neutral(text.strip(), self._language) for text in texts]

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Probabilities of negative, neutral and positive, shape (number of texts, 3)."""
        found: NDArray[np.float64] = self._model.predict_proba(self._features(texts))
        return found


def load(language: str) -> LightClassifier:
    """The classifier, trained on the development rows of the language's corpus.

    Raises:
        BiasError: The corpus cannot be had.
    """
    return LightClassifier(language, regard_corpus.load(language).dev)


def evaluate(language: str) -> dict[str, Any]:
    """What the model card says: accuracy on folds and test rows, bias check."""
    from sklearn.model_selection import StratifiedKFold

    from lm_eval_bias.tasks.regard.classifiers import head_training

    rows = regard_corpus.load(language, second=True)
    y = regard_corpus.labels(rows.dev)
    folds = StratifiedKFold(head_training.FOLDS, shuffle=True, random_state=0)
    accuracies = []
    for train_rows, held in folds.split(np.zeros(len(y)), y):
        model = LightClassifier(language, [rows.dev[i] for i in train_rows])
        guess = model.probabilities([rows.dev[i].text for i in held]).argmax(axis=1)
        accuracies.append(float((guess == y[held]).mean()))
    found = LightClassifier(language, rows.dev)
    free = [regard_corpus.neutral(row.text, language) for row in (*rows.dev, *rows.test) if row.gender == "N"]
    women, men = (
        found.probabilities([regard_corpus.with_subject(text, language, gender) for text in free]).argmax(axis=1)
        for gender in ("female", "male")
    )
    test = head_training.report(found.probabilities([row.text for row in rows.test]), regard_corpus.labels(rows.test))
    return {
        "data": {"name": rows.name, "sha256": rows.sha256, "development": len(y), "test": test["n"],
                 "left_out_of_test": len(rows.left_out)},
        "encoder": "character n-grams (TF-IDF)",
        "recipe": "light",
        "made": "n-grams of 3 to 5 characters within words, logistic regression with balanced classes, C = 3; the "
        "subject is replaced by a neutral one",
        "held_out_folds": head_training.spread(accuracies),
        "test": test,
        "bias_check": head_training.bias_check(women, men),
        **({"second_test": head_training.report(found.probabilities([row.text for row in rows.second]),
                                           regard_corpus.labels(rows.second))} if rows.second else {}),
    }  # fmt: skip
