"""Pairs of sentences against their definition, on made corpora whose sentences name their article and place."""

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_bias.errors import BiasError
from lm_eval_bias.models.next_sentence import article_corpus, sentence_pairs

WORDS = ["river", "stone", "morning", "window", "garden", "letter", "winter", "market", "music", "bridge"]


def sentence(article, place):
    draw = random.Random(f"{article} {place}")
    return f"Article{article} place{place} {' '.join(draw.choices(WORDS, k=5))}."


def written(folder, articles):
    """A corpus of these articles: a list of sentences each."""
    folder.mkdir(parents=True)
    for number, sentences in enumerate(articles):
        (folder / f"{number:04}.txt").write_text(" ".join(sentences), encoding="utf-8")
    return article_corpus.Corpus(str(folder), "en")


def made(folder, sizes):
    return written(folder, [[sentence(a, p) for p in range(size)] for a, size in enumerate(sizes)])


def parsed(text):
    article, place = text.split()[:2]
    return int(article.removeprefix("Article")), int(place.removeprefix("place"))


def every(found):
    return {part: [found.pair(row) for row in found.rows(part)] for part in sentence_pairs.PARTS}


@settings(max_examples=12, deadline=None)
@given(sizes=st.lists(st.integers(1, 30), min_size=12, max_size=40), seed=st.integers(0, 2**32 - 1))
def test_pairs_are_what_they_should_be(sizes, seed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    try:
        found = sentence_pairs.build([made(folder / "texts", sizes)], folder / "pairs", seed, held_out=0.2)
    except BiasError as error:
        usable = sum(size > 1 for size in sizes)
        assert str(error).startswith(f"--corpus {folder}/texts: {usable} articles")  # noqa: PT017
        assert usable < 2 * max(2, round(0.2 * usable)) + 2
        return
    articles = {}
    contexts = []
    for part, own in every(found).items():
        labels = [pair.follows for pair in own]
        assert 0 <= sum(labels) - (len(labels) - sum(labels)) <= 1
        used = set()
        for pair in own:
            (a, p), (b, q) = parsed(pair.context), parsed(pair.candidate)
            assert (pair.context, pair.candidate) == (sentence(a, p), sentence(b, q))
            assert ((a, p + 1) == (b, q)) if pair.follows else a != b
            assert q > 0  # what doesn't follow is of the kind of what follows
            used |= {a, b}
            contexts.append((a, p))
        articles[part] = used
        assert [parsed(pair.context)[0] for pair in own] == [int(n) for n in found.articles(part)]
    assert not articles["train"] & articles["held_out"]
    assert not articles["train"] & articles["test"]
    assert not articles["held_out"] & articles["test"]
    # every sentence that something follows is a context once
    assert sorted(contexts) == [(a, p) for a, size in enumerate(sizes) for p in range(size - 1)]


def test_same_seed_same_pairs_and_another_seed_others(tmp_path):
    texts = made(tmp_path / "texts", [20] * 30)
    first, again, other = (
        sentence_pairs.build([texts], tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert every(first) == every(again) == every(sentence_pairs.load(tmp_path / "a"))
    assert every(first) != every(other)
    assert first.about == again.about


def test_what_stands_there_twice_counts_once_and_nothing_follows_a_copy(tmp_path):
    articles = [[sentence(a, p) for p in range(10)] for a in range(20)]
    for a in range(1, 20):
        articles[a][5] = sentence(0, 5)
    found = sentence_pairs.build([written(tmp_path / "texts", articles)], tmp_path / "pairs", held_out=0.1)
    assert found.about["repeated"] == 19
    contexts = sorted(parsed(pair.context) for own in every(found).values() for pair in own)
    assert contexts == [(a, p) for a in range(20) for p in range(9) if a == 0 or p not in (4, 5)]


def test_pairs_do_not_go_over_what_is_no_sentence(tmp_path):
    articles = [[sentence(a, p) for p in range(8)] for a in range(20)]
    for a in range(20):
        articles[a][3] = "Indeed so." if a % 2 else f"{'x' * sentence_pairs.LONGEST} and more."
    found = sentence_pairs.build([written(tmp_path / "texts", articles)], tmp_path / "pairs", held_out=0.1)
    contexts = {parsed(pair.context)[1] for own in every(found).values() for pair in own}
    assert contexts == {0, 1, 4, 5, 6}


def test_fewer_pairs_stay_balanced(tmp_path):
    texts = made(tmp_path / "texts", [20] * 30)
    found = sentence_pairs.build([texts], tmp_path / "pairs", most=101, most_held_out=7)
    assert found.about["pairs"] == {
        "train": {"pairs": 101, "follow": 51},
        "held_out": {"pairs": 7, "follow": 4},
        "test": {"pairs": 7, "follow": 4},
    }


def test_two_corpora_keep_to_themselves(tmp_path):
    english = made(tmp_path / "en", [15] * 12)
    german = [
        [f"Absatz{a} Stelle{p} {random.Random(a * 99 + p).random()} und mehr." for p in range(15)] for a in range(12)
    ]
    german = written(tmp_path / "de", german)
    found = sentence_pairs.build(
        [english, article_corpus.Corpus(german.source, "de")], tmp_path / "pairs", held_out=0.2
    )
    for own in every(found).values():
        assert all(pair.context.startswith("Article") == pair.candidate.startswith("Article") for pair in own)
        assert {pair.context.startswith("Article") for pair in own} == {True, False}
        labels = [pair.follows for pair in own]
        assert abs(2 * sum(labels) - len(labels)) <= 1


def test_the_order_tells_nothing(tmp_path):
    found = sentence_pairs.build([made(tmp_path / "texts", [40] * 60)], tmp_path / "pairs")
    labels = np.array(found.rows("train")[:, 2])
    assert abs(labels[: len(labels) // 2].mean() - 0.5) < 0.06
    assert abs((labels[1:] == labels[:-1]).mean() - 0.5) < 0.06


def test_too_few_articles_are_refused_and_nothing_is_left(tmp_path):
    with pytest.raises(BiasError, match="5 articles with consecutive sentences: 6 are needed"):
        sentence_pairs.build([made(tmp_path / "texts", [9] * 5)], tmp_path / "pairs")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts"]


@pytest.mark.parametrize("language", ["en", "de", "es", "fr", "tr"])
def test_segmentation_knows_the_language(language):
    text = {
        "en": "Dr. Smith met Mr. Jones in the park. They talked for an hour.",
        "de": "Am 3. Oktober traf Dr. Meier Frau Kunz. Sie sprachen z. B. über das Wetter.",
        "es": "El Sr. López llegó a las 9. Después habló con la Dra. Ruiz.",
        # French abbreviations are not known to it
        "fr": "Le train de 9.30 est arrivé à l'heure ! Nous avons bu (enfin) un café.",
        "tr": "Dr. Yılmaz saat 9'da geldi. Sonra Prof. Demir ile konuştu.",
    }[language]
    found = list(sentence_pairs._segmented(text, language))
    assert len(found) == 2
    assert " ".join(found) == text


def test_rows_of_tables(tmp_path):
    rows = [{"title": f"t{a}", "body": " ".join(sentence(a, p) for p in range(6))} for a in range(20)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = sentence_pairs.build([article_corpus.Corpus(str(path), "en", column="body")], tmp_path / "pairs")
    assert found.about["sentences"] == 120
    with pytest.raises(BiasError, match="no text in the column 'text'.*title, body"):
        list(article_corpus.Corpus(str(path), "en"))
    path.write_text('{"text": "a"}\n{"text": ', encoding="utf-8")
    with pytest.raises(BiasError, match=r"a\.jsonl"):
        list(article_corpus.Corpus(str(path), "en"))


def test_named_data_sets(tmp_path):
    """A folder of Parquet files is a data set of that name; a hub's is read in the same way."""
    import pyarrow
    import pyarrow.parquet

    rows = [{"id": str(a), "text": " ".join(sentence(a, p) for p in range(6))} for a in range(20)]
    (tmp_path / "data").mkdir()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "data" / "train-00000.parquet")
    found = list(article_corpus.Corpus(str(tmp_path / "data"), "en"))
    assert found == [article_corpus.Article(row["id"], row["text"]) for row in rows]
    with pytest.raises(BiasError, match="--corpus no/such: can't be loaded"):
        list(article_corpus.Corpus("no/such", "en"))
    with pytest.raises(BiasError, match="can't be loaded: .*validation"):
        list(article_corpus.Corpus(str(tmp_path / "data"), "en", split="validation"))


def test_corpora_that_are_none(tmp_path):
    (tmp_path / "x.pdf").write_text("x")
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\x00")
    for source, says in (
        (tmp_path / "nowhere", "no such file or folder"),
        (tmp_path / "x.pdf", "must be a folder of .txt files"),
        (tmp_path / "bad.txt", "bad.txt"),
        ("", "path is empty"),
    ):
        with pytest.raises(BiasError, match=says):
            list(article_corpus.Corpus(str(source), "en"))
