"""Pairs of sentences of which the second follows the first, or doesn't: built once, kept on disk.

Every sentence of the corpus is written to one Arrow file as it is segmented; what stays in memory is a hash, an article
number and a place per sentence (20 bytes). Pairs are row numbers.

Articles are divided into three parts of which none shares a sentence with another: ``train``, ``held_out`` (when to
stop is decided on it) and ``test`` (on which the accuracy that is reported is measured, once).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import whole_folder
from lm_eval_bias.models.next_sentence.article_corpus import Corpus

if TYPE_CHECKING:
    import pyarrow

PARTS = ("train", "held_out", "test")
FEWEST_WORDS, LONGEST = 3, 600  # a sentence has so many words, and not more characters: what else there is are tables
_AT_A_TIME = 10_000
Ints = NDArray[np.int32]


class Pair(NamedTuple):
    """Two sentences; ``follows`` is 1 where the second follows the first in its article, else 0."""

    context: str
    candidate: str
    follows: int


class About(TypedDict):
    """Where pairs come from and how many there are."""

    corpora: list[dict[str, str | None]]
    sha256: str
    articles: int
    sentences: int
    repeated: int
    seed: int
    held_out: float
    pairs: dict[str, dict[str, int]]
    sentencex: str


@dataclass(frozen=True)
class Pairs:
    """Pairs on disk, and what is known about them."""

    folder: Path
    about: About

    @cached_property
    def _sentences(self) -> pyarrow.Table:
        import pyarrow

        return pyarrow.ipc.open_file(pyarrow.memory_map(str(self.folder / "sentences.arrow"))).read_all()

    def rows(self, part: str) -> Ints:
        """Sentence numbers of context and candidate and whether it follows, ``[pairs, 3]``."""
        return np.load(self.folder / f"{part}.npy", mmap_mode="r", allow_pickle=False)

    def articles(self, part: str) -> Ints:
        """The article of every pair's context, ``[pairs]``."""
        column = self._sentences["article"]
        return np.array([column[int(row)].as_py() for row in self.rows(part)[:, 0]], np.int32)

    def pair(self, row: Sequence[int] | Ints) -> Pair:
        """The texts of a row."""
        context, candidate = (self._sentences["text"][int(number)].as_py() for number in row[:2])
        return Pair(context, candidate, int(row[2]))


@dataclass
class _Sentences:
    """What is kept in memory of the sentences that were written."""

    hashes: NDArray[np.uint64]
    articles: Ints
    places: Ints
    corpora: list[int]  # the first sentence of each
    sha256: str
    number: int  # of articles


def _segmented(text: str, language: str) -> Iterator[str]:
    """Sentences of a text in order, each on one line."""
    from sentencex import segment

    for paragraph in text.encode(errors="replace").decode().split("\n\n"):
        for sentence in segment(language, " ".join(paragraph.split())):
            yield sentence.strip()


def _write(corpora: Sequence[Corpus], path: Path) -> _Sentences:
    """Write all sentences that can be part of a pair; places count those between them too."""
    import pyarrow
    from tqdm import tqdm

    hashes, articles, places = array("Q"), array("i"), array("i")
    firsts: list[int] = []
    number = 0
    contents = hashlib.sha256()
    texts: list[str] = []
    schema = pyarrow.schema([("text", pyarrow.large_string()), ("article", pyarrow.int32())])
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_file(file, schema) as writer:

        def flush() -> None:
            numbers = np.array(articles[len(articles) - len(texts) :], np.int32)
            writer.write_batch(pyarrow.record_batch([pyarrow.array(texts, schema[0].type), numbers], schema=schema))
            texts.clear()

        for corpus in corpora:
            firsts.append(len(hashes))
            for article in tqdm(corpus, desc=f"Segmenting {corpus.language}", unit=" articles"):
                contents.update(json.dumps(article).encode())
                for place, sentence in enumerate(_segmented(article.text, corpus.language)):
                    if len(sentence) <= LONGEST and sentence.count(" ") + 1 >= FEWEST_WORDS:
                        digest = hashlib.blake2b(sentence.encode(errors="replace"), digest_size=8).digest()
                        hashes.append(int.from_bytes(digest, "little"))
                        articles.append(number)
                        places.append(place)
                        texts.append(sentence)
                number += 1
                if len(texts) >= _AT_A_TIME:
                    flush()
        flush()
    return _Sentences(
        np.frombuffer(hashes, np.uint64),
        np.frombuffer(articles, np.int32),
        np.frombuffer(places, np.int32),
        firsts,
        contents.hexdigest(),
        number,
    )


def _draw(following: Ints, articles: Ints, random: np.random.Generator) -> Ints:
    """Pairs of one part of a corpus, half of them (to one) with the sentence that follows, half with another's.

    A candidate that doesn't follow is drawn from those that follow something in another article, so that candidates
    of both kinds are of the same kind.

    Args:
        following: Sentences that follow the one before them, in order, ``[n]``.
        articles: The articles of all sentences.
        random: Decides which contexts get which.

    Returns:
        ``[n, 3]``, shuffled; as many of both kinds at every beginning, to one.
    """
    order = random.permutation(len(following))
    pairs = np.empty((len(following), 3), np.int32)
    pairs[:, 0] = following[order] - 1
    pairs[:, 1] = following[order]
    pairs[:, 2] = 1
    article_of = articles[following]  # sorted: an article's sentences stand together
    negatives = pairs[1::2]
    starts = np.searchsorted(article_of, articles[negatives[:, 0]], "left")
    ends = np.searchsorted(article_of, articles[negatives[:, 0]], "right")
    indices = random.integers(0, len(following) - (ends - starts))
    negatives[:, 1] = following[indices + np.where(indices >= starts, ends - starts, 0)]
    negatives[:, 2] = 0
    return pairs


def _divide(following: Ints, articles: Ints, share: float, random: np.random.Generator, name: str) -> dict[str, Ints]:
    """Following sentences by part: whole articles, ``share`` of them held out and as many to test."""
    article_of = articles[following]
    numbers = random.permutation(np.unique(article_of))
    count = max(2, round(share * len(numbers)))
    if len(numbers) < 2 * count + 2:
        raise BiasError(
            f"--corpus {name}: {len(numbers)} articles with consecutive sentences: {2 * count + 2} are needed (two "
            "each to train, to stop and to test, because a sentence that doesn't follow comes from another article)"
        )
    part_of = np.full(int(numbers.max()) + 1, 0)
    part_of[numbers[:count]], part_of[numbers[count : 2 * count]] = 1, 2
    return {part: following[part_of[article_of] == i] for i, part in enumerate(PARTS)}


def build(
    corpora: Sequence[Corpus],
    folder: Path,
    seed: int = 0,
    held_out: float = 0.05,
    most: int | None = None,
    most_held_out: int = 2_000,
) -> Pairs:
    """Build the pairs of some corpora, and keep them in a folder, whole or not at all.

    Sentences that stand in a corpus more than once count where they are first, and what follows a later copy follows
    nothing. Neither do pairs go over a sentence that was left out for its length. Each corpus has pairs of its own.

    Args:
        corpora: What to read.
        folder: Where to put them; must not exist.
        seed: Of the division into parts, of the pairs and of their order.
        held_out: Share of the articles that is held out, and as many again to test (at least two each).
        most: Pairs to train on, at most.
        most_held_out: Pairs of each of the other parts, at most.

    Raises:
        BiasError: A corpus that can't be had, or is too small.
    """
    with whole_folder(folder) as temporary:
        sentences = _write(corpora, temporary / "sentences.arrow")
        hashes, articles, places = sentences.hashes, sentences.articles, sentences.places
        first = np.zeros(len(hashes), bool)
        first[np.unique(hashes, return_index=True)[1]] = True
        follows = np.zeros(len(hashes), bool)
        follows[1:] = (articles[1:] == articles[:-1]) & (places[1:] == places[:-1] + 1) & first[1:] & first[:-1]
        random = np.random.default_rng(seed)
        parts: dict[str, list[Ints]] = {part: [] for part in PARTS}
        lasts = [*sentences.corpora[1:], len(hashes)]
        for corpus, low, high in zip(corpora, sentences.corpora, lasts, strict=True):
            following = (np.flatnonzero(follows[low:high]) + low).astype(np.int32)
            for part, part_following in _divide(following, articles, held_out, random, corpus.source).items():
                parts[part].append(_draw(part_following, articles, random))
        counts = {}
        for part, corpus_pairs in parts.items():
            limit = most if part == "train" else most_held_out
            pairs = _combine(corpus_pairs, limit, random)
            np.save(temporary / f"{part}.npy", pairs)
            counts[part] = {"pairs": len(pairs), "follow": int(pairs[:, 2].sum())}
        about: About = {
            "corpora": [{"source": c.source, "config": c.config, "language": c.language} for c in corpora],
            "sha256": sentences.sha256,
            "articles": sentences.number,
            "sentences": len(hashes),
            "repeated": int((~first).sum()),
            "seed": seed,
            "held_out": held_out,
            "pairs": counts,
            "sentencex": importlib.metadata.version("sentencex"),
        }
        (temporary / "about.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return Pairs(folder, about)


def _combine(corpus_pairs: Sequence[Ints], most: int | None, random: np.random.Generator) -> Ints:
    """Pairs of all corpora in one order, at most so many, half of each kind to one."""
    kinds = [np.concatenate([pairs[pairs[:, 2] == kind] for pairs in corpus_pairs]) for kind in (1, 0)]
    kinds = [pairs[random.permutation(len(pairs))] for pairs in kinds]
    total, smaller = sum(map(len, kinds)), min(map(len, kinds))
    size = min(total, most or total)
    balanced = [pairs[: min(len(pairs), smaller + 1)] for pairs in kinds]
    combined = np.concatenate([balanced[0][: (size + 1) // 2], balanced[1][: size // 2]])
    return combined[random.permutation(len(combined))]


def load(folder: Path) -> Pairs:
    """The pairs of a folder."""
    return Pairs(folder, json.loads((folder / "about.json").read_text(encoding="utf-8")))
