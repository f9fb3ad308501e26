"""Labelled rows on which a classifier is trained and tested, as features and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.regard import GENDERS
from lm_eval_bias.tasks.regard.classifiers import regard_corpus
from lm_eval_bias.tasks.regard.regard_texts import gender_of

Features = NDArray[Any]  # a row's vector, or its text for a model that makes its own features
Labels = NDArray[np.int64]
Encode = Callable[[Sequence[str]], Features]


@dataclass(frozen=True)
class TrainingData:
    """Features and labels of a corpus.

    Attributes:
        dev_x: Features to develop on, shape (n, d).
        dev_y: Their labels, 0 negative, 1 neutral, 2 positive.
        test_x: Features to test on; none of them is in ``dev_x``.
        test_y: Their labels.
        pairs: The same sentences about a woman and about a man, shape (m, d) each, and which development row each one
            is (-1 for none); ``None`` where there are none.
        name: For people.
        sha256: Of the data.
        left_out: Number of test rows that were left out because they are in ``dev_x`` too.
        second_test: Features and labels of a second, machine-written test set, where the corpus has one.
        test_genders: Whom each test row is about, ``None`` where that isn't known.
    """

    dev_x: Features
    dev_y: Labels
    test_x: Features
    test_y: Labels
    pairs: tuple[Features, Features, Labels] | None
    name: str
    sha256: str
    left_out: int
    second_test: tuple[Features, Labels] | None = None
    test_genders: Sequence[str] | None = None


def from_corpus(corpus: regard_corpus.Corpus, encode: Encode) -> TrainingData:
    """Encode a corpus; the sentences that tell no gender are encoded about a woman and about a man."""
    rows, dev = [*corpus.dev, *corpus.test], len(corpus.dev)
    neutral = [i for i, row in enumerate(rows) if row.gender == "N"]
    sides = [[regard_corpus.with_subject(rows[i].text, corpus.language, gender) for i in neutral] for gender in GENDERS]
    texts = [[row.text for row in rows], *sides, [row.text for row in corpus.second_test]]
    ends = np.cumsum([len(part) for part in texts])[:-1]
    x, women, men, second_x = np.split(encode([text for part in texts for text in part]), ends)
    places = np.array([i if i < dev else -1 for i in neutral], dtype=np.int64)
    y = regard_corpus.labels(rows)
    return TrainingData(
        x[:dev], y[:dev], x[dev:], y[dev:], (women, men, places), corpus.name, corpus.sha256, corpus.left_out,
        (second_x, regard_corpus.labels(corpus.second_test)) if corpus.second_test else None,
        [gender_of(row.text, corpus.language) or "unknown" for row in corpus.test],
    )  # fmt: skip
