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


def test_the_leaderboard_joins_folders_that_share_no_task(tmp_path, capsys):
    for name, task in (("a", "stereoset_en"), ("b", "stereoset_de")):
        add(tmp_path, name, [task])
    assert main(["leaderboard", str(tmp_path / "a"), str(tmp_path / "b"), "--format", "csv"]) == 0
    out = capsys.readouterr().out
    assert "tiny (" not in out
    assert out.count(",run,tiny,") > 5


def test_compare_names_its_sides_by_folder(tmp_path, capsys):
    for shift, name in enumerate(("base", "tuned")):
        harness_folder(tmp_path / name, version=0.5, shift=shift)  # by which other scores may come of the same log
    assert main(["compare", str(tmp_path / "base"), str(tmp_path / "tuned")]) == 0
    assert "tiny (tuned) against tiny (base)" in capsys.readouterr().out
    assert main(["compare", str(tmp_path), "--base", "tiny (tuned)"]) == 0
    assert "tiny (base) against tiny (tuned)" in capsys.readouterr().out


def test_a_trial_run_is_called_so_in_front_of_its_numbers(tmp_path, capsys):
    folder = harness_folder(tmp_path / "run")
    assert main(["report", folder, "--format", "md"]) == 0
    out = capsys.readouterr().out.replace("\\", "")
    assert "**Trial run:** 80 of 1,000 items of occugender_explicit" in out
    assert "- OccuGender: trial run: " in out  # before the verdict
    assert "- Trial run, 80 of 1,000 items." in out
    assert main(["leaderboard", folder, "--format", "md"]) == 0
    out = capsys.readouterr().out.replace("\\", "")
    row = next(line for line in out.splitlines() if line.startswith("|") and "trial run" in line)
    assert "trial run, 80 of 1,000 items" in row.split("|")[1]


def test_fewer_samples_a_prompt_are_a_trial_run(tmp_path, capsys):
    content = run_file(tasks=["regard_en"])
    content["tasks"]["regard_en"]["metadata"]["repeats"] = 20
    path = write(tmp_path / "run.json", content)
    assert main(["report", path, "--format", "md"]) == 0
    assert "**Trial run:** 20 of 100 samples per prompt of regard" in capsys.readouterr().out
    assert main(["leaderboard", path, "--format", "md"]) == 0
    out = capsys.readouterr().out.replace("\\", "")
    row = next(line for line in out.splitlines() if line.startswith("|") and "trial run" in line)
    assert "trial run, 20 of 100 samples per prompt" in row.split("|")[1]
    content["tasks"]["regard_en"]["metadata"]["repeats"] = 100
    write(tmp_path / "run.json", content)
    assert main(["report", path, "--format", "md"]) == 0
    assert "trial run" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("task", "score", "value", "says"),
    [
        ("stereoset_en", "lms", [50.5, 48.0, 53.0], "chance level: lms 50.5% [48.0, 53.0], by guessing 50.0%"),
        ("stereoset_en", "lms", [55.0, 52.0, 58.0], ""),
        ("gg_bbq_group_terms", "acc_disamb", [0.1, 0.05, 0.15], "chance level: acc_disamb 10.0% [5.0, 15.0]"),
    ],
)
def test_chance_level_is_told_in_front(task, score, value, says, tmp_path, capsys):
    content = run_file(tasks=[task])
    content["tasks"][task]["scores"][score] |= {"value": value[0], "interval": value[1:]}
    path = write(tmp_path / "run.json", content)
    assert main(["leaderboard", path, "--format", "json"]) == 0
    (board,) = json.loads(capsys.readouterr().out)["boards"]
    (row,) = [row for row in board["rows"] if row["kind"] == "run"]
    assert row["caveat"].startswith(says)
    assert bool(row["caveat"]) == bool(says)
    assert main(["report", path, "--format", "md"]) == 0
    assert (says in capsys.readouterr().out.replace("\\", "").replace("Chance", "chance")) or not says


def test_a_model_that_answers_at_random_is_at_chance_level(tmp_path, capsys):
    add(tmp_path, "a", ["occugender_explicit"], model="bias-chance")
    assert main(["report", str(tmp_path), "--format", "md"]) == 0
    assert "- Chance level: bias-chance answers at random." in capsys.readouterr().out
