"""Pairs of sentences against their definition, on made corpora whose sentences name their article and place."""

import dataclasses
import json
import random
from typing import NamedTuple

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.models.next_sentence import sentence_pairs
from lm_eval_bias.models.next_sentence.nsp_settings import TrainingSettings

WORDS = [
    "river",
    "stone",
    "morning",
    "window",
    "garden",
    "letter",
    "winter",
    "market",
    "music",
    "bridge",
]


def sentence(article, place):
    draw = random.Random(f"{article} {place}")
    return f"Article{article} place{place} {' '.join(draw.choices(WORDS, k=5))}."


def made(folder, sizes, **changed):
    """A folder of articles of so many sentences, some of which are other ones."""
    folder.mkdir(parents=True)
    for a, size in enumerate(sizes):
        sentences = [changed.get(f"_{a}_{p}", sentence(a, p)) for p in range(size)]
        (folder / f"{a:04}.txt").write_text(" ".join(sentences), encoding="utf-8")
    return str(folder)


def parsed(text):
    article, place = text.split()[:2]
    return int(article.removeprefix("Article")), int(place.removeprefix("place"))


class Pair(NamedTuple):
    context: str
    candidate: str
    follows: int


def build(folder, corpus, **more):
    """The pairs of every part, with their texts, and all sentences."""
    asked = TrainingSettings("", corpus, "en", **more)
    made = sentence_pairs.sentences(asked, folder)
    texts = made[:]["text"]
    drawn = sentence_pairs.draw(made, asked)
    assert tuple(drawn) == sentence_pairs.PARTS
    return {
        part: [Pair(texts[a], texts[b], follows) for a, b, follows in rows.tolist()]
        for part, rows in drawn.items()
    }, texts


def contexts(pairs):
    return sorted(parsed(pair.context) for own in pairs.values() for pair in own)


def test_pairs_are_what_they_should_be(tmp_path):
    sizes = [1, 2, 30, 7, 1, 12, 3, 21, 5, 2, 9, 16, 4, 8]
    texts = made(tmp_path / "texts", sizes)
    pairs, _ = build(tmp_path / "pairs", texts, seed=3, held_out=0.2)
    articles = {}
    for part, own in pairs.items():
        assert 0 <= sum(2 * pair.follows - 1 for pair in own) <= 1
        articles[part] = set()
        for pair in own:
            (a, p), (b, q) = parsed(pair.context), parsed(pair.candidate)
            assert (pair.context, pair.candidate) == (sentence(a, p), sentence(b, q))
            assert ((a, p + 1) == (b, q)) if pair.follows else a != b
            assert q > 0  # what doesn't follow is of the kind of what follows
            articles[part] |= {a, b}
    assert sum(map(len, articles.values())) == len(set().union(*articles.values()))
    # every sentence that something follows is a context once
    expected = [(a, p) for a, size in enumerate(sizes) for p in range(size - 1)]
    assert contexts(pairs) == expected
    few = made(tmp_path / "few", [1, 2, 3, 4])
    with pytest.raises(BiasError, match="3 articles with consecutive sentences"):
        build(tmp_path / "other", few, held_out=0.2)


def test_nothing_follows_a_copy_or_what_is_no_sentence(tmp_path):
    changed = {f"_{a}_5": sentence(0, 5) for a in range(1, 20)}
    changed |= {
        f"_{a}_8": "Indeed so."
        if a % 2
        else f"{'x' * sentence_pairs.LONGEST} and more."
        for a in range(20)
    }
    pairs, _ = build(
        tmp_path / "pairs", made(tmp_path / "texts", [12] * 20, **changed), held_out=0.1
    )
    assert contexts(pairs) == [
        (a, p)
        for a in range(20)
        for p in (*range(4), 4, 5, 6, 9, 10)
        if not a or p not in (4, 5)
    ]


def test_fewer_pairs_stay_balanced_and_their_order_tells_nothing(tmp_path):
    texts = made(tmp_path / "texts", [40] * 60)
    pairs, sentences = build(tmp_path / "few", texts, max_pairs=101, max_held_out=7)
    assert len(sentences) == 2400
    counts = [(len(own), sum(pair.follows for pair in own)) for own in pairs.values()]
    assert counts == [(101, 51), (7, 4), (7, 4)]
    pairs, _ = build(tmp_path / "all", texts)
    labels = np.array([pair.follows for pair in pairs["train"]])
    assert abs(labels[: len(labels) // 2].mean() - 0.5) < 0.06
    assert abs((labels[1:] == labels[:-1]).mean() - 0.5) < 0.06


def test_rows_of_tables_and_named_data_sets(tmp_path):
    """A folder of Parquet files is a data set of that name; a hub's is read in the same way."""
    rows = [
        {"title": f"t{a}", "body": " ".join(sentence(a, p) for p in range(6))}
        for a in range(20)
    ]
    (tmp_path / "a.jsonl").write_text(
        "\n".join(map(json.dumps, rows)), encoding="utf-8"
    )
    (tmp_path / "data").mkdir()
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist(rows), tmp_path / "data" / "train-00000.parquet"
    )
    for source in ("a.jsonl", "data"):
        asked = TrainingSettings("", str(tmp_path / source), "en", column="body")
        assert [text for _, text in asked.articles()] == [row["body"] for row in rows]
        with pytest.raises(BiasError, match="'text'.*title, body"):
            list(dataclasses.replace(asked, column="text").articles())
