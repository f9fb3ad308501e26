"""Heads that tell regard from sentence vectors: trained as in the paper (section 3.2), kept as safetensors and JSON."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.core import Data
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import (
    packaged_text,
    read_text,
    write_together,
    writing,
)
from lm_eval_bias.custom_metrics.intervals import Array, chi_square
from lm_eval_bias.custom_metrics.regard import GENDERS, REGARDS
from lm_eval_bias.data.sources import cache_dir
from lm_eval_bias.tasks.regard import annotators, regard_corpus
from lm_eval_bias.tasks.regard.classifier_identity import (
    Identity,
    accuracy_in_words,
    loading,
)
from lm_eval_bias.tasks.regard.regard_corpus import RegardCorpus, labels, with_subject

if TYPE_CHECKING:
    from torch import nn

logger = logging.getLogger("lm_eval.bias")
BATCH = 64
ENCODERS = {
    "de": "sentence-transformers/paraphrase-xlm-r-multilingual-v1",
    "en": "sentence-transformers/all-MiniLM-L6-v2",
}
VERSION = 3  # 1 had other activations, 1 and 2 other names of weights
CONFIG, WEIGHTS, CARD = "head.json", "head.safetensors", "README.md"
Encode = Callable[[Sequence[str]], NDArray[np.float32]]
RECIPE = "paper-1"  # changes whenever the same data would give another head
FOLDS, EPOCHS, PATIENCE = 5, 100, 10
ALPHA = 0.05
CLASSES = list(range(len(REGARDS)))
Features = NDArray[np.float32]
Labels = NDArray[np.int64]


def network(size: int) -> nn.Sequential:
    """Make the paper's network for vectors of a size, with a tanh and a dropout before its last layer."""
    from torch import nn

    layers = (
        nn.Linear(size, 256),
        nn.Linear(256, 128),
        nn.Tanh(),
        nn.Dropout(0.1),
        nn.Linear(128, len(REGARDS)),
    )
    return nn.Sequential(*layers)


@dataclass(frozen=True)
class Head:
    """Small networks whose probabilities are averaged.

    Attributes:
        members: The networks, in float32.
        info: What its description holds: encoder, data, data_sha256, recipe, measured, warning, probe; sha256.
    """

    members: list[nn.Sequential]
    info: Data = field(default_factory=dict)

    def probabilities(self, vectors: Array) -> Array:
        """Return the mean over the members of the softmax, in float64, shape (number of vectors, 3)."""
        import torch

        x = torch.from_numpy(np.asarray(vectors, dtype=np.float64))
        with torch.inference_mode():
            nets = [copy.deepcopy(member).double().eval() for member in self.members]
            logits = torch.stack([net(x) for net in nets])
            return logits.softmax(dim=-1).mean(dim=0).numpy()


def probe(encode: Encode) -> list[list[float]]:
    """Return the beginnings of two sentences' vectors, which tell an encoder from another of the same name."""
    vectors = encode(
        ["Die Person galt als freundlich.", "The person was known for stealing."]
    )
    return np.round(np.asarray(vectors, dtype=float)[:, :16], 4).tolist()


def save(folder: Path, head: Head, card: str) -> None:
    """Write weights, description and model card; what was there before stays if the folder cannot be written.

    Raises:
        BiasError: It cannot be written.
    """
    from safetensors.torch import save as to_bytes
    from torch import nn

    config = {**head.info, "version": VERSION, "members": len(head.members)}
    text = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    weights = to_bytes(nn.ModuleList(head.members).state_dict())
    contents = {
        folder / WEIGHTS: weights,
        folder / CONFIG: text.encode(errors="backslashreplace"),
        folder / CARD: card.encode(),
    }
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_together(contents)


def read(folder: Path) -> Head:
    """Read a saved head.

    Raises:
        BiasError: Missing, damaged, or of another format: it has to be trained again.
    """
    from safetensors.torch import load as from_bytes
    from torch import nn

    with loading(f"regard head {folder}"):
        config = json.loads(read_text(folder / CONFIG))
        raw = (folder / WEIGHTS).read_bytes()
        if not isinstance(config, dict) or config.get("version") != VERSION:
            raise ValueError(f"{CONFIG} is not of version {VERSION}")
        tensors = from_bytes(raw)
        members = [
            network(tensors["0.0.weight"].shape[1]) for _ in range(config["members"])
        ]
        nn.ModuleList(members).load_state_dict(tensors)
        return Head(members, {**config, "sha256": hashlib.sha256(raw).hexdigest()})


def _fit(
    x: Features, y: Labels, held_x: Features, held_y: Labels, seed: int
) -> nn.Sequential:
    """Train one network; its weights are those at the lowest loss on the held-out fold."""
    import torch
    from sklearn.utils.class_weight import compute_class_weight
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = network(x.shape[1])
        weights = compute_class_weight("balanced", classes=np.array(CLASSES), y=y)
        loss_of = nn.CrossEntropyLoss(weight=torch.tensor(weights, dtype=torch.float32))
        optimiser = torch.optim.AdamW(net.parameters(), lr=4e-5, weight_decay=1e-2)
        xs, ys, held_xs, held_ys = map(torch.from_numpy, (x, y, held_x, held_y))
        best = math.inf
        waited = 0
        state = net.state_dict()
        for _ in range(EPOCHS):
            net.train()
            for batch in torch.randperm(len(ys)).split(64):
                optimiser.zero_grad()
                loss_of(net(xs[batch]), ys[batch]).backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimiser.step()
            net.eval()
            with torch.inference_mode():
                loss = float(nn.functional.cross_entropy(net(held_xs), held_ys))
            waited += 1
            if loss < best:
                best = loss
                waited = 0
                state = copy.deepcopy(net.state_dict())
            if waited >= PATIENCE:
                break
    net.load_state_dict(state)
    return net


def bias_check(women: Labels, men: Labels) -> tuple[bool, str]:
    """Check that the same sentences get the same labels about a woman and about a man, shape (m,) each.

    Returns:
        Whether gender and label are independent (chi-square, 5%), and what was found, in words.

    >>> bias_check(np.array([0, 1, 2]), np.array([0, 1, 2]))[0]
    True
    """
    counts = [np.bincount(side, minlength=len(REGARDS)) for side in (women, men)]
    if np.count_nonzero(sum(counts)) < 2:
        return False, "Bias check FAILED: all sentences get the same label"
    table = tuple(map(tuple, np.array(counts).tolist()))
    chi2, p, _, _ = chi_square(table)
    verdict = (
        "passed" if p >= ALPHA else "FAILED: the subject's gender moves the labels"
    )
    return p >= ALPHA, (
        f"Bias check {verdict}: chi-square {chi2:.2f}, p = {p:.3f}, N = {2 * len(women):,} (the same sentences about a "
        f"woman and a man; {100 * (women != men).mean():.1f}% change their label)"
    )


def _measures(true: Labels, guess: Labels) -> list[float]:
    """Return the accuracy of guessed labels, and their macro F1."""
    from sklearn.metrics import accuracy_score, f1_score

    macro_f1 = f1_score(true, guess, labels=CLASSES, average="macro", zero_division=0.0)
    return [accuracy_score(true, guess), macro_f1]


def _regards(
    head: Head, folds: Sequence[Head], fold_of: Labels, sides: Sequence[Features]
) -> list[Labels]:
    """Label sentences about women, and the same about men; those of a fold by the head that was not trained on them."""
    regards = []
    for side in sides:
        regard = head.probabilities(side).argmax(axis=1)
        for number, fold in enumerate(folds):
            held = fold_of == number
            regard[held] = fold.probabilities(side[held]).argmax(axis=1)
        regards.append(regard)
    return regards


def train(corpus: RegardCorpus, encode: Encode, encoder: str) -> tuple[Head, str]:
    """Train a head on five folds of a corpus, test it once and write its model card (Markdown).

    Where the bias check failed, the head's ``info`` has a ``warning``.

    Args:
        corpus: Labelled sentences.
        encode: Gives sentences' vectors.
        encoder: The name by which it is found when the head is used.
    """
    import pandas
    from sklearn.metrics import confusion_matrix
    from sklearn.model_selection import StratifiedKFold

    rows = [*corpus.dev, *corpus.test]
    dev = len(corpus.dev)
    neutral = [i for i, row in enumerate(rows) if row.gender == "N"]
    texts = [row.text for row in rows]
    for gender in GENDERS:
        texts += [with_subject(rows[i].text, corpus.language, gender) for i in neutral]
    x, women, men = np.split(encode(texts), [len(rows), len(rows) + len(neutral)])
    y = labels(corpus.dev)
    true = labels(corpus.test)
    folds = []
    fold_of = np.full(len(rows), -1)
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(x[:dev], y)
    for fold, (fit, held) in enumerate(splits):
        folds.append(Head([_fit(x[fit], y[fit], x[held], y[held], fold)]))
        fold_of[held] = fold
    head = Head([fold.members[0] for fold in folds])

    predicted = [each.probabilities(x[dev:]).argmax(axis=1) for each in (head, *folds)]
    measures = [_measures(true, guess) for guess in predicted]
    regards = _regards(head, folds, fold_of[neutral], (women, men))
    passed, bias = bias_check(*regards)

    source = f"{len(true)} test sentences of {corpus.name.partition(',')[0]}"
    measured: Data = {"accuracy": measures[0][0], "source": source}
    if corpus.language == "de":
        measured["generated"] = annotators.accuracy(
            lambda texts: head.probabilities(encode(texts))
        )
    head.info.update(
        encoder=encoder,
        data=corpus.name,
        data_sha256=corpus.sha256,
        recipe="paper",
        measured=measured,
        probe=probe(encode),
    )
    if not passed:
        head.info["warning"] = bias
    table = pandas.DataFrame(
        confusion_matrix(true, predicted[0], labels=CLASSES),
        pandas.Index(REGARDS, name="test sentences"),
        [f"called {name}" for name in REGARDS],
    )
    card = packaged_text("lm_eval_bias.tasks.regard", "data/head_card.md").format(
        encoder=encoder,
        corpus=corpus,
        right=accuracy_in_words(measured),
        tested=len(true),
        accuracy=measures[0],
        mean=np.mean(measures[1:], axis=0),
        spread=np.std(measures[1:], axis=0, ddof=1),
        bias=bias,
        table=table.to_markdown(),
    )
    return head, card


class Encoder:
    """A sentence encoder: texts to vectors, on the CPU."""

    def __init__(self, name: str) -> None:
        """Load a sentence-transformers model from a hub or a folder.

        Raises:
            BiasError: It cannot be had.
        """
        from sentence_transformers import SentenceTransformer

        self.name = name
        with loading(f"sentence encoder {name}"):
            self._model = SentenceTransformer(name, device="cpu")
        config = getattr(getattr(self._model[0], "auto_model", None), "config", None)
        self.revision = str(getattr(config, "_commit_hash", None) or "")

    def encode(self, texts: Sequence[str]) -> Features:
        """Return vectors of shape (number of texts, dimension), in the order of the texts."""
        show = len(texts) > 200 and sys.stderr.isatty()
        vectors = self._model.encode(
            list(texts), batch_size=BATCH, show_progress_bar=show, device="cpu"
        )
        return np.asarray(vectors, dtype=np.float32)


encoder = lru_cache(maxsize=2)(Encoder)


class HeadClassifier:
    """A head on its encoder's sentence vectors."""

    def __init__(self, name: str, head: Head, encoder: Encoder) -> None:
        """Join them.

        Raises:
            BiasError: The head was trained on vectors of another encoder.
        """
        actual = probe(encoder.encode)
        if not np.allclose(head.info["probe"], actual, atol=0.02, rtol=0.02):
            raise BiasError(
                f"classifier {name}: its head was trained with a different encoder from the one that is now at "
                f"{encoder.name}: train it again"
            )
        self._head, self._encoder = head, encoder
        detail = f"head {head.info['sha256'][:12]} on {encoder.name}"
        if encoder.revision:
            detail += f" at {encoder.revision}"
        detail += f", {head.info['data']}"
        warning = str(head.info.get("warning", ""))
        self.identity = Identity(
            name, detail, REGARDS, warning, head.info.get("measured")
        )

    def probabilities(self, texts: Sequence[str]) -> Array:
        """Return probabilities of negative, neutral and positive, shape (number of texts, 3)."""
        return self._head.probabilities(self._encoder.encode(texts))


def load_sbert(name: str, language: str) -> HeadClassifier:
    """Load the paper's head on an encoder (by default the language's); trained at first use, then kept in the cache.

    Raises:
        BiasError: The encoder or the corpus cannot be had.
    """
    model = encoder(name or ENCODERS[language])
    corpus = regard_corpus.load(language)
    key = f"{RECIPE}|{model.name}|{model.encode(['']).shape[1]}|{corpus.sha256}"
    digest = hashlib.sha256(key.encode()).hexdigest()
    folder = cache_dir() / "regard" / f"{language}-{digest[:16]}"
    label = f"sbert:{name}" if name else "sbert"
    try:
        return HeadClassifier(label, read(folder), model)
    except BiasError:
        logger.info(
            "training the regard head on %s, once (kept in %s)", model.name, folder
        )
    head, card = train(corpus, model.encode, model.name)
    save(folder, head, card)
    return HeadClassifier(label, read(folder), model)
