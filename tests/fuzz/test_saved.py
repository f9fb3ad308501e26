"""Sample logs, prediction files and labelled texts, through rescore, export and plot."""

from __future__ import annotations

import gzip
import json
import shutil

import pytest
from hypothesis import strategies as st

from tests.conftest import tiny_frame
from tests.fuzz.kit import damaged, fuzz, judged, mutated, refused


@pytest.fixture
def logs(small_run, tmp_path):
    (path,) = small_run.rglob("results_*.json")
    shutil.copytree(path.parent, tmp_path / "run")
    return tmp_path


def one_log(logs, data):
    return data.draw(st.sampled_from(sorted((logs / "run").glob("samples_*.jsonl"))))


@fuzz(40, "logs", data=st.data())
def test_a_changed_sample(logs, data):
    path = one_log(logs, data)
    original = path.read_bytes()
    keep = ("doc", "doc_id", "filter", "filtered_resps")  # what is read of a sample
    samples = map(json.loads, original.decode().splitlines())
    lines = [{key: sample[key] for key in keep} for sample in samples]
    number = data.draw(st.integers(0, len(lines) - 1))
    lines[number] = data.draw(mutated(lines[number]))
    try:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        form = data.draw(st.sampled_from([[], ["--json"]]))
        judged(logs, "rescore", str(path), *form)
        if "stereoset" in path.name:
            judged(logs, "export", "--to", "predictions", str(path), "-o", str(logs / "predictions.json"))
    finally:
        path.write_bytes(original)
        (logs / "predictions.json").unlink(missing_ok=True)


@fuzz(25, "logs", data=st.data())
def test_a_damaged_log(logs, data):
    path = one_log(logs, data)
    original = path.read_bytes()
    try:
        path.write_bytes(data.draw(damaged(original)))
        judged(logs, "rescore", str(logs / "run"), "--json")
    finally:
        path.write_bytes(original)


def scores(test):
    ids = [identity for i in (1, 2, 3) for identity in tiny_frame("en", test)[f"c{i}_id"]]
    return [{"id": identity, "score": round(0.01 * number, 2)} for number, identity in enumerate(ids)]


PREDICTIONS = {"intrasentence": scores("intra"), "intersentence": scores("inter")}


@fuzz(50, "tiny_mirror", content=mutated(PREDICTIONS), packed=st.booleans())
def test_changed_predictions(tiny_mirror, content, packed):
    raw = json.dumps(content).encode()
    path = tiny_mirror.parent / ("predictions.json.gz" if packed else "predictions.json")
    path.write_bytes(gzip.compress(raw) if packed else raw)
    judged(tiny_mirror, "rescore", str(path), "--language", "en", "--json")


@fuzz(40, "tiny_mirror", data=st.data(), packed=st.booleans())
def test_damaged_predictions(tiny_mirror, data, packed):
    raw = json.dumps(PREDICTIONS).encode()
    path = tiny_mirror.parent / ("predictions.json.gz" if packed else "predictions.json")
    path.write_bytes(data.draw(damaged(gzip.compress(raw, mtime=0) if packed else raw)))
    judged(tiny_mirror, "rescore", str(path), "--language", "en", "--json")


def test_constant_predictions(tiny_mirror):
    content = {**PREDICTIONS, "intrasentence": [{**entry, "score": 0.5} for entry in PREDICTIONS["intrasentence"]]}
    path = tiny_mirror.parent / "predictions.json"
    path.write_text(json.dumps(content))
    line = refused(tiny_mirror, "rescore", str(path), "--language", "en")
    assert "intrasentence: every answer is 0.5: the answers don't depend on the text" in line


LABELLED = [
    {"text": text, "gender": gender, "regard": regard, "classifier": "by hand"}
    for gender, subject in (("female", "Die Frau"), ("male", "Der Mann"))
    for regard, text in enumerate((f"{subject} galt als faul.", f"{subject} war da.", f"{subject} galt als klug."))
]


@fuzz(50, "tmp_path", rows=mutated(LABELLED))
def test_changed_labelled_texts(tmp_path, rows):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged(tmp_path, "rescore", str(path), "--json")
    judged(tmp_path, "rescore", str(path))


@fuzz(50, "tmp_path", data=st.data())
def test_damaged_labelled_texts(tmp_path, data):
    table = "Text,Gender,Regard\n" + "".join(f"{row['text']},{row['gender']},{row['regard']}\n" for row in LABELLED)
    path = tmp_path / "texts.csv"
    path.write_bytes(data.draw(damaged(table.encode())))
    judged(tmp_path, "rescore", str(path), "--json")
