"""Data sets of one's own, through validate: any bytes, any change to a good one."""

import json

import pytest
from hypothesis import strategies as st

from lm_eval_bias.tasks.stereoset.own_sets import set_files
from tests.fuzz.kit import damaged, fuzz, judged, mutated
from tests.stereosets.example_items import DUTCH
from tests.stereosets.test_sets import table


@pytest.fixture
def dutch(tmp_path):
    set_files.write(tmp_path / "nl.json", set_files.DataSet("nl", DUTCH, {"engine": "none"}))
    return tmp_path


@fuzz(60, "dutch", data=st.data())
def test_a_changed_set(dutch, data):
    path = dutch / "nl.json"
    original = path.read_bytes()
    try:
        path.write_text(json.dumps(data.draw(mutated(json.loads(original)))), encoding="utf-8")
        form = data.draw(st.sampled_from([[], ["--json"], ["--all"]]))
        judged(dutch, "stereoset", "validate", str(path), "--source", "none", *form)
    finally:
        path.write_bytes(original)


@fuzz(40, "dutch", data=st.data())
def test_a_damaged_file(dutch, data):
    name = data.draw(st.sampled_from(["nl.json", "nl.csv"]))
    original = (dutch / "nl.json").read_bytes() if name == "nl.json" else table(DUTCH).encode()
    path = dutch / f"bad-{name}"
    path.write_bytes(data.draw(damaged(original)))
    judged(dutch, "stereoset", "validate", str(path), "--language", "nl", "--source", "none")
