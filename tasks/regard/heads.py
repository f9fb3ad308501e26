"""Heads that tell regard from sentence vectors: trained as in the paper (section 3.2), kept as safetensors."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import os
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import packaged_text, write_together, writing
from lm_eval_bias.custom_metrics.intervals import Array, chi_square
from lm_eval_bias.custom_metrics.regard import GENDERS, REGARDS
from lm_eval_bias.data.sources import cache_dir
from lm_eval_bias.tasks.regard import annotators, regard_corpus
from lm_eval_bias.tasks.regard.classifier_identity import (
    Classifier,
    Identity,
    accuracy_in_words,
    loading,
    revision_of,
)
from lm_eval_bias.tasks.regard.regard_corpus import RegardCorpus, with_subject

if TYPE_CHECKING:
    from torch import nn

logger = logging.getLogger("lm_eval.bias")
BATCH = 64
ENCODERS = {
    "de": "sentence-transformers/paraphrase-xlm-r-multilingual-v1",
    "en": "sentence-transformers/all-MiniLM-L6-v2",
}
WEIGHTS, CARD = "head.safetensors", "README.md"
ABOUT = "regard head 4"  # in the weights' metadata; changes with their form
RECIPE = "paper-3"  # changes whenever the same data would give another head
FOLDS, EPOCHS, PATIENCE = 5, 100, 10
ALPHA = 0.05
NO_CHECK = "Bias check not made: there are no generated English texts to make it on"
Features = NDArray[np.float32]
Labels = NDArray[np.int64]
Encode = Callable[[Sequence[str]], Features]


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


class Head(NamedTuple):
    """A network with its metadata.

    Attributes:
        net: The network.
        info: Its encoder and that one's revision, data, recipe, measured, warning; of a file also its sha256.
    """

    net: nn.Sequential
    info: Data

    def probabilities(self, vectors: Array) -> Array:
        """Return the softmax in float64, shape (number of vectors, 3)."""
        import torch

        x = torch.from_numpy(np.asarray(vectors, dtype=np.float64))
        with torch.inference_mode():
            return self.net.double().eval()(x).softmax(dim=-1).numpy()


def save(folder: Path, head: Head, card: str) -> None:
    """Write weights and model card; what was there before stays if the folder cannot be written.

    Raises:
        BiasError: It cannot be written.
    """
    from safetensors.torch import save as to_bytes

    about = json.dumps(head.info, ensure_ascii=False, allow_nan=False)
    weights = to_bytes(head.net.float().state_dict(), {ABOUT: about})
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_together({folder / WEIGHTS: weights, folder / CARD: card.encode()})


def read(folder: Path) -> Head:
    """Read a saved head.

    Raises:
        BiasError: Missing, damaged, or of another form: it has to be trained again.
    """
    from safetensors import safe_open
    from safetensors.torch import load as from_bytes

    path = folder / WEIGHTS
    with loading(f"regard head {folder}"):
        raw = path.read_bytes()
        tensors = from_bytes(raw)
        with safe_open(path, "pt") as file:
            about = file.metadata() or {}
        if ABOUT not in about:
            raise ValueError("another version made it: train it again")
        net = network(tensors["0.weight"].shape[1])
        net.load_state_dict(tensors)
        digest = hashlib.sha256(raw).hexdigest()
        return Head(net, {**json.loads(about[ABOUT]), "sha256": digest})


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
        weights = compute_class_weight("balanced", classes=np.unique(y), y=y)
        loss_of = nn.CrossEntropyLoss(weight=torch.tensor(weights, dtype=torch.float32))
        optimiser = torch.optim.AdamW(net.parameters(), lr=4e-5, weight_decay=1e-2)
        xs, ys, held_xs, held_ys = map(torch.from_numpy, (x, y, held_x, held_y))
        losses: list[float] = []
        states = []
        for _ in range(EPOCHS):
            net.train()
            for batch in torch.randperm(len(ys)).split(BATCH):
                optimiser.zero_grad()
                loss_of(net(xs[batch]), ys[batch]).backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimiser.step()
            net.eval()
            with torch.inference_mode():
                loss = float(nn.functional.cross_entropy(net(held_xs), held_ys))
            losses.append(loss)
            states.append(copy.deepcopy(net.state_dict()))
            best = int(np.argmin(losses))
            if len(losses) > best + PATIENCE:
                break
    net.load_state_dict(states[best])
    return net


def bias_check(women: Labels, men: Labels) -> tuple[bool, str]:
    """Check that the same texts get the same labels about a woman and about a man, shape (m,) each.

    Returns:
        Whether gender and label are independent (chi-square, 5%), and what was found, in words.

    >>> bias_check(np.array([0, 1, 2]), np.array([0, 1, 2]))[0]
    True
    """
    counts = [np.bincount(side, minlength=len(REGARDS)) for side in (women, men)]
    if np.count_nonzero(sum(counts)) < 2:
        return False, "Bias check FAILED: all texts get the same label"
    chi2, p, _, _ = chi_square(tuple(map(tuple, np.array(counts).tolist())))
    verdict = (
        "passed" if p >= ALPHA else "FAILED: the subject's gender moves the labels"
    )
    return p >= ALPHA, (
        f"Bias check {verdict}: chi-square {chi2:.2f}, p = {p:.3f}, N = {2 * len(women):,} (the same texts about a "
        f"woman and a man; {100 * (women != men).mean():.1f}% change their label)"
    )


def train(corpus: RegardCorpus, encode: Encode, origin: Facts) -> tuple[Head, str]:
    """Train heads on five folds of a corpus, test each, and write the first one's model card (Markdown).

    As in the paper, the bias check takes generated texts, about women and again about men: there are none in English.
    Where it failed, or wasn't made, the head's ``info`` has a ``warning``.

    Args:
        corpus: Labelled sentences.
        encode: Gives sentences' vectors.
        origin: By which name (``encoder``) and ``revision`` the encoder is found when the head is used.
    """
    from sklearn.metrics import classification_report
    from sklearn.model_selection import StratifiedKFold

    x, test = (encode(part.text.tolist()) for part in (corpus.dev, corpus.test))
    y, true = (part.label.to_numpy() for part in (corpus.dev, corpus.test))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    info: Data = {**origin, "data": corpus.name}
    heads = []
    measures = []
    reported: Data = {"target_names": REGARDS, "labels": range(len(REGARDS))}
    report = partial(classification_report, true, zero_division=0.0, **reported)
    for number, (fit, held) in enumerate(folds.split(x, y)):
        net = _fit(x[fit], y[fit], x[held], y[held], number)
        heads.append(Head(net, info))
        guessed = heads[-1].probabilities(test).argmax(axis=1)
        measured = report(guessed, output_dict=True)
        measures.append([measured["accuracy"], measured["macro avg"]["f1-score"]])
    head = heads[0]

    def probabilities(texts: Sequence[str]) -> Array:
        return head.probabilities(encode(texts))

    info["measured"] = measured = {
        "accuracy": measures[0][0],
        "source": f"{len(true)} test sentences of {corpus.name.partition(',')[0]}",
    }
    passed, bias = False, NO_CHECK
    if corpus.language == "de":
        texts = [own.text for own in annotators.generated()]
        sides = []
        for gender in GENDERS:
            about = [with_subject(text, corpus.language, gender) for text in texts]
            sides.append(probabilities(about).argmax(axis=1))
        passed, bias = bias_check(*sides)
        measured["generated"] = annotators.accuracy(probabilities)
    if not passed:
        info["warning"] = bias
    card = packaged_text("lm_eval_bias.tasks.regard", "data/head_card.md").format(
        encoder=origin["encoder"],
        corpus=corpus,
        right=accuracy_in_words(measured),
        tested=len(true),
        measures=measures[0],
        mean=np.mean(measures, axis=0),
        spread=np.std(measures, axis=0, ddof=1),
        bias=bias,
        report=report(head.probabilities(test).argmax(axis=1)),
    )
    return head, card


@lru_cache(maxsize=2)
def encoder(name: str, revision: str | None = None) -> tuple[Encode, Facts]:
    """Load a sentence-transformers model from a hub or a folder, to be used on the CPU.

    Returns:
        What gives texts vectors, and by which name (``encoder``) and ``revision`` it is found again.

    Raises:
        BiasError: It cannot be had in that revision.
    """
    from sentence_transformers import SentenceTransformer

    with loading(f"sentence encoder {name}"):
        asked = None if os.path.isdir(name) else revision
        model = SentenceTransformer(name, device="cpu", revision=asked)
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    found = revision_of(name, config)
    if revision not in (None, found):
        raise BiasError(f"sentence encoder {name}: changed: train the head again")

    def encode(texts: Sequence[str]) -> Features:
        vectors = model.encode(list(texts), batch_size=BATCH, device="cpu")
        return np.asarray(vectors, dtype=np.float32)

    return encode, {"encoder": name, "revision": found}


def on_encoder(name: str, head: Head) -> Classifier:
    """Return the classifier of a head on its encoder's sentence vectors.

    Raises:
        BiasError: The encoder cannot be had.
    """
    info = head.info
    encode, origin = encoder(info["encoder"], info.get("revision"))
    detail = f"head {info['sha256'][:12]} on {origin['encoder']}"
    if origin["revision"]:
        detail += f" at {origin['revision']}"
    detail += f", {info['data']}"
    identity = Identity(
        name, detail, REGARDS, info.get("warning", ""), info.get("measured")
    )
    return Classifier(identity, lambda texts: head.probabilities(encode(texts)))


def sbert(name: str, language: str) -> Classifier:
    """Load the paper's head on an encoder (by default the language's); trained at first use, then kept in the cache.

    Raises:
        BiasError: The encoder or the corpus cannot be had.
    """
    encode, origin = encoder(name or ENCODERS[language])
    corpus = regard_corpus.load(language)
    key = "|".join([RECIPE, *origin.values(), corpus.sha256])
    digest = hashlib.sha256(key.encode()).hexdigest()
    folder = cache_dir() / "regard" / f"{language}-{digest[:16]}"
    try:
        head = read(folder)
    except BiasError:
        logger.info(
            "training the regard head on %s, once (kept in %s)",
            origin["encoder"],
            folder,
        )
        save(folder, *train(corpus, encode, origin))
        head = read(folder)
    return on_encoder(f"sbert:{name}" if name else "sbert", head)
