"""Result folders and run files, through every command that reads them."""

from __future__ import annotations

import json

import pytest
from hypothesis import strategies as st

from lm_eval_bias.runs import run_file as record
from lm_eval_bias.runs.run_discovery import read
from tests.support.fuzzing import damaged, fuzz, judged, mutated, taken
from tests.support.made_runs import run_file

RUN_FILE = run_file(tasks=("occugender_explicit", "stereoset_en", "regard_en"))
for _task in RUN_FILE["tasks"].values():
    _hashes = {
        "documents": "0" * 64,
        "scored": "1" * 64,
        "package_content": "2" * 64,
        "files": {"words.yaml": "3" * 64},
    }
    _task["metadata"] |= {"words": "words.yaml", "inputs": {**_hashes, "changed": ["doc_to_text"], "num_fewshot": 2}}
POLICY = (
    "bounds:\n  - {task: stereoset_*, score: ss, max_distance_from_neutral: 5}\n"
    "allow: [words, task, limit=8]\nmax_unanswered_share: 0.2\n"
)
READERS = [
    ("report", "--format", "json"),
    ("report", "--format", "md"),
    ("report", "--format", "csv"),
    ("report", "--format", "latex"),
    ("leaderboard", "--format", "json"),
    ("leaderboard", "--format", "md"),
    ("check", "--policy", "POLICY"),
    ("compare",),
]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "run.json").write_text(json.dumps(RUN_FILE))
    return tmp_path


def through(place, reader, path):
    arguments = [str(place / "policy.yaml") if argument == "POLICY" else argument for argument in reader]
    return judged(place, arguments[0], str(path), *arguments[1:])


@fuzz(20, "place", content=mutated(RUN_FILE), reader=st.sampled_from(READERS))
def test_a_changed_run_file(place, content, reader):
    path = place / "run.json"
    path.write_text(json.dumps(content))
    through(place, reader, path)


@fuzz(20, "place", content=mutated(RUN_FILE))
def test_a_run_file_that_is_taken_round_trips(place, content):
    def read_one(data):
        (place / "run.json").write_text(json.dumps(data))
        return read([place / "run.json"])[0][0]

    run = taken(read_one, content)
    if run is not None:
        data = record.as_data(run)
        record.check(data)
        assert record.as_data(read_one(data)) == data


@fuzz(20, "place", content=damaged(json.dumps(RUN_FILE).encode()), reader=st.sampled_from(READERS))
def test_a_damaged_run_file(place, content, reader):
    path = place / "run.json"
    path.write_bytes(content)
    through(place, reader, path)
