"""Result folders and run files, through every command that reads them."""

from __future__ import annotations

import json
import shutil

import pytest
from hypothesis import strategies as st

from tests.fuzz.kit import damaged, fuzz, judged
from tests.report.made_runs import run_file

RUN_FILE = run_file(tasks=("occugender_explicit", "stereoset_en", "regard_en"))
for _task in RUN_FILE["tasks"].values():
    _hashes = {"documents": "0" * 64, "scored": "1" * 64, "package_data": "2" * 64, "files": {"words.yaml": "3" * 64}}
    _task["metadata"] |= {"words": "words.yaml", "inputs": {**_hashes, "changed": ["doc_to_text"], "num_fewshot": 2}}
POLICY = (
    "bounds:\n  - {task: stereoset_*, score: ss, max_distance_from_neutral: 5}\nallow_warnings: false\ndtype: float32\n"
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


@fuzz(20, "place", content=damaged(json.dumps(RUN_FILE).encode()), reader=st.sampled_from(READERS))
def test_a_damaged_run_file(place, content, reader):
    path = place / "run.json"
    path.write_bytes(content)
    through(place, reader, path)


@pytest.fixture
def results(small_run, place):
    (path,) = small_run.rglob("results_*.json")
    shutil.copytree(path.parent, place / "run")
    return place


def harness_results(place):
    (path,) = (place / "run").glob("results_*.json")
    return path


@fuzz(12, "results", data=st.data(), reader=st.sampled_from([*READERS, ("report", "--format", "html", "-o", "HTML")]))
def test_a_damaged_result_folder(results, data, reader):
    path = harness_results(results)
    original = path.read_bytes()
    reader = [str(results / "page.html") if argument == "HTML" else argument for argument in reader]
    try:
        path.write_bytes(data.draw(damaged(original)))
        through(results, reader, data.draw(st.sampled_from([results / "run", path])))
    finally:
        path.write_bytes(original)
        (results / "page.html").unlink(missing_ok=True)


@fuzz(2, "results", data=st.data(), by=st.sampled_from(["run", "instruction", "language"]))
def test_damaged_samples_beside_results(results, data, by):
    path = data.draw(st.sampled_from(sorted((results / "run").glob("samples_*.jsonl"))))
    original = path.read_bytes()
    try:
        path.write_bytes(data.draw(damaged(original)))
        judged(results, "rescore", str(results / "run"), "--json")
        judged(results, "compare", str(results / "run"), "--by", by, "--draws", "100")
        judged(results, "report", str(results / "run"), "--format", "md")
    finally:
        path.write_bytes(original)
