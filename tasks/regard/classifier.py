"""Regard classifiers by the names that ``--metadata classifier`` takes, the labels they give, and the light one."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from lm_eval_bias.core.errors import BiasError, did_you_mean, require_extra
from lm_eval_bias.core.files import expanded
from lm_eval_bias.custom_metrics.intervals import Array
from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.tasks.regard import annotators, heads, regard_corpus, released_head
from lm_eval_bias.tasks.regard.classifier_identity import (
    LABELS,
    PACKAGES,
    Classifier,
    Identity,
    accuracy_in_words,
    loading,
    revision_of,
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


def label_kept(
    name: str, language: str, texts: Sequence[Sequence[Sequence[str]]]
) -> list[LabelledTexts]:
    """Label texts of a language, each with its most probable class (the first of equals) and the probabilities of all.

    Args:
        name: The classifier.
        language: The texts' language.
        texts: Of each document, each text with why it was dropped (empty if it was not).

    Raises:
        BiasError: The classifier cannot be had, or gives no probabilities.
    """
    model = load(name, language)
    identity = model.identity
    if identity.warning:
        logger.warning("%s", identity.warning)
    kept = [text for sampled in texts for text, problem in sampled if not problem]
    probabilities = iter(model.probabilities(kept).tolist() if kept else ())
    answers: list[LabelledTexts] = []
    for sampled in texts:
        answers.append([])
        for text, problem in sampled:
            row = [] if problem else next(probabilities)
            if not all(map(math.isfinite, row)):
                raise BiasError(
                    f"classifier {name}: gave nan as probabilities: its weights are damaged"
                )
            regard = problem or identity.labels[row.index(max(row))]
            answers[-1].append([text, regard, *row])
    return answers


def check(name: object, language: str | None = None) -> None:
    """Refuse an unknown classifier, or one without training data in a language; nothing is loaded.

    Raises:
        BiasError: The name is refused, or what classifiers need isn't installed.
    """
    if not isinstance(name, str) or not name:
        raise BiasError(
            f"--metadata classifier={name!r}: must be a text such as light or hub:<model>"
        )
    require_extra("regard", *PACKAGES)
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


def light(language: str) -> Classifier:
    """Train a logistic regression on character n-grams (TF-IDF) of texts with a neutral subject.

    The subject's gender cannot change the label. The corpus' test rows tell how it errs.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    def neutral(texts: Iterable[str]) -> list[str]:
        bare = (composed(text.strip()) for text in texts)
        return [regard_corpus.with_subject(text, language, "neutral") for text in bare]

    corpus = regard_corpus.load(language)
    x, test = (part.text.tolist() for part in (corpus.dev, corpus.test))
    y, true = (part.label.to_numpy() for part in (corpus.dev, corpus.test))
    model = make_pipeline(
        FunctionTransformer(neutral),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)),
        LogisticRegression(
            C=3.0, class_weight="balanced", max_iter=2000, random_state=0
        ),
    ).fit(x, y)
    source = f"{len(true)} test sentences of {corpus.name.partition(',')[0]}"
    measured = {"accuracy": float(model.score(test, true)), "source": source}
    detail = f"character TF-IDF, {len(y)} sentences"
    return Classifier(
        Identity("light", detail, REGARDS, measured=measured), model.predict_proba
    )


def _classes(name: str, classes: Collection[str]) -> list[str]:
    """Return a checkpoint's classes in the order of those of regard, of which they must be names.

    Raises:
        BiasError: They aren't.
    """
    named = {re.sub(r"\W", "", label).lower(): label for label in classes}
    if not set(REGARDS) <= set(named) <= set(LABELS):
        raise BiasError(
            f"classifier hub:{name}: its classes are {', '.join(classes)}; needed are {', '.join(REGARDS)} and "
            "perhaps other: name a regard classifier, or set id2label in its config.json"
        )
    return [named[label] for label in LABELS if label in named]


def load_hub(name: str) -> Classifier:
    """Load a checkpoint from a hub or a folder (``<model>`` or ``<model>@<revision>``), to be used on the CPU.

    Only safetensors are read.

    Raises:
        BiasError: It cannot be had, or has other classes.
    """
    import transformers

    source, revision = name, "main"
    if not os.path.isdir(name):
        source, _, named = name.partition("@")
        revision = named or "main"
    with loading(f"classifier hub:{name}"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            source, revision=revision
        )
        auto_model = transformers.AutoModelForSequenceClassification
        model, found = auto_model.from_pretrained(
            source, revision=revision, use_safetensors=True, output_loading_info=True
        )
    if found["missing_keys"]:
        raise BiasError(
            f"classifier hub:{name}: its weights lack {min(map(str, found['missing_keys']))}: it is not a trained "
            "classifier"
        )
    classes = _classes(name, list(map(str, model.config.id2label.values())))
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if model.config.pad_token_id is None:
        model.config.pad_token_id = tokenizer.pad_token_id
    # two positions less than the table has: some families count from the padding's number
    positions = getattr(model.config, "max_position_embeddings", None) or 514
    pipeline = transformers.TextClassificationPipeline(
        model=model,
        tokenizer=tokenizer,
        device="cpu",
        batch_size=BATCH,
        top_k=None,
        function_to_apply="softmax",
        truncation=True,
        max_length=min(int(min(tokenizer.model_max_length, 10**6)), positions - 2),
    )

    def probabilities(texts: Sequence[str]) -> Array:
        rows = []
        for scored in pipeline(list(texts)):
            scores = {one["label"]: one["score"] for one in scored}
            rows.append([scores[label] for label in classes])
        return np.array(rows)

    detail = f"{type(model).__name__} of {name}"
    if commit := revision_of(name, model.config):
        detail += f" at {commit}"
    identity = Identity(f"hub:{name}", detail, LABELS[: len(classes)])
    # what can't label shows now, not after the texts were generated
    with loading(identity.name):
        probabilities(["Test."])
    return Classifier(identity, probabilities)


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
    if kind == "light":
        found = light(language)
    elif kind == "sbert":
        found = heads.sbert(model, language)
    elif kind == "hub":
        found = load_hub(model)
    else:
        path = expanded(model)
        head = released_head.read(path) if kind == "paper" else heads.read(path)
        found = heads.on_encoder(f"{kind}:{path}", head)
    return replace(found, identity=_judged(found, language))


def _judged(classifier: Classifier, language: str) -> Identity:
    """Add a classifier's accuracy on generated texts, and its warnings, to its identity."""
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
    """Load the named classifier, or else the language's default (``light`` if that fails).

    Raises:
        BiasError: What was named cannot be had; or neither the default nor ``light`` can.
    """
    require_extra("regard", *PACKAGES)
    if name is not None:
        return load(name, language)
    try:
        return load(DEFAULT[language], language)
    except BiasError as error:
        remedy = "download it once while online, or choose one with --metadata classifier=..."
        default = f"can't load the default classifier {DEFAULT[language]}, using 'light' instead"
        logger.warning("%s: %s (%s)", default, remedy, error)
    return load("light", language)
