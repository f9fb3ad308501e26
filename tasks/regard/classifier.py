"""Regard classifiers by the names that ``--metadata classifier`` takes, the labels they give, and the light one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_bias.core.content_hashes import of_checkpoint
from lm_eval_bias.core.errors import BiasError, did_you_mean, require_extra
from lm_eval_bias.core.files import expanded
from lm_eval_bias.custom_metrics.intervals import Array
from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.tasks.regard import annotators, heads, regard_corpus, released_head
from lm_eval_bias.tasks.regard.classifier_identity import (
    LABELS,
    Classifier,
    Identity,
    accuracy_in_words,
    loading,
)
from lm_eval_bias.tasks.regard.heads import BATCH
from lm_eval_bias.tasks.regard.regard_texts import composed

logger = logging.getLogger("lm_eval.bias")
LabelledTexts = list[
    list[str | float]
]  # per text [text, regard, probability, ...], or [text, why it was dropped]
# the revision is the one that has the weights as safetensors
DEFAULT = {
    "de": "sbert",
    "en": "hub:sasha/regardv3@8b12c2d43677897b036a8d5afc7046a4ec79d0fc",
}


def label(
    classifier: Classifier, texts: Sequence[str]
) -> list[tuple[str, list[float]]]:
    """Give each text its most probable class (the first of equals) with the probabilities of all.

    Raises:
        BiasError: The classifier gives no probabilities.
    """
    if not texts:
        return []
    probabilities = np.asarray(classifier.probabilities(texts), dtype=float)
    identity = classifier.identity
    if not np.isfinite(probabilities).all():
        raise BiasError(
            f"classifier {identity.name}: gave nan as probabilities: its weights are damaged"
        )
    return [(identity.labels[row.argmax()], row.tolist()) for row in probabilities]


def label_kept(
    name: str, language: str, texts: Sequence[Sequence[Sequence[str]]]
) -> list[LabelledTexts]:
    """Label texts of a language with a classifier; ``texts`` has each with why it was dropped (empty if it was not).

    Raises:
        BiasError: The classifier cannot be had.
    """
    model = load(name, language)
    if model.identity.warning:
        logger.warning("%s", model.identity.warning)
    kept = [text for sampled in texts for text, problem in sampled if not problem]
    labels = iter(label(model, kept))
    answers: list[LabelledTexts] = []
    for sampled in texts:
        answers.append([])
        for text, problem in sampled:
            regard, probabilities = (problem, []) if problem else next(labels)
            answers[-1].append([text, regard, *probabilities])
    return answers


def check(name: object, language: str | None = None) -> None:
    """Refuse what names no classifier, or one that can't be trained on texts of a language; nothing is loaded.

    Raises:
        BiasError: The name is refused, or what classifiers need isn't installed.
    """
    if not isinstance(name, str) or not name:
        raise BiasError(
            f"--metadata classifier={name!r}: must be a text such as light or hub:<model>"
        )
    require_extra("regard")
    kind, _, model = name.partition(":")
    named = kind in ("hub", "head", "paper") and model
    if not (kind == "sbert" or name == "light" or named):
        hint = did_you_mean(kind, ("sbert", "light"))
        raise BiasError(
            f"classifier {name!r}: unknown.{hint} Known: light, sbert, sbert:<encoder>, hub:<model>, "
            "hub:<model>@<revision>, head:<folder>, paper:<file>"
        )
    if kind == "paper" and language not in (None, "de"):
        raise BiasError(f"classifier {name}: trained on German, not on {language!r}")
    if kind in ("light", "sbert") and language not in (None, *DEFAULT):
        raise BiasError(
            f"classifier {name}: trained on texts in {' and '.join(DEFAULT)}, not in {language!r}: name a "
            "hub:<model> or head:<folder>"
        )


class LightClassifier:
    """A logistic regression on character n-grams (TF-IDF) of the text with a neutral subject.

    The subject's gender cannot change the label.
    """

    def __init__(self, language: str) -> None:
        """Train on the development rows of the language's corpus; the test rows tell how it errs."""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        corpus, self._language = regard_corpus.load(language), language
        self._model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)),
            LogisticRegression(
                C=3.0, class_weight="balanced", max_iter=2000, random_state=0
            ),
        ).fit(
            self._neutral(row.text for row in corpus.dev),
            regard_corpus.labels(corpus.dev),
        )
        given = self.probabilities(row.text for row in corpus.test).argmax(axis=1)
        true = regard_corpus.labels(corpus.test)
        source = f"{len(true)} test sentences of {corpus.name.partition(',')[0]}"
        measured = {"accuracy": float((given == true).mean()), "source": source}
        detail = f"character TF-IDF, {len(corpus.dev)} sentences"
        self.identity = Identity("light", detail, REGARDS, measured=measured)

    def _neutral(self, texts: Iterable[str]) -> list[str]:
        return [
            regard_corpus.with_subject(
                composed(text.strip()), self._language, "neutral"
            )
            for text in texts
        ]

    def probabilities(self, texts: Iterable[str]) -> Array:
        """Return probabilities of negative, neutral and positive, shape (number of texts, 3)."""
        return self._model.predict_proba(self._neutral(texts))


class HubClassifier:
    """A checkpoint of ``AutoModelForSequenceClassification`` (softmax over its classes), on the CPU."""

    def __init__(self, name: str, model: Any, tokenizer: Any) -> None:
        """Wrap a loaded model and its tokenizer; ``name`` is what it was loaded as.

        Raises:
            BiasError: Its classes aren't those of regard.
        """
        self._model, self._tokenizer = model.eval(), tokenizer
        labels = model.config.id2label
        places = {}
        for index, label in labels.items():
            places[re.sub(r"\W", "", str(label)).lower()] = int(index)
        if not set(REGARDS) <= set(places) <= set(LABELS):
            raise BiasError(
                f"classifier hub:{name}: its classes are {', '.join(map(str, labels.values()))}; needed are "
                f"{', '.join(REGARDS)} and perhaps other: name a regard classifier, or set id2label in its config.json"
            )
        self._columns = [places[label] for label in LABELS if label in places]
        # two positions less than the table has: some families count from the padding's number
        positions = getattr(model.config, "max_position_embeddings", None) or 514
        self._longest = min(int(min(tokenizer.model_max_length, 10**6)), positions - 2)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        if model.config.pad_token_id is None:
            model.config.pad_token_id = tokenizer.pad_token_id
        detail = f"{type(model).__name__} of {name}"
        if revision := getattr(model.config, "_commit_hash", None):
            detail += f" at {revision}"
        if os.path.isdir(name):  # no revision tells its versions apart
            files = json.dumps(of_checkpoint(Path(name))).encode()
            detail += f", files {hashlib.sha256(files).hexdigest()[:12]}"
        self.identity = Identity(f"hub:{name}", detail, LABELS[: len(self._columns)])

    def probabilities(self, texts: Sequence[str]) -> Array:
        """Return the softmax of the logits in float64, shape (number of texts, 3 or 4)."""
        import torch
        from tqdm import trange

        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        probabilities = np.empty((len(texts), len(self._columns)))
        cut = {"padding": True, "truncation": True, "max_length": self._longest}
        with torch.inference_mode():
            for start in trange(
                0,
                len(order),
                BATCH,
                desc="Classifying regard",
                disable=len(texts) < BATCH,
            ):
                batch = order[start : start + BATCH]
                encoded = self._tokenizer(
                    [texts[i] for i in batch], return_tensors="pt", **cut
                )
                softmax = self._model(**encoded).logits.double().softmax(dim=-1)
                probabilities[batch] = softmax[:, self._columns].numpy()
        return probabilities


def load_hub(name: str) -> HubClassifier:
    """Load a checkpoint from a hub or a folder (``<model>`` or ``<model>@<revision>``); only safetensors are read.

    Raises:
        BiasError: It cannot be had, or has other classes.
    """
    import transformers

    source = name
    revision = "main"
    if not os.path.isdir(name):
        source, _, named = name.partition("@")
        revision = named or "main"
    with loading(f"classifier hub:{name}"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            source, revision=revision
        )
        auto_model = transformers.AutoModelForSequenceClassification
        model, loading_info = auto_model.from_pretrained(
            source,
            revision=revision,
            use_safetensors=True,
            output_loading_info=True,
        )
        if loading_info["missing_keys"]:
            weight = min(map(str, loading_info["missing_keys"]))
            raise BiasError(
                f"classifier hub:{name}: its weights lack {weight}: it is not a trained classifier"
            )
        classifier = HubClassifier(name, model, tokenizer)
        classifier.probabilities(
            ["Test."]
        )  # what can't label shows now, not after the texts were generated
    return classifier


@lru_cache(maxsize=4)
def load(name: str, language: str) -> Classifier:
    """Load ``light``, ``sbert``, ``sbert:<encoder>``, ``hub:<model>``, ``head:<folder>`` or ``paper:<file>``.

    Args:
        name: Its name.
        language: ``de`` or ``en``: what it is trained on, where it is trained here.

    Raises:
        BiasError: No such classifier, or it cannot be had; says what to do.
    """
    check(name, language)
    kind, _, model = name.partition(":")
    found: LightClassifier | HubClassifier | heads.HeadClassifier
    if kind == "light":
        found = LightClassifier(language)
    elif kind == "sbert":
        found = heads.load_sbert(model, language)
    elif kind == "hub":
        found = load_hub(model)
    elif kind == "paper":
        head = released_head.read(expanded(model))
        encoder = heads.encoder(heads.ENCODERS["de"])
        head.info["probe"] = heads.probe(encoder.encode)
        found = heads.HeadClassifier(f"paper:{expanded(model)}", head, encoder)
    else:
        head = heads.read(expanded(model))
        found = heads.HeadClassifier(
            f"head:{expanded(model)}", head, heads.encoder(head.info["encoder"])
        )
    found.identity = _judged(found, language)
    return found


def _judged(classifier: Classifier, language: str) -> Identity:
    """Add to a classifier's identity how often it is right on generated texts, and what to beware of."""
    identity = classifier.identity
    measured = dict(identity.measured or {})
    if language == "de" and "generated" not in measured:
        with contextlib.suppress(
            BiasError
        ):  # offline: then it says that it isn't known
            measured["generated"] = annotators.accuracy(classifier.probabilities)
    claims = []
    if identity.name == "light":
        claims.append(
            "regard labels come from the light classifier, which is weak, for trying out, not for findings"
        )
    generated = measured.get("generated")
    if generated and generated["interval"][0] <= generated["majority"]:
        claims.append(
            f"{identity.name} is not shown to beat always naming the commonest label"
        )
    warnings = [identity.warning]
    if claims:
        warnings.append(f"{'; '.join(claims)}: {accuracy_in_words(measured)}")
    return replace(
        identity, measured=measured or None, warning="; ".join(filter(None, warnings))
    )


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
