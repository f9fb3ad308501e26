"""Any text-classification checkpoint with the classes of regard."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.runs.provenance import files
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import LABELS, Identity
from lm_eval_bias.tasks.regard.classifiers.devices import on_best_device

BATCH = 64


def columns(labels: Mapping[int, str], name: str) -> list[int]:
    """Which output of a model is negative, neutral, positive and (if it has one) other.

    Args:
        labels: The checkpoint's ``id2label``.
        name: For the message.

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


def _folder_hash(name: str) -> str:
    """A hash of a local checkpoint's files, which no revision tells apart; empty for one from a hub."""
    if not os.path.isdir(name):
        return ""
    return f", files {hashlib.sha256(json.dumps(files(Path(name))).encode()).hexdigest()[:12]}"


class HubClassifier:
    """A checkpoint of ``AutoModelForSequenceClassification`` (softmax over its classes)."""

    def __init__(self, name: str, model: Any, tokenizer: Any) -> None:
        """Wrap a loaded model and its tokenizer; ``name`` is what it was loaded as."""
        self._model, self._tokenizer = model, tokenizer
        self._columns = columns(model.config.id2label, name)
        # two positions less than the table has: some families count from the padding's number
        positions = getattr(model.config, "max_position_embeddings", None) or 514
        self._longest = min(int(min(tokenizer.model_max_length, 10**6)), positions - 2)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        if model.config.pad_token_id is None:
            model.config.pad_token_id = tokenizer.pad_token_id
        revision = getattr(model.config, "_commit_hash", None)
        self.identity = Identity(
            f"hub:{name}",
            f"{type(model).__name__} of {name}" + (f" at {revision}" if revision else "") + _folder_hash(name),
            LABELS[: len(self._columns)],
        )

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Softmax of the logits in float64, shape (number of texts, 3 or 4)."""
        return on_best_device(self._model, lambda device: self.probabilities_on(device, texts))

    def probabilities_on(self, device: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """:meth:`probabilities` on the device where the model is."""
        import torch
        from tqdm import tqdm

        model = self._model.eval()
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        probabilities = np.empty((len(texts), len(self._columns)))
        show = tqdm(total=len(texts), desc="Classifying regard", disable=len(texts) < BATCH)
        with torch.inference_mode(), show as bar:
            for start in range(0, len(order), BATCH):
                batch = order[start : start + BATCH]
                encoded = self._tokenizer(
                    [texts[i] for i in batch],
                    padding=True,
                    truncation=True,
                    max_length=self._longest,
                    return_tensors="pt",
                ).to(device)
                logits = model(**encoded).logits.double()
                probabilities[batch] = torch.softmax(logits, dim=-1)[:, self._columns].cpu().numpy()
                bar.update(len(batch))
        return probabilities


def load(name: str) -> HubClassifier:
    """A checkpoint from a hub or a folder; only safetensors are read.

    Args:
        name: Its name or folder, with ``@<revision>`` where another than the newest one is wanted.

    Raises:
        BiasError: It cannot be had, or has other classes.
    """
    import transformers
    from safetensors import SafetensorError

    source, _, revision = (name, "", "") if os.path.isdir(name) else name.partition("@")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, revision=revision or "main")
        model, loading_info = transformers.AutoModelForSequenceClassification.from_pretrained(
            source, revision=revision or "main", use_safetensors=True, output_loading_info=True
        )
        if loading_info["missing_keys"]:
            weight = min(map(str, loading_info["missing_keys"]))
            raise BiasError(f"classifier hub:{name}: its weights lack {weight}: it is not a trained classifier")
        classifier = HubClassifier(name, model, tokenizer)
        # what can't label shows now, not after the texts were generated; the GPU is the evaluated model's
        classifier.probabilities_on("cpu", ["Test."])
    except BiasError:
        raise
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, IndexError, SafetensorError) as error:
        raise BiasError(f"classifier hub:{name} cannot be loaded: {one_line(error)[:300]}") from error
    return classifier
