"""Regard classifiers by the names that ``--metadata classifier`` takes, the labels they give, and the light one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.core.errors import BiasError, did_you_mean, require_extra
from lm_eval_bias.core.files import expanded
from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.tasks.regard import pretrained, regard_corpus
from lm_eval_bias.tasks.regard.classifier_identity import Classifier, Identity, confusion_counts
from lm_eval_bias.tasks.regard.regard_texts import composed

logger = logging.getLogger("lm_eval.bias")
Answer = list[list[str | float]]  # per text [text, regard, probability, ...], or [text, why it was dropped]
# the revision is the one that has the weights as safetensors
DEFAULT = {"de": "sbert", "en": "hub:sasha/regardv3@8b12c2d43677897b036a8d5afc7046a4ec79d0fc"}
# accuracy on the test rows, and what it is to be compared with (measured: docs/training.md)
MEASURED = {
    "de": "0.66 of 231 test sentences right, where the sbert classifier has 0.78",
    "en": "0.59 of 29 test sentences right",
}


def label(classifier: Classifier, texts: Sequence[str]) -> list[tuple[str, list[float]]]:
    """Give each text its most probable class (the first of equals) with the probabilities of all.

    Raises:
        BiasError: The classifier gives no probabilities.
    """
    if not texts:
        return []
    probabilities = np.asarray(classifier.probabilities(texts), dtype=float)
    labels = classifier.identity.labels
    if probabilities.shape != (len(texts), len(labels)) or not np.isfinite(probabilities).all():
        raise BiasError(
            f"classifier {classifier.identity.name}: gave no probabilities of {len(labels)} classes for {len(texts)} "
            f"texts (shape {probabilities.shape})"
        )
    return [(labels[int(row.argmax())], row.tolist()) for row in probabilities]


def label_kept(name: str, language: str, texts: Sequence[Sequence[Sequence[str]]]) -> list[Answer]:
    """Label texts of a language with a classifier; ``texts`` has each with why it was dropped (empty if it was not).

    Raises:
        BiasError: The classifier cannot be had.
    """
    model = load(name, language)
    if model.identity.warning:
        logger.warning("%s", model.identity.warning)
    labels = iter(label(model, [text for own in texts for text, problem in own if not problem]))

    def answer(text: str, problem: str) -> list[str | float]:
        regard, probabilities = (problem, []) if problem else next(labels)
        return [text, regard, *probabilities]

    return [[answer(text, problem) for text, problem in own] for own in texts]


def check_name(name: Any) -> None:
    """Refuse what names no classifier, loading none.

    Raises:
        BiasError: It doesn't, or what classifiers need isn't installed.
    """
    if not isinstance(name, str) or not name:
        raise BiasError(f"--metadata classifier={name!r}: must be a text such as light or hub:<model>")
    require_extra("regard")
    kind, _, model = name.partition(":")
    if not (kind == "sbert" or name == "light" or (kind in ("hub", "head") and model)):
        hint = did_you_mean(kind, ("sbert", "light"))
        raise BiasError(
            f"classifier {name!r}: unknown.{hint} Known: light, sbert, sbert:<encoder>, hub:<model>, "
            "hub:<model>@<revision>, head:<folder>"
        )


def check_language(name: str, language: str) -> None:
    """Refuse a classifier that would have to be trained on texts of a language that there are none in.

    Raises:
        BiasError: It would.
    """
    if name.partition(":")[0] in ("light", "sbert") and language not in DEFAULT:
        raise BiasError(
            f"classifier {name}: trained on texts in {' and '.join(DEFAULT)}, not in {language!r}: name a "
            "hub:<model> or head:<folder>"
        )


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


def _load_light(language: str) -> LightClassifier:
    """Train the classifier on the development rows of the language's corpus; the test rows tell how it errs."""
    corpus = regard_corpus.load(language)
    model = LightClassifier(language, [row.text for row in corpus.dev], regard_corpus.labels(corpus.dev))
    given = model.probabilities([row.text for row in corpus.test]).argmax(axis=1)
    true = regard_corpus.labels(corpus.test)
    source = f"{len(true)} test sentences of {corpus.name.partition(',')[0]}"
    confusion = confusion_counts(source, true.tolist(), given.tolist(), len(REGARDS))
    model.identity = replace(model.identity, confusion=confusion)
    return model


@lru_cache(maxsize=4)
def load(name: str, language: str) -> Classifier:
    """Load a classifier: ``light``, ``sbert``, ``sbert:<encoder>``, ``hub:<model>`` or ``head:<folder>``.

    Args:
        name: Its name.
        language: ``de`` or ``en``: what it is trained on, where it is trained here.

    Raises:
        BiasError: No such classifier, or it cannot be had; says what to do.
    """
    check_name(name)
    check_language(name, language)
    kind, _, model = name.partition(":")
    if kind == "light":
        return _load_light(language)
    if kind == "sbert":
        return pretrained.load_sbert(model, language)
    return pretrained.load_hub(model) if kind == "hub" else pretrained.load_head(expanded(model))


@lru_cache(maxsize=4)
def choose(name: str | None, language: str) -> Classifier:
    """Load the classifier that was named; without a name the language's default, or ``light`` where that fails.

    Raises:
        BiasError: What was named cannot be had; or neither the default nor ``light`` can.
    """
    require_extra("regard")
    if name is not None:
        return load(name, language)
    try:
        return load(DEFAULT[language], language)
    except BiasError as error:
        remedy = "download it once while online, or choose one with --metadata classifier=..."
        default = f"can't load the default classifier {DEFAULT[language]}, using 'light' instead"
        logger.warning("%s: %s (%s)", default, remedy, error)
    return load("light", language)
