"""Several runs of one model: one where nothing differs but the tasks, else told apart, and by what."""

from __future__ import annotations

import json

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.runs import run_discovery
from tests.support.made_runs import harness_folder, run_file, write


def add(folder, name, tasks, shift=0, **provenance):
    content = run_file(tasks=tasks, shift=shift)
    content["provenance"] |= provenance
    return write(folder / name / "run.json", content)


def names(folder, by_task=False):
    return [run.name for run in run_discovery.read([folder], by_task)[0]]


def test_other_tasks_of_one_build_or_another_are_one_run(tmp_path):
    add(tmp_path, "a", ["stereoset_en"], torch="2.13.0")
    add(tmp_path, "b", ["stereoset_de"], torch="2.13.0+cpu", batch_size="16", date="2026-02-03")
    assert names(tmp_path) == ["tiny"]


@pytest.mark.parametrize(
    ("fact", "value"),
    [("gen_kwargs", "top_p=0.1"), ("seeds", [1, 2, 3, 4]), ("torch", "2.12.0"), ("system_instruction", "Antworte!")],
)
def test_what_changes_numbers_keeps_runs_apart(fact, value, tmp_path):
    add(tmp_path, "a", ["stereoset_en"])
    add(tmp_path, "b", ["stereoset_de"], **{fact: value})
    assert names(tmp_path) == ["tiny (a)", "tiny (b)"]
    assert names(tmp_path, by_task=True) == ["tiny", "tiny"]  # no table has both


def test_a_checkpoint_that_was_trained_on_is_another_model(tmp_path):
    add(tmp_path, "a", ["stereoset_en"], model_files="0123456789abcdef")
    add(tmp_path, "b", ["stereoset_de"])  # a run of the harness's own command: not known
    assert names(tmp_path) == ["tiny"]
    add(tmp_path, "c", ["regard_en"], model_files="fedcba9876543210")
    (first, other) = run_discovery.read([tmp_path])[0]
    assert (set(first.tasks), set(other.tasks)) == ({"stereoset_en", "stereoset_de"}, {"regard_en"})
    assert "model files" in other.differs


def test_the_leaderboard_says_what_differs(tmp_path, capsys):
    add(tmp_path, "a", ["stereoset_en"])
    add(tmp_path, "b", ["stereoset_en"], shift=3, dtype="float16")
    assert main(["leaderboard", str(tmp_path), "--format", "json"]) == 0
    (board,) = json.loads(capsys.readouterr().out)["boards"]
    rows = {row["model"]: row for row in board["rows"] if row["kind"] == "run"}
    assert list(rows) == ["tiny (a)", "tiny (b)"]
    assert "differs from tiny (a) in dtype (float16, there float32)" in rows["tiny (b)"]["deviations"]
    assert not any("differs" in line for line in rows["tiny (a)"]["deviations"])


def test_compare_names_its_sides_by_folder(tmp_path, capsys):
    for shift, name in enumerate(("base", "tuned")):
        harness_folder(tmp_path / name, version=0.5, shift=shift)  # by which other scores may come of the same log
    assert main(["compare", str(tmp_path / "base"), str(tmp_path / "tuned")]) == 0
    assert "tiny (tuned) against tiny (base)" in capsys.readouterr().out
    assert main(["compare", str(tmp_path), "--base", "tiny (tuned)"]) == 0
    assert "tiny (base) against tiny (tuned)" in capsys.readouterr().out
