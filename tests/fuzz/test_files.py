"""Heads of regard classifiers, cached downloads, and texts to classify."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import strategies as st

from lm_eval_bias.data import sources
from lm_eval_bias.tasks.regard import heads, labelled_texts
from lm_eval_bias.tasks.regard.commands import classify
from tests.support.fuzzing import JUNK, damaged, fuzz, refused, taken

# ---- heads ----


def a_head():
    rng = np.random.default_rng(1)
    shapes = [(4, 6), (3, 4)]
    member = [(rng.normal(size=s).astype(np.float32), rng.normal(size=s[0]).astype(np.float32)) for s in shapes]
    return heads.Head([member], {"encoder": "e", "probe": [[0.0] * 6] * 2, "warning": "weak"})


@pytest.fixture
def head(tmp_path):
    heads.save(tmp_path / "head", a_head(), "card")
    return tmp_path / "head"


class Encoder:
    """Stands in for an encoder."""

    name, revision = "e", ""

    def encode(self, texts):
        return np.zeros((len(texts), 6), dtype=np.float32)


@fuzz(40, start="head", data=st.data(), name=st.sampled_from([heads.CONFIG, heads.WEIGHTS]))
def test_a_damaged_head(head, data, name):
    path = head / name
    original = path.read_bytes()
    try:
        path.write_bytes(data.draw(damaged(original)))
        found = taken(heads.read, head)
        assert found is None or np.isfinite(found.probabilities(np.eye(6))).all()
    finally:
        path.write_bytes(original)


# ---- downloads ----

NAME = "stereoset_en_inter"


@pytest.fixture
def cached(tiny_mirror, monkeypatch, tmp_path):
    """A good file in the cache, and no network."""
    source = sources.manifest().files[NAME]
    good = (tiny_mirror / source.repository / source.path).read_bytes()
    monkeypatch.delenv("LM_EVAL_BIAS_DATA")
    path = sources.cached_path(source)
    path.parent.mkdir(parents=True)
    path.write_bytes(good)
    assert sources.locate(NAME) == path
    return path


@fuzz(20, start="cached", data=st.data())
def test_a_damaged_download_is_not_taken(cached, data):
    good = cached.read_bytes()
    content = data.draw(damaged(good))
    cached.write_bytes(content)
    if content == good:
        return
    assert "is not in the cache" in refused(cached.parent, "fetch", NAME)
    cached.write_bytes(good)


def _folder(path):
    path.mkdir()


def _loop(path):
    path.symlink_to(path)


@pytest.mark.parametrize("place", [_folder, _loop])
@pytest.mark.parametrize("where", ["cache", "mirror"])
def test_what_is_no_file_is_not_taken_for_one(place, where, cached, tiny_mirror, monkeypatch):
    path = cached
    if where == "mirror":
        monkeypatch.setenv("LM_EVAL_BIAS_DATA", str(tiny_mirror))
        path = tiny_mirror / sources.manifest().files[NAME].repository / sources.manifest().files[NAME].path
    path.unlink()
    place(path)
    said = refused(tiny_mirror, "fetch", NAME)
    assert "is not in the cache" in said if where == "cache" else str(path) in said


# ---- texts ----

ANY = st.text(max_size=15)
FIELD = st.sampled_from(["text", "Text", "regard", "regard_before", "p_x", "p_x_before", "note", " text "])
VALUE = st.one_of(ANY, st.none(), st.integers(), st.lists(ANY, max_size=2), st.sampled_from(JUNK))
ROWS = st.lists(st.dictionaries(FIELD, VALUE, max_size=5), max_size=4)
LABEL = {"regard": 1, "label": "neutral", "p_neutral": 1.0, "classifier": "light"}


@fuzz(60, rows=ROWS)
def test_texts_that_are_taken_round_trip(folder, rows):
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = taken(classify.read, path)
    if found is None:
        return
    again = folder / "labelled.jsonl"
    again.write_text("".join(json.dumps({**row, **LABEL}) + "\n" for row in found), encoding="utf-8")
    reread = classify.read(again)
    assert [row["text"] for row in reread] == [row["text"] for row in found]
    assert all(str(row["regard_before"]) == "1" for row in reread)


@fuzz(
    80,
    content=st.one_of(st.binary(max_size=60), damaged(b'text,note\nDie Frau lacht.,a\n"Der Mann, er lacht.",b\n')),
    ending=st.sampled_from(labelled_texts.FORMATS),
)
def test_damaged_texts(folder, content, ending):
    path = folder / f"texts{ending}"
    path.write_bytes(content)
    found = taken(classify.read, path)
    if found is not None:
        out = io.StringIO(newline="")
        csv.writer(out).writerows([["text"], *([row["text"]] for row in found)])
        (folder / "again.csv").write_bytes(out.getvalue().encode())
        assert [row["text"] for row in classify.read(folder / "again.csv")] == [row["text"] for row in found]
