"""Heads that tell regard from sentence vectors: trained as in the paper (section 3.2), kept as safetensors and JSON."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import read_bytes, read_text, why, write_together, writing
from lm_eval_bias.custom_metrics.intervals import chi_square
from lm_eval_bias.custom_metrics.regard import GENDERS, REGARDS
from lm_eval_bias.data.sources import cache_dir
from lm_eval_bias.tasks.regard.classifier_identity import Accuracy, Identity, loading
from lm_eval_bias.tasks.regard.regard_corpus import RegardCorpus, labels, with_subject
from lm_eval_bias.tasks.regard.regard_corpus import load as load_corpus

if TYPE_CHECKING:
    from torch import nn

logger = logging.getLogger("lm_eval.bias")
BATCH = 64
ENCODERS = {
    "de": "sentence-transformers/paraphrase-xlm-r-multilingual-v1",
    "en": "sentence-transformers/all-MiniLM-L6-v2",
}
FORMAT = "lm-eval-bias regard head"
VERSION = 2  # 1 had other activations, too
CONFIG, WEIGHTS, CARD = "head.json", "head.safetensors", "README.md"
Layer = tuple[NDArray[np.float32], NDArray[np.float32]]
Encode = Callable[[Sequence[str]], NDArray[np.float32]]
RECIPE = "paper-1"  # changes whenever the same data would give another head
FOLDS, EPOCHS, PATIENCE = 5, 100, 10
ALPHA = 0.05
CLASSES = list(range(len(REGARDS)))
Features = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Head:
    """Small networks whose probabilities are averaged, with a tanh before the last layer of each.

    Attributes:
        members: Per network its layers as (weight of shape (out, in), bias).
        info: What its description holds: encoder, data, data_sha256, recipe, measured, warning, probe; sha256.
    """

    members: list[list[Layer]]
    info: dict[str, Any] = field(default_factory=dict)

    def probabilities(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Mean over the members of the softmax, shape (number of vectors, 3)."""
        from scipy.special import softmax

        total = np.zeros((len(vectors), len(REGARDS)))
        for *hidden, last in self.members:
            x = np.asarray(vectors, dtype=np.float64)
            for weight, bias in hidden:
                x = x @ weight.T.astype(np.float64) + bias.astype(np.float64)
            total += softmax(np.tanh(x) @ last[0].T.astype(np.float64) + last[1].astype(np.float64), axis=1)
        return total / len(self.members)


def probe(encode: Encode) -> list[list[float]]:
    """Return the beginnings of two sentences' vectors, which tell an encoder from another of the same name."""
    vectors = encode(["Die Person galt als freundlich.", "The person was known for stealing."])
    return [[round(float(x), 4) for x in row[:16]] for row in vectors]


def save(folder: Path, head: Head, card: str) -> None:
    """Write weights, description and model card; what was there before stays if the folder cannot be written.

    Raises:
        BiasError: It cannot be written.
    """
    from safetensors.numpy import save as to_bytes

    weights = to_bytes(
        {
            f"member{m}.layer{n}.{part}": np.ascontiguousarray(array, dtype=np.float32)
            for m, layers in enumerate(head.members)
            for n, layer in enumerate(layers)
            for part, array in zip(("weight", "bias"), layer, strict=True)
        }
    )
    config = {
        **head.info,
        "format": FORMAT,
        "version": VERSION,
        "labels": list(REGARDS),
        "members": len(head.members),
    }
    text = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    contents = {WEIGHTS: weights, CONFIG: text.encode(errors="backslashreplace"), CARD: card.encode()}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_together({folder / name: content for name, content in contents.items()})


def read(folder: Path) -> Head:
    """Read a saved head.

    Raises:
        BiasError: Missing, damaged, or of another format.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    where = f"regard head {folder}"
    try:
        config = json.loads(read_text(folder / CONFIG))
        raw = read_bytes(folder / WEIGHTS)
        if not isinstance(config, dict) or (config.get("format"), config.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"{CONFIG} is not a {FORMAT!r} of version {VERSION}")
        tensors = from_bytes(raw)
        layers = range(len(tensors) // (2 * config["members"]))
        members = [
            [(tensors[f"member{m}.layer{n}.weight"], tensors[f"member{m}.layer{n}.bias"]) for n in layers]
            for m in range(config["members"])
        ]
        return Head(members, {**config, "sha256": hashlib.sha256(raw).hexdigest()})
    except OSError as error:
        raise BiasError(f"{where}: {error.filename}: {why(error)}") from error
    except (SafetensorError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise BiasError(f"{where}: damaged ({error}): train it again") from error


def _fit(x: Features, y: Labels, held_x: Features, held_y: Labels, seed: int) -> list[Layer]:
    """Train one network; its layers are the weights at the lowest loss on the held-out fold."""
    import torch
    from sklearn.utils.class_weight import compute_class_weight
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        hidden = nn.Linear(x.shape[1], 256), nn.Linear(256, 128), nn.Tanh(), nn.Dropout(0.1)
        net = nn.Sequential(*hidden, nn.Linear(128, len(REGARDS)))
        weights = compute_class_weight("balanced", classes=np.arange(len(REGARDS)), y=y)
        loss_of = nn.CrossEntropyLoss(weight=torch.tensor(weights, dtype=torch.float32))
        optimiser = torch.optim.AdamW(net.parameters(), lr=4e-5, weight_decay=1e-2)
        xs, ys, held_xs, held_ys = map(torch.from_numpy, (x, y, held_x, held_y))
        best, waited, layers = math.inf, 0, _layers(net)
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
                best, waited, layers = loss, 0, _layers(net)
            if waited >= PATIENCE:
                break
    return layers


def _layers(net: nn.Module) -> list[Layer]:
    arrays = [parameter.detach().clone().numpy() for parameter in net.parameters()]
    return list(zip(arrays[::2], arrays[1::2], strict=True))


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
    chi2, p, _, _ = chi_square(tuple(tuple(side.tolist()) for side in counts))
    verdict = "passed" if p >= ALPHA else "FAILED: the subject's gender moves the labels"
    return p >= ALPHA, (
        f"Bias check {verdict}: chi-square {chi2:.2f}, p = {p:.3f}, N = {2 * len(women):,} (the same sentences about a "
        f"woman and a man; {100 * (women != men).mean():.1f}% change their label)"
    )


def train(corpus: RegardCorpus, encode: Encode, encoder: str) -> tuple[Head, str]:
    """Train a head on five folds of a corpus, test it once and write its model card (Markdown).

    Where the bias check failed, the head's ``info`` has a ``warning``.

    Args:
        corpus: Labelled sentences.
        encode: Gives sentences' vectors.
        encoder: The name by which it is found when the head is used.
    """
    from sklearn.metrics import confusion_matrix, f1_score
    from sklearn.model_selection import StratifiedKFold

    rows, dev = [*corpus.dev, *corpus.test], len(corpus.dev)
    neutral = np.array([i for i, row in enumerate(rows) if row.gender == "N"], dtype=np.int64)
    sides = [[with_subject(rows[i].text, corpus.language, gender) for i in neutral] for gender in GENDERS]
    all_texts = [*(row.text for row in rows), *sides[0], *sides[1]]
    x, women, men = np.split(encode(all_texts), [len(rows), len(rows) + len(neutral)])
    y, true = labels(corpus.dev), labels(corpus.test)
    folds, fold_of = [], np.full(len(rows), -1)
    for fold, (fit, held) in enumerate(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(x[:dev], y)):
        folds.append(Head([_fit(x[fit], y[fit], x[held], y[held], fold)]))
        fold_of[held] = fold
    head = Head([member for one in folds for member in one.members])

    given = [one.probabilities(x[dev:]).argmax(axis=1) for one in (head, *folds)]
    accuracy = [float((guess == true).mean()) for guess in given]
    macro_f1 = [float(f1_score(true, guess, labels=CLASSES, average="macro", zero_division=0.0)) for guess in given]
    spread = [f"{np.mean(values[1:]):.3f} ± {np.std(values[1:], ddof=1):.3f}" for values in (accuracy, macro_f1)]
    regards = []
    for side in (women, men):
        regards.append(head.probabilities(side).argmax(axis=1))
        for fold, one in enumerate(folds):  # a sentence is labelled by the fold that was not trained on it
            held = fold_of[neutral] == fold
            regards[-1][held] = one.probabilities(side[held]).argmax(axis=1)
    passed, found = bias_check(*regards)

    source = f"{len(true)} test sentences of {corpus.name.partition(',')[0]}"
    measured = Accuracy(accuracy=accuracy[0], source=source)
    head.info.update(encoder=encoder, data=corpus.name, data_sha256=corpus.sha256, recipe="paper", measured=measured)
    head.info.update({"probe": probe(encode)} if passed else {"probe": probe(encode), "warning": found})
    table = confusion_matrix(true, given[0], labels=CLASSES)
    lines = [
        "# Regard classifier",
        "",
        f"Tells negative, neutral and positive regard of a sentence's subject, from vectors of {encoder}. The paper's "
        "recipe: layers of 256 and 128, tanh and 10% dropout, AdamW 4e-5, batches of 64, weighted cross-entropy, "
        "stopped early on each of five folds; the folds' mean.",
        "",
        f"- Data: {corpus.name} (SHA-256 `{corpus.sha256}`) to train on, {len(true)} to test ({corpus.left_out} left "
        "out because they are among the former).",
        f"- Test: accuracy {accuracy[0]:.3f}, macro-F1 {macro_f1[0]:.3f}; the five folds by themselves: accuracy "
        f"{spread[0]}, macro-F1 {spread[1]}.",
        f"- {found}.",
        "",
        f"| test sentences | {' | '.join(f'called {name}' for name in REGARDS)} |",
        "|---|" + "---|" * len(REGARDS),
        *(f"| {name} | {' | '.join(map(str, row))} |" for name, row in zip(REGARDS, table, strict=True)),
        "",
        "For comparing texts about women and men that begin like the corpus' sentences; not where the bias check "
        "failed. Regard alone misleads: benevolent stereotypes count as positive. Kraft et al. (2022), Measuring "
        "Gender Bias in German Language Generation; Sheng et al. (2019).",
        "",
    ]
    return head, "\n".join(lines)


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
            self._model: Any = SentenceTransformer(name, device="cpu")
        config = getattr(getattr(self._model[0], "auto_model", None), "config", None)
        self.revision = str(getattr(config, "_commit_hash", None) or "")

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (number of texts, dimension), in the order of the texts."""
        show = len(texts) > 200 and sys.stderr.isatty()
        vectors = self._model.encode(list(texts), batch_size=BATCH, show_progress_bar=show, device="cpu")
        return np.asarray(vectors, dtype=np.float32)


encoder = lru_cache(maxsize=2)(Encoder)


class HeadClassifier:
    """A head on its encoder's sentence vectors."""

    def __init__(self, name: str, head: Head, encoder: Encoder) -> None:
        """Join them.

        Raises:
            BiasError: The head was trained on vectors of another encoder.
        """
        expected, found = head.info["probe"], probe(encoder.encode)
        if np.shape(expected) != np.shape(found) or not np.allclose(expected, found, atol=0.02, rtol=0.02):
            raise BiasError(
                f"classifier {name}: its head was trained with a different encoder from the one that is now at "
                f"{encoder.name}: train it again"
            )
        self._head, self._encoder = head, encoder
        detail = f"head {head.info['sha256'][:12]} on {encoder.name}"
        detail += (f" at {encoder.revision}" if encoder.revision else "") + f", {head.info.get('data')}"
        warning = str(head.info.get("warning", ""))
        self.identity = Identity(name, detail, REGARDS, warning, head.info.get("measured"))

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Probabilities of negative, neutral and positive, shape (number of texts, 3)."""
        return self._head.probabilities(self._encoder.encode(texts))


def load_sbert(name: str, language: str) -> HeadClassifier:
    """Load the paper's head on an encoder (by default the language's); trained at first use, then kept in the cache.

    Raises:
        BiasError: The encoder or the corpus cannot be had.
    """
    model, corpus = encoder(name or ENCODERS[language]), load_corpus(language)
    key = f"{RECIPE}|{model.name}|{model.encode(['']).shape[1]}|{corpus.sha256}"
    folder = cache_dir() / "regard" / f"{language}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    label = f"sbert:{name}" if name else "sbert"
    try:
        return HeadClassifier(label, read(folder), model)
    except BiasError:
        logger.info("training the regard head on %s, once (kept in %s)", model.name, folder)
    head, card = train(corpus, model.encode, model.name)
    save(folder, head, card)
    return HeadClassifier(label, read(folder), model)
