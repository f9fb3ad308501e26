"""Pairs of sentences of which the second follows the first, or doesn't.

Sentences are kept on disk by :mod:`datasets`; pairs are row numbers. Articles are divided into three parts that share
no sentence: ``train``, ``held_out`` (which decides when to stop) and ``test`` (on which the reported accuracy is
measured, once).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import datasets
import numpy as np
from datasets.exceptions import DatasetGenerationError
from numpy.typing import NDArray

from lm_eval_bias.core import Data
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.models.next_sentence.nsp_settings import TrainingSettings

PARTS = ("train", "held_out", "test")
# a sentence has at least so many words, and at most so many characters: anything else comes from tables
FEWEST_WORDS = 3
LONGEST = 600
Ints = NDArray[np.int32]


def _sentences(settings: TrainingSettings) -> Iterator[Data]:
    """Yield all sentences usable in a pair."""
    from sentencex import segment

    for number, (language, article) in enumerate(settings.articles()):
        sentences = []
        for paragraph in article.encode(errors="replace").decode().split("\n\n"):
            line = " ".join(paragraph.split())
            sentences += segment(language, line)
        for position, text in enumerate(map(str.strip, sentences)):
            if len(text) <= LONGEST and text.count(" ") + 1 >= FEWEST_WORDS:
                digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
                yield {
                    "article": number,
                    "language": language,
                    "position": position,
                    "text": text,
                    "hash": int.from_bytes(digest, "little", signed=True),
                }


def sentences(settings: TrainingSettings, folder: Path) -> datasets.Dataset:
    """Read all usable sentences of the corpora, and keep them in a folder.

    Raises:
        BiasError: The corpus can't be had.
    """
    try:
        return datasets.Dataset.from_generator(
            _sentences, cache_dir=str(folder), gen_kwargs={"settings": settings}
        )
    except DatasetGenerationError as error:
        raise error.__cause__ or error from None


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
    """Draw pairs, ``[n, 3]``, from the indices of sentences that follow another, ``[n]``.

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


def draw(made: datasets.Dataset, settings: TrainingSettings) -> dict[str, Ints]:
    """Draw the pairs of each part, ``[pairs, 3]``: rows of context and candidate, and whether this follows that.

    Both sentences of a pair are of one language: else language alone would tell what follows what. Each language has as
    many of the pairs.

    A sentence that the corpus repeats counts only where it stands first; nothing follows its copies. Nor does a pair
    span a sentence that was left out for its length. A share of the articles is held out, and as many again are for the
    test, at least two each.

    Raises:
        BiasError: The corpus is too small.
    """
    table = made.remove_columns("text").to_pandas()
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
    pairs = {}
    for part, by_language in zip(PARTS, zip(*divided, strict=True), strict=True):
        most = settings.max_pairs if part == "train" else settings.max_held_out
        if most is not None:
            most = most // len(by_language) or 1
        drawn = [_draw(one, articles, random)[:most] for one in by_language]
        pairs[part] = random.permutation(np.concatenate(drawn))
    return pairs
