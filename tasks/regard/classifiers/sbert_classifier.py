"""Sentence vectors from sentence-transformers with a head on them: a saved one, or one trained at first use."""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.data.sources import cache_dir
from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.tasks.regard.classifiers import head_training, heads, regard_corpus
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import Identity, read_confusion
from lm_eval_bias.tasks.regard.classifiers.devices import on_best_device
from lm_eval_bias.tasks.regard.classifiers.head_networks import RECIPES

logger = logging.getLogger("lm_eval.bias")
ENCODERS = {
    "de": "sentence-transformers/paraphrase-xlm-r-multilingual-v1",
    "en": "sentence-transformers/all-MiniLM-L6-v2",
}


class Encoder:
    """A sentence encoder: texts to vectors."""

    def __init__(self, name: str, model: Any) -> None:
        """Wrap a loaded ``SentenceTransformer``."""
        self.name = name
        self._model = model
        config = getattr(getattr(model[0], "auto_model", None), "config", None)
        self.revision = str(getattr(config, "_commit_hash", None) or "")
        # renamed in sentence-transformers 6
        measure = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        self.dimension = int(measure())

    def encode(self, texts: Sequence[str], device: str = "cpu") -> NDArray[np.float32]:
        """Vectors of shape (number of texts, dimension), in the order of the texts.

        Args:
            texts: Texts.
            device: Where the model is; the CPU but for :meth:`encode_fast`, so that loading a classifier doesn't touch
                the GPU that the evaluated model needs.
        """
        show = len(texts) > 200 and sys.stderr.isatty()
        vectors = self._model.encode(list(texts), batch_size=64, show_progress_bar=show, device=device)
        return np.asarray(vectors, dtype=np.float32)

    def encode_fast(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """:meth:`encode` on the GPU if there is one with room."""
        return on_best_device(self._model, lambda device: self.encode(texts, device))


@lru_cache(maxsize=2)
def encoder(name: str) -> Encoder:
    """A sentence-transformers model from a hub or a folder.

    Raises:
        BiasError: It cannot be had.
    """
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    try:
        return Encoder(name, SentenceTransformer(name, device="cpu"))
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError, SafetensorError) as error:
        raise BiasError(f"sentence encoder {name} cannot be loaded: {one_line(error)[:300]}") from error


class HeadClassifier:
    """A head on its encoder's sentence vectors."""

    def __init__(self, name: str, head: heads.Head, encoder: Encoder) -> None:
        """Join them.

        Raises:
            BiasError: The encoder's vectors have another length than the head takes.
        """
        if encoder.dimension != head.dimension:
            raise BiasError(
                f"classifier {name}: its head takes vectors of length {head.dimension}, encoder {encoder.name} gives "
                f"{encoder.dimension}"
            )
        if (expected := head.info.get("probe")) is not None:
            probe = heads.probe(encoder.encode)
            if np.shape(expected) != np.shape(probe) or not np.allclose(expected, probe, atol=0.02, rtol=0.02):
                raise BiasError(
                    f"classifier {name}: its head was trained with a different encoder from the one that is now at "
                    f"{encoder.name}: train it again"
                )
        self._head, self._encoder = head, encoder
        digest = str(head.info.get("sha256", ""))[:12]
        self.identity = Identity(
            name,
            f"head {digest} on {encoder.name}"
            + (f" at {encoder.revision}" if encoder.revision else "")
            + (f", {head.info['data']}" if "data" in head.info else ""),
            REGARDS,
            str(head.info.get("warning", "")),
            read_confusion(head.info.get("confusion"), len(REGARDS)),
        )

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Probabilities of negative, neutral and positive, shape (number of texts, 3)."""
        return self._head.probabilities(self._encoder.encode_fast(texts))


def load_head(folder: Path) -> HeadClassifier:
    """A saved head with its encoder.

    Raises:
        BiasError: The head is missing or damaged, names no encoder, or the encoder cannot be had.
    """
    head = heads.read(folder)
    name = head.info.get("encoder")
    if not isinstance(name, str) or not name:
        raise BiasError(
            f'regard head {folder}: was trained on precomputed vectors and names no encoder: set "encoder" in '
            f"{heads.CONFIG} to the sentence-transformers model that made them"
        )
    return HeadClassifier(f"head:{folder}", head, encoder(name))


def load(name: str, language: str) -> HeadClassifier:
    """The head of the paper's kind on an encoder's vectors; trained at first use, then kept in the cache.

    Args:
        name: Encoder; empty for the language's default.
        language: Whose corpus the head is trained on.

    Raises:
        BiasError: The encoder or the corpus cannot be had.
    """
    model = encoder(name or ENCODERS[language])
    corpus, recipe = regard_corpus.load(language), RECIPES["paper"]
    key = f"{recipe.name}-{recipe.version}|{model.name}|{model.dimension}|{corpus.sha256}"
    folder = cache_dir() / "regard" / f"{language}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    label = f"sbert:{name}" if name else "sbert"
    try:
        if "confusion" in (head := heads.read(folder)).info:  # heads of older versions tell nothing of their errors
            return HeadClassifier(label, head, model)
    except BiasError:
        logger.info("training the regard head on %s, once (kept in %s)", model.name, folder)
    trained = head_training.train(corpus, model.encode, seeds=1, encoder=model.name)
    head_training.save(folder, trained)
    if trained.passed is not True:
        logger.warning("regard head on %s: %s", model.name, trained.head.info["warning"])
    return HeadClassifier(label, heads.read(folder), model)
