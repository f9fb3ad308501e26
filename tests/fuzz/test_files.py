"""Heads of regard classifiers, vectors, cached downloads, and texts to classify."""

from __future__ import annotations

import csv
import hashlib
import io
import json

import numpy as np
import pytest
from hypothesis import strategies as st
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as to_bytes

from lm_eval_bias.data import download, sources
from lm_eval_bias.tasks.regard.classifiers import head_training, heads, text_files
from lm_eval_bias.tasks.stereoset import released_sets
from tests.fuzz.kit import JUNK, damaged, fuzz, refused, taken

# ---- heads ----


def a_head():
    rng = np.random.default_rng(1)
    shapes = [(4, 6), (3, 4)]
    member = [(rng.normal(size=s).astype(np.float32), rng.normal(size=s[0]).astype(np.float32)) for s in shapes]
    return heads.Head([member], ["tanh"], info={"encoder": "e", "probe": [[0.0] * 6] * 2, "warning": "weak"})


@pytest.fixture
def head(tmp_path):
    heads.save(tmp_path / "head", a_head())
    return tmp_path / "head"


class Encoder:
    """Stands in for an encoder."""

    name, revision, dimension = "e", "", 6

    def encode(self, texts):
        return np.zeros((len(texts), 6), dtype=np.float32)

    encode_fast = encode


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


def test_weights_of_another_type_round_trip(head, tmp_path):
    raw = to_bytes(
        {name: value.astype(np.float64) for name, value in tensors_of((head / heads.WEIGHTS).read_bytes()).items()}
    )
    (head / heads.WEIGHTS).write_bytes(raw)
    config = json.loads((head / heads.CONFIG).read_text())
    (head / heads.CONFIG).write_text(json.dumps({**config, "sha256": hashlib.sha256(raw).hexdigest()}))
    found = heads.read(head)
    heads.save(tmp_path / "again", found)
    assert heads.read(tmp_path / "again").dimension == found.dimension == 6


# ---- vectors to train on ----


def vectors(**changed):
    rng = np.random.default_rng(2)
    made = {
        "dev_X": rng.normal(size=(6, 3)), "dev_Y": np.arange(6) % 3, "test_X": rng.normal(size=(3, 3)),
        "test_Y": np.arange(3), "woman_X": rng.normal(size=(2, 3)), "man_X": rng.normal(size=(2, 3)),
        "pair_dev": np.array([0, -1]),
    }  # fmt: skip
    out = io.BytesIO()
    np.savez(out, **{name: value for name, value in {**made, **changed}.items() if value is not None})
    return out.getvalue()


ARRAYS = [
    None, np.array(1.0), np.array([]), np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((2, 2, 2)), np.array(["a"]),
    np.full((6, 3), np.nan), np.full(6, 7), np.array([-5, 9]), np.array([True, False]), np.arange(6).astype("M8[s]"),
]  # fmt: skip


@fuzz(
    80,
    name=st.sampled_from(["dev_X", "dev_Y", "test_X", "test_Y", "woman_X", "man_X", "pair_dev"]),
    value=st.sampled_from(ARRAYS),
)
def test_arrays_that_do_not_fit(folder, name, value):
    (folder / "v.npz").write_bytes(vectors(**{name: value}))
    taken(head_training.from_file, folder / "v.npz")


@fuzz(60, content=damaged(vectors()))
def test_damaged_vectors(folder, content):
    (folder / "v.npz").write_bytes(content)
    taken(head_training.from_file, folder / "v.npz")


# ---- downloads ----

NAME = "stereoset_en_inter"


@pytest.fixture
def cached(tiny_mirror, monkeypatch, tmp_path):
    """A good file in the cache, and no network."""
    source = download.manifest().files[NAME]
    good = (tiny_mirror / source.repository / source.path).read_bytes()
    monkeypatch.delenv("LM_EVAL_BIAS_DATA")
    path = sources.cached_path(source)
    path.parent.mkdir(parents=True)
    path.write_bytes(good)
    assert download.locate(NAME) == path
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
        path = tiny_mirror / download.manifest().files[NAME].repository / download.manifest().files[NAME].path
    path.unlink()
    place(path)
    said = refused(tiny_mirror, "fetch", NAME)
    assert "is not in the cache" in said if where == "cache" else str(path) in said


@pytest.fixture
def converted(tiny_mirror):
    items = released_sets.read("en", "inter")
    (path,) = sources.cache_dir().rglob("*.parquet")
    return path, items


@fuzz(30, start="converted", data=st.data())
def test_a_damaged_conversion_never_changes_an_item(converted, data):
    path, items = converted
    good = path.read_bytes()
    path.write_bytes(data.draw(damaged(good)))
    assert released_sets.read("en", "inter") == items
    path.write_bytes(good)


def test_no_changed_byte_of_a_conversion_changes_an_item(converted):
    path, items = converted
    good = path.read_bytes()
    for place in range(0, len(good), 67):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x20]) + good[place + 1 :])
        assert released_sets.read("en", "inter") == items, place


# ---- texts ----

ANY = st.text(max_size=15)
FIELD = st.sampled_from(["text", "Text", "regard", "regard_before", "p_x", "p_x_before", "note", " text "])
VALUE = st.one_of(ANY, st.none(), st.integers(), st.lists(ANY, max_size=2), st.sampled_from(JUNK))
ROWS = st.lists(st.dictionaries(FIELD, VALUE, max_size=5), max_size=4)
LABEL = {"regard": 1, "label": "neutral", "p_neutral": 1.0, "classifier": "light"}


@fuzz(60, rows=ROWS, ending=st.sampled_from([".jsonl", ".csv"]))
def test_texts_that_are_taken_round_trip(folder, rows, ending):
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = taken(text_files.read, path)
    if found is None:
        return
    for row, given in zip(found, [row for row in rows if row], strict=False):
        assert len(row) == len(given)  # no column is lost
    again = folder / f"labelled{ending}"
    again.write_bytes(text_files.as_text([{**row, **LABEL} for row in found], ending).encode())
    reread = text_files.read(again)
    assert [row["text"] for row in reread] == [row["text"] for row in found]
    # a CSV's rows have all columns
    had = [any("regard_before" in row for row in (found if ending == ".csv" else [given])) for given in found]
    assert all(str(row["regard_before"]) == "1" or before for row, before in zip(reread, had, strict=True))


@fuzz(
    80,
    content=st.one_of(st.binary(max_size=60), damaged(b'text,note\nDie Frau lacht.,a\n"Der Mann, er lacht.",b\n')),
    ending=st.sampled_from(text_files.FORMATS),
)
def test_damaged_texts(folder, content, ending):
    path = folder / f"texts{ending}"
    path.write_bytes(content)
    found = taken(text_files.read, path)
    if found is not None:
        out = io.StringIO(newline="")
        csv.writer(out).writerows([["text"], *([row["text"]] for row in found)])
        (folder / "again.csv").write_bytes(out.getvalue().encode())
        assert [row["text"] for row in text_files.read(folder / "again.csv")] == [row["text"] for row in found]
