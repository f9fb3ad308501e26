"""Sentence vectors from sentence-transformers, and the head that is trained on them at first use."""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.data.sources import cache_dir
from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.tasks.regard.classifiers import heads
from lm_eval_bias.tasks.regard.classifiers.devices import on_best_device

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
        found = self._model.encode(
            list(texts), batch_size=64, convert_to_numpy=True, show_progress_bar=show, device=device
        )
        return np.asarray(found, dtype=np.float32)

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


def load(name: str, language: str) -> heads.HeadClassifier:
    """The head of the paper's kind on an encoder's vectors; trained at first use, then kept in the cache.

    Args:
        name: Encoder; empty for the language's default.
        language: Whose corpus the head is trained on.

    Raises:
        BiasError: The encoder or the corpus cannot be had.
    """
    from lm_eval_bias.tasks.regard.classifiers import head_networks, head_training, regard_corpus

    found = encoder(name or ENCODERS[language])
    rows, recipe = regard_corpus.load(language), head_networks.RECIPES["paper"]
    key = hashlib.sha256(
        f"{recipe.name}-{recipe.version}|{found.name}|{found.dimension}|{rows.sha256}".encode()
    ).hexdigest()[:16]
    folder = cache_dir() / "regard" / f"{language}-{key}"
    label = f"sbert:{name}" if name else "sbert"
    try:
        return heads.HeadClassifier(label, heads.read(folder), found)
    except BiasError:
        logger.info("training the regard head on %s, once (kept in %s)", found.name, folder)
    trained = head_training.train(rows, found.encode, seeds=1, encoder=found.name)
    head_training.save(folder, trained)
    if trained.passed is not True:
        logger.warning("regard head on %s: %s", found.name, trained.head.info["warning"])
    return heads.HeadClassifier(label, heads.read(folder), found)
