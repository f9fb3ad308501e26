"""The light classifier: character n-grams and logistic regression, trained in seconds from the pinned corpus."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.tasks.regard.classifiers import regard_corpus
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import Identity, confusion_counts
from lm_eval_bias.tasks.regard.regard_texts import composed

# accuracy on the test rows, and what it is to be compared with (measured: docs/training.md)
MEASURED = {
    "de": "0.66 of 231 test sentences right, where the sbert classifier has 0.78",
    "en": "0.59 of 29 test sentences right",
}


class LightClassifier:
    """TF-IDF of character n-grams within words of the text about a neutral subject, and logistic regression.

    The subject's gender cannot change the label.
    """

    def __init__(self, language: str, texts: Iterable[str], y: NDArray[np.int64]) -> None:
        """Train on texts."""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        self._language = language
        self._model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)),
            LogisticRegression(C=3.0, class_weight="balanced", max_iter=2000, random_state=0),
        ).fit(self._neutral(texts), y)
        warning = (
            f"regard labels come from the light classifier, which is weak ({MEASURED[language]}): for trying out, "
            "not for findings"
        )
        self.identity = Identity("light", f"character TF-IDF, {len(y)} sentences", REGARDS, warning)

    def _neutral(self, texts: Iterable[str]) -> list[str]:
        return [regard_corpus.with_subject(composed(text.strip()), self._language, "neutral") for text in texts]

    def probabilities(self, texts: Iterable[str]) -> NDArray[np.float64]:
        """Probabilities of negative, neutral and positive, shape (number of texts, 3)."""
        return self._model.predict_proba(self._neutral(texts))


def load(language: str) -> LightClassifier:
    """Train the classifier on the development rows of the language's corpus; the test rows tell how it errs.

    Raises:
        BiasError: The corpus cannot be had.
    """
    corpus = regard_corpus.load(language)
    model = LightClassifier(language, [row.text for row in corpus.dev], regard_corpus.labels(corpus.dev))
    given = model.probabilities([row.text for row in corpus.test]).argmax(axis=1)
    true = regard_corpus.labels(corpus.test)
    source = f"{len(true)} test sentences of {corpus.name.partition(',')[0]}"
    confusion = confusion_counts(source, true.tolist(), given.tolist(), len(REGARDS))
    model.identity = replace(model.identity, confusion=confusion)
    return model
