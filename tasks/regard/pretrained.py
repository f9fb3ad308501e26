"""Classifiers from the hub: any checkpoint with the classes of regard, or a head on a sentence encoder's vectors."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.core.content_hashes import of_checkpoint
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.data.sources import cache_dir
from lm_eval_bias.tasks.regard import heads, regard_corpus
from lm_eval_bias.tasks.regard.classifier_identity import LABELS, Identity, read_confusion

logger = logging.getLogger("lm_eval.bias")
BATCH = 64
ENCODERS = {
    "de": "sentence-transformers/paraphrase-xlm-r-multilingual-v1",
    "en": "sentence-transformers/all-MiniLM-L6-v2",
}


@contextlib.contextmanager
def _loading(what: str) -> Iterator[None]:
    """Say in one line that a model cannot be loaded, whatever its library raises."""
    from safetensors import SafetensorError

    try:
        yield
    except BiasError:
        raise
    except (OSError, ValueError, LookupError, ImportError, RuntimeError, TypeError, SafetensorError) as error:
        raise BiasError(f"{what} cannot be loaded: {one_line(error)[:300]}") from error


def columns(labels: Mapping[int, str], name: str) -> list[int]:
    """Find which output of a model (by its ``id2label``) is negative, neutral, positive and, if it has one, other.

    Raises:
        BiasError: The classes are others.

    >>> columns({0: "Neutral", 1: "POSITIVE", 2: "negative"}, "x")
    [2, 0, 1]
    """
    places = {re.sub(r"\W", "", str(label)).lower(): int(index) for index, label in labels.items()}
    if not set(REGARDS) <= set(places) or set(places) - set(LABELS):
        raise BiasError(
            f"classifier hub:{name}: its classes are {', '.join(map(str, labels.values()))}; needed are "
            f"{', '.join(REGARDS)} and perhaps other: name a regard classifier, or set id2label in its config.json"
        )
    return [places[label] for label in LABELS if label in places]


class HubClassifier:
    """A checkpoint of ``AutoModelForSequenceClassification`` (softmax over its classes), on the CPU."""

    def __init__(self, name: str, model: Any, tokenizer: Any) -> None:
        """Wrap a loaded model and its tokenizer; ``name`` is what it was loaded as."""
        self._model, self._tokenizer = model.eval(), tokenizer
        self._columns = columns(model.config.id2label, name)
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
            detail += f", files {hashlib.sha256(json.dumps(of_checkpoint(Path(name))).encode()).hexdigest()[:12]}"
        self.identity = Identity(f"hub:{name}", detail, LABELS[: len(self._columns)])

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Softmax of the logits in float64, shape (number of texts, 3 or 4)."""
        import torch
        from tqdm import trange

        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        probabilities = np.empty((len(texts), len(self._columns)))
        cut = {"padding": True, "truncation": True, "max_length": self._longest}
        with torch.inference_mode():
            for start in trange(0, len(order), BATCH, desc="Classifying regard", disable=len(texts) < BATCH):
                batch = order[start : start + BATCH]
                encoded = self._tokenizer([texts[i] for i in batch], return_tensors="pt", **cut)
                logits = self._model(**encoded).logits.double()
                probabilities[batch] = torch.softmax(logits, dim=-1)[:, self._columns].numpy()
        return probabilities


def load_hub(name: str) -> HubClassifier:
    """Load a checkpoint from a hub or a folder (``<model>`` or ``<model>@<revision>``); only safetensors are read.

    Raises:
        BiasError: It cannot be had, or has other classes.
    """
    import transformers

    source, _, revision = (name, "", "") if os.path.isdir(name) else name.partition("@")
    with _loading(f"classifier hub:{name}"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, revision=revision or "main")
        model, loading_info = transformers.AutoModelForSequenceClassification.from_pretrained(
            source, revision=revision or "main", use_safetensors=True, output_loading_info=True
        )
        if loading_info["missing_keys"]:
            weight = min(map(str, loading_info["missing_keys"]))
            raise BiasError(f"classifier hub:{name}: its weights lack {weight}: it is not a trained classifier")
        classifier = HubClassifier(name, model, tokenizer)
        classifier.probabilities(["Test."])  # what can't label shows now, not after the texts were generated
    return classifier


class Encoder:
    """A sentence encoder: texts to vectors, on the CPU."""

    def __init__(self, name: str, model: Any) -> None:
        """Wrap a loaded ``SentenceTransformer``."""
        self.name = name
        self._model = model
        config = getattr(getattr(model[0], "auto_model", None), "config", None)
        self.revision = str(getattr(config, "_commit_hash", None) or "")

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (number of texts, dimension), in the order of the texts."""
        show = len(texts) > 200 and sys.stderr.isatty()
        vectors = self._model.encode(list(texts), batch_size=BATCH, show_progress_bar=show, device="cpu")
        return np.asarray(vectors, dtype=np.float32)


@lru_cache(maxsize=2)
def encoder(name: str) -> Encoder:
    """Load a sentence-transformers model from a hub or a folder.

    Raises:
        BiasError: It cannot be had.
    """
    from sentence_transformers import SentenceTransformer

    with _loading(f"sentence encoder {name}"):
        return Encoder(name, SentenceTransformer(name, device="cpu"))


class HeadClassifier:
    """A head on its encoder's sentence vectors."""

    def __init__(self, name: str, head: heads.Head, encoder: Encoder) -> None:
        """Join them.

        Raises:
            BiasError: The head was trained on vectors of another encoder.
        """
        expected, probe = head.info["probe"], heads.probe(encoder.encode)
        if np.shape(expected) != np.shape(probe) or not np.allclose(expected, probe, atol=0.02, rtol=0.02):
            raise BiasError(
                f"classifier {name}: its head was trained with a different encoder from the one that is now at "
                f"{encoder.name}: train it again"
            )
        self._head, self._encoder = head, encoder
        detail = f"head {head.info['sha256'][:12]} on {encoder.name}"
        detail += (f" at {encoder.revision}" if encoder.revision else "") + f", {head.info.get('data')}"
        confusion = read_confusion(head.info.get("confusion"), len(REGARDS))
        self.identity = Identity(name, detail, REGARDS, str(head.info.get("warning", "")), confusion)

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Probabilities of negative, neutral and positive, shape (number of texts, 3)."""
        return self._head.probabilities(self._encoder.encode(texts))


def load_head(folder: Path) -> HeadClassifier:
    """Load a saved head with its encoder.

    Raises:
        BiasError: The head is missing or damaged, or the encoder cannot be had.
    """
    head = heads.read(folder)
    return HeadClassifier(f"head:{folder}", head, encoder(head.info["encoder"]))


def load_sbert(name: str, language: str) -> HeadClassifier:
    """Load the paper's head on an encoder (by default the language's); trained at first use, then kept in the cache.

    Raises:
        BiasError: The encoder or the corpus cannot be had.
    """
    model, corpus = encoder(name or ENCODERS[language]), regard_corpus.load(language)
    key = f"{heads.RECIPE}|{model.name}|{model.encode(['']).shape[1]}|{corpus.sha256}"
    folder = cache_dir() / "regard" / f"{language}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    label = f"sbert:{name}" if name else "sbert"
    try:
        return HeadClassifier(label, heads.read(folder), model)
    except BiasError:
        logger.info("training the regard head on %s, once (kept in %s)", model.name, folder)
    head, card, _ = heads.train(corpus, model.encode, model.name)
    heads.save(folder, head, card)
    return HeadClassifier(label, heads.read(folder), model)
