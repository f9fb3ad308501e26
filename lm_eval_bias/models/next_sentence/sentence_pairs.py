"""Pairs of sentences of which the second follows the first, or doesn't: built once, kept on disk.

Every sentence of the corpora is written to one Arrow file as it is segmented, with a hash, its article and its place
there; pairs are row numbers. Articles are divided into three parts that share no sentence: ``train``, ``held_out``
(which decides when to stop) and ``test`` (on which the reported accuracy is measured, once).
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import whole_folder
from lm_eval_bias.models.next_sentence.nsp_settings import Corpus, TrainingSettings

if TYPE_CHECKING:
    import pyarrow

PARTS = ("train", "held_out", "test")
# a sentence has at least so many words, and at most so many characters: anything else comes from tables
FEWEST_WORDS, LONGEST = 3, 600
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
        self._sentences = _read(folder)
        self.rows: Ints = np.load(
            folder / f"{part}.npy", mmap_mode="r", allow_pickle=False
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> SentencePair:
        first, second, follows = self.rows[number].tolist()
        texts = self._sentences["text"]
        return SentencePair(texts[first].as_py(), texts[second].as_py(), follows)

    def articles(self) -> Ints:
        """Return the article of every pair's context, ``[pairs]``."""
        return self._sentences["article"].to_numpy()[self.rows[:, 0]]


def _read(folder: Path) -> pyarrow.Table:
    import pyarrow

    return pyarrow.ipc.open_file(
        pyarrow.memory_map(str(folder / _SENTENCES))
    ).read_all()


def _write(corpora: Sequence[Corpus], folder: Path) -> tuple[int, str]:
    """Write all sentences that can be part of a pair; return the number of articles and their texts' SHA-256."""
    import pyarrow
    from sentencex import segment
    from tqdm import tqdm

    number, contents = 0, hashlib.sha256()

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal number
        for place, corpus in enumerate(corpora):
            for name, article in tqdm(
                corpus, desc=f"Segmenting {corpus.language}", unit=" articles"
            ):
                contents.update(json.dumps((name, article)).encode())
                paragraphs = article.encode(errors="replace").decode().split("\n\n")
                sentences: list[str] = []
                for paragraph in paragraphs:
                    line = " ".join(paragraph.split())
                    sentences += segment(corpus.language, line)
                for position, text in enumerate(map(str.strip, sentences)):
                    if len(text) <= LONGEST and text.count(" ") + 1 >= FEWEST_WORDS:
                        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
                        yield {
                            "text": text,
                            "hash": int.from_bytes(digest, "little"),
                            "article": number,
                            "position": position,
                            "corpus": place,
                        }
                number += 1

    numbers = dict.fromkeys(("article", "position", "corpus"), pyarrow.int32())
    schema = pyarrow.schema(
        {"text": pyarrow.large_string(), "hash": pyarrow.uint64(), **numbers}
    )
    every = rows()
    with (
        pyarrow.OSFile(str(folder / _SENTENCES), "wb") as file,
        pyarrow.ipc.new_file(file, schema) as writer,
    ):
        while batch := list(itertools.islice(every, 10_000)):
            writer.write_batch(pyarrow.RecordBatch.from_pylist(batch, schema=schema))
    return number, contents.hexdigest()


def _divide(
    following: Ints,
    articles: Ints,
    share: float,
    random: np.random.Generator,
    name: str,
) -> dict[str, Ints]:
    """Divide following sentences by whole articles; ``share`` of these are held out, and as many are for the test."""
    article_of = articles[following]
    numbers = random.permutation(np.unique(article_of))
    count = max(2, round(share * len(numbers)))
    if len(numbers) < 2 * count + 2:
        raise BiasError(
            f"--corpus {name}: {len(numbers)} articles with consecutive sentences: {2 * count + 2} are needed (two or "
            "more each to train, to stop and to test)"
        )
    part_of = np.full(int(numbers.max()) + 1, 0)
    part_of[numbers[:count]], part_of[numbers[count : 2 * count]] = 1, 2
    return {part: following[part_of[article_of] == i] for i, part in enumerate(PARTS)}


def _draw(following: Ints, articles: Ints, random: np.random.Generator) -> Ints:
    """Draw pairs in random order, ``[n, 3]``, from sentences that follow the one before them, ``[n]``.

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


def _combine(
    corpus_pairs: Sequence[Ints], most: int | None, random: np.random.Generator
) -> Ints:
    """Mix the pairs of all corpora, up to a number, half of each kind."""
    every = np.concatenate(corpus_pairs)
    kinds = [every[every[:, 2] == kind] for kind in (1, 0)]
    kinds = [pairs[random.permutation(len(pairs))] for pairs in kinds]
    total, smaller = sum(map(len, kinds)), min(map(len, kinds))
    size = min(total, most or total)
    balanced = [pairs[: min(len(pairs), smaller + 1)] for pairs in kinds]
    combined = np.concatenate(
        [balanced[0][: (size + 1) // 2], balanced[1][: size // 2]]
    )
    return combined[random.permutation(len(combined))]


def build(settings: TrainingSettings, folder: Path) -> None:
    """Build the pairs of a training's corpora, and keep them in a folder, whole or not at all.

    A sentence that a corpus repeats counts only where it stands first; nothing follows its copies. Nor does a pair span
    a sentence that was left out for its length. Each corpus has pairs of its own. A share of the articles is held out,
    and as many again are for the test, at least two each.

    Raises:
        BiasError: A corpus can't be had, or is too small.
    """
    with whole_folder(folder) as temporary:
        number, sha256 = _write(settings.corpora, temporary)
        table = _read(temporary)
        hashes, articles, positions, places = (
            table[name].to_numpy() for name in ("hash", "article", "position", "corpus")
        )
        first = np.zeros(len(hashes), bool)
        first[np.unique(hashes, return_index=True)[1]] = True
        follows = np.zeros(len(hashes), bool)
        follows[1:] = (
            (articles[1:] == articles[:-1])
            & (positions[1:] == positions[:-1] + 1)
            & first[1:]
            & first[:-1]
        )
        random = np.random.default_rng(settings.seed)
        parts: dict[str, list[Ints]] = {part: [] for part in PARTS}
        for place, corpus in enumerate(settings.corpora):
            following = np.flatnonzero(follows & (places == place)).astype(np.int32)
            divided = _divide(
                following, articles, settings.held_out, random, corpus.source
            )
            for part, of_part in divided.items():
                parts[part].append(_draw(of_part, articles, random))
        counts = {}
        for part, corpus_pairs in parts.items():
            most = settings.max_pairs if part == "train" else settings.max_held_out
            pairs = _combine(corpus_pairs, most, random)
            np.save(temporary / f"{part}.npy", pairs)
            counts[part] = {"pairs": len(pairs), "follow": int(pairs[:, 2].sum())}
        facts = {
            "sha256": sha256,
            "articles": number,
            "sentences": len(hashes),
            "pairs": counts,
            "repeated": int((~first).sum()),
        }
        (temporary / ABOUT).write_text(
            json.dumps(facts, indent=2) + "\n", encoding="utf-8"
        )
