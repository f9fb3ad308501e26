"""Pairs of sentences of which the second follows the first, or doesn't: built once, kept on disk.

Every sentence of the corpus is written to one Arrow file as it is segmented, with a hash, its article and its place
there; pairs are row numbers. Articles are divided into three parts that share no sentence: ``train``, ``held_out``
(which decides when to stop) and ``test`` (on which the reported accuracy is measured, once).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import datasets
import numpy as np
from datasets.arrow_writer import ArrowWriter
from numpy.typing import NDArray

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import whole_folder
from lm_eval_bias.models.next_sentence.nsp_settings import TrainingSettings

PARTS = ("train", "held_out", "test")
# a sentence has at least so many words, and at most so many characters: anything else comes from tables
FEWEST_WORDS = 3
LONGEST = 600
ABOUT = "about.json"  # what the pairs in a folder are made of, and how many there are
_SENTENCES = "sentences.arrow"
Ints = NDArray[np.int32]


class SentencePair(NamedTuple):
    """Two sentences; ``follows`` is 1 where the second follows the first in its article, else 0."""

    context: str
    candidate: str
    follows: int


class Pairs:
    """The pairs of one part; their texts are read from the disk on demand."""

    def __init__(self, folder: Path, part: str) -> None:
        """Open a part, one of :data:`PARTS`, of what :func:`build` put in a folder."""
        self._sentences = datasets.Dataset.from_file(str(folder / _SENTENCES))
        self.rows: Ints = np.load(
            folder / f"{part}.npy", mmap_mode="r", allow_pickle=False
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> SentencePair:
        first, second, follows = self.rows[number].tolist()
        context, candidate = self._sentences[[first, second]]["text"]
        return SentencePair(context, candidate, follows)

    def articles(self) -> Ints:
        """Return the article of every pair's context, ``[pairs]``."""
        articles = self._sentences.data["article"].to_numpy()
        return articles[self.rows[:, 0]]


def _write(settings: TrainingSettings, path: Path) -> None:
    """Write all sentences that can be part of a pair."""
    from sentencex import segment

    features = datasets.Features(
        article=datasets.Value("int32"),
        language=datasets.Value("string"),
        position=datasets.Value("int32"),
        text=datasets.Value("large_string"),
        hash=datasets.Value("int64"),
    )
    with ArrowWriter(path=str(path), features=features) as writer:
        for number, (language, article) in enumerate(settings.articles()):
            sentences = []
            for paragraph in article.encode(errors="replace").decode().split("\n\n"):
                line = " ".join(paragraph.split())
                sentences += segment(language, line)
            for position, text in enumerate(map(str.strip, sentences)):
                if len(text) <= LONGEST and text.count(" ") + 1 >= FEWEST_WORDS:
                    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
                    row = {"article": number, "position": position, "text": text}
                    row["language"] = language
                    row["hash"] = int.from_bytes(digest, "little", signed=True)
                    writer.write(row)
        writer.finalize()


def _divide(
    following: Ints, articles: Ints, share: float, random: np.random.Generator
) -> list[Ints]:
    """Divide following sentences by whole articles; ``share`` of these are held out, and as many are for the test."""
    article_of = articles[following]
    numbers = random.permutation(np.unique(article_of))
    count = max(2, round(share * len(numbers)))
    if len(numbers) < 2 * count + 2:
        raise BiasError(
            f"--corpus: {len(numbers)} articles with consecutive sentences: {2 * count + 2} are needed (two or "
            "more each to train, to stop and to test)"
        )
    held_out, test, train = np.split(numbers, [count, 2 * count])
    return [following[np.isin(article_of, part)] for part in (train, held_out, test)]


def _draw(following: Ints, articles: Ints, random: np.random.Generator) -> Ints:
    """Draw pairs, ``[n, 3]``, from sentences that follow the one before them, ``[n]``.

    In every other pair the candidate is drawn from those that follow something in another article instead, so that
    candidates of both kinds are of the same kind.
    """
    order = random.permutation(len(following))
    pairs = np.stack(
        [following[order] - 1, following[order], np.ones(len(following))], axis=1
    ).astype(np.int32)
    article_of = articles[following]  # sorted: an article's sentences stand together
    negatives = pairs[1::2]
    starts = np.searchsorted(article_of, articles[negatives[:, 0]], "left")
    ends = np.searchsorted(article_of, articles[negatives[:, 0]], "right")
    indices = random.integers(0, len(following) - (ends - starts))
    negatives[:, 1] = following[indices + np.where(indices >= starts, ends - starts, 0)]
    negatives[:, 2] = 0
    return pairs


def build(settings: TrainingSettings, folder: Path) -> None:
    """Build the pairs of a training's corpora, and keep them in a folder, whole or not at all.

    Both sentences of a pair are of one language: else language alone would tell what follows what. Each language has as
    many of the pairs.

    A sentence that the corpus repeats counts only where it stands first; nothing follows its copies. Nor does a pair
    span a sentence that was left out for its length. A share of the articles is held out, and as many again are for the
    test, at least two each.

    Raises:
        BiasError: The corpus can't be had, or is too small.
    """
    with whole_folder(folder) as temporary:
        _write(settings, temporary / _SENTENCES)
        sentences = datasets.Dataset.from_file(str(temporary / _SENTENCES))
        table = sentences.remove_columns("text").to_pandas()
        first = ~table["hash"].duplicated()
        follows = (
            table["article"].diff().eq(0)
            & table["position"].diff().eq(1)
            & first
            & first.shift(fill_value=False)
        )
        articles = table["article"].to_numpy()
        random = np.random.default_rng(settings.seed)
        divided = []
        for language in table["language"].unique():
            following = np.flatnonzero(follows & table["language"].eq(language))
            divided.append(
                _divide(following.astype(np.int32), articles, settings.held_out, random)
            )
        counts = {}
        for part, by_language in zip(PARTS, zip(*divided, strict=True), strict=True):
            most = settings.max_pairs if part == "train" else settings.max_held_out
            if most is not None:
                most = most // len(by_language) or 1
            drawn = [_draw(one, articles, random)[:most] for one in by_language]
            pairs = random.permutation(np.concatenate(drawn))
            np.save(temporary / f"{part}.npy", pairs)
            counts[part] = {"pairs": len(pairs), "follow": int(pairs[:, 2].sum())}
        facts = {
            "sha256": hashlib.sha256(table["hash"].to_numpy().tobytes()).hexdigest(),
            "articles": table["article"].nunique(),
            "sentences": len(table),
            "pairs": counts,
            "repeated": int((~first).sum()),
        }
        (temporary / ABOUT).write_text(json.dumps(facts), encoding="utf-8")
