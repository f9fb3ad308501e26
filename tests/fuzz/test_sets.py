"""Data sets of one's own, review sheets, tables and kept translations: any bytes, any change to a good one."""

import json

import pytest
from hypothesis import strategies as st

from lm_eval_bias.tasks.stereoset import own_sets
from lm_eval_bias.tasks.stereoset.commands import review, translate
from tests.stereosets.test_review import EQUAL, reviewed
from tests.support.example_items import DUTCH
from tests.support.fuzzing import damaged, fuzz, judged, mutated, taken


@pytest.fixture
def dutch(tmp_path):
    own_sets.write(tmp_path / "nl.json", own_sets.DataSet("nl", DUTCH, {"engine": "none"}))
    return tmp_path


@fuzz(60, "dutch", data=st.data())
def test_a_changed_set(dutch, data):
    path = dutch / "nl.json"
    original = path.read_bytes()
    try:
        path.write_text(json.dumps(data.draw(mutated(json.loads(original)))), encoding="utf-8")
        judged(dutch, "stereoset", "validate", str(path), "--source", "none")
    finally:
        path.write_bytes(original)


@fuzz(40, "dutch", data=st.data())
def test_a_damaged_file(dutch, data):
    path = dutch / "bad.json"
    path.write_bytes(data.draw(damaged((dutch / "nl.json").read_bytes())))
    judged(dutch, "stereoset", "validate", str(path), "--language", "nl", "--source", "none")


@fuzz(80, data=st.data())
def test_damaged_sheets(tmp_path, data):
    path = tmp_path / "r.csv"
    path.unlink(missing_ok=True)
    reviewed(path, EQUAL)
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    rows = taken(review.read_sheet, path, EQUAL)
    assert rows is None or (rows.keys() <= EQUAL.keys() and taken(reviewed, path, EQUAL))


@fuzz(60, content=damaged(review.as_csv([["text", "translation"], ["a, b", "c"], ['"d"', "=e"]])))
def test_damaged_tables(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    table = taken(translate.make_engine, f"file:{tmp_path / 't.csv'}", "it")
    assert table is None or all(table.translations.values())


RECORD = {"source": "a BLANK", "translation": "b", "engine": "en>it x"}


@fuzz(60, content=damaged("".join(json.dumps(RECORD | {"source": str(n)}) + "\n" for n in range(3)).encode()))
def test_damaged_memories(tmp_path, content):
    path = tmp_path / "translated.jsonl"
    path.write_bytes(content)
    taken(translate.read_lines, path)
