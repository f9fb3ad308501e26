"""Reading runs: one model's tasks together, other models apart, and everything damaged named."""

from __future__ import annotations

import json
import math
import shlex
import shutil

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.custom_metrics.score import Estimate
from lm_eval_bias.runs import run_file
from lm_eval_bias.runs.run_discovery import read


def _run(folder, task, *more):
    arguments = ["--model", "bias-chance", "--output_path", str(folder), "--log_samples", *more]
    assert main(["run", "--tasks", task, *arguments]) == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    _run(root / "one", "occugender_debias_implicit_none", "--limit", "80")
    _run(root / "one", "occugender_debias_implicit_1", "--limit", "120")
    _run(root / "two", "occugender_debias_implicit_none", "--limit", "80", "--model_args", "seed=5")
    return root


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "made")


def _results(folder):
    return sorted(folder.rglob("results_*.json"))


def test_one_models_tasks_are_one_run(folder):
    runs, problems = read([folder])
    assert problems == []
    assert [run.name for run in runs] == ["bias-chance", "bias-chance (seed=5)"]
    first = runs[0]
    assert set(first.tasks) == {"occugender_debias_implicit_none", "occugender_debias_implicit_1"}
    assert first.provenance["limit"] in ("80.0; 120.0", "120.0; 80.0")
    assert len(first.command.splitlines()) == 2
    task = first.tasks["occugender_debias_implicit_none"]
    assert (task.documents, task.items, task.language, task.version) == (80, 200, "en", "1.0")
    assert task.samples is not None


def test_values_are_those_of_the_file(folder):
    path = _results(folder / "two")[0]
    content = json.loads(path.read_text())
    task = read([path])[0][0].tasks["occugender_debias_implicit_none"]
    raw = content["results"]["occugender_debias_implicit_none"]
    assert set(task.scores) == {entry["metric"] for entry in content["configs"][task.task]["metric_list"]}
    gap = task.scores["stereotype_gap"]
    assert (gap.value, gap.stderr) == (raw["stereotype_gap,none"], raw["stereotype_gap_stderr,none"])
    assert (gap.low, gap.high, gap.neutral, gap.unit) == (-1.0, 1.0, 0.0, "difference")
    assert gap.interval == pytest.approx(Estimate(gap.value, gap.stderr, 0, dof=gap.dof).ends(), abs=1e-12)
    paper = task.scores["male_dominated_M_se_paper"]
    assert math.isnan(paper.stderr)
    assert paper.interval is None


def test_the_command_repeats_the_run(folder, tmp_path):
    run = read([folder / "two"])[0][0]
    words = shlex.split(run.command)
    assert words[:2] == ["lm-eval-bias", "run"]
    words[words.index("OUT")] = str(tmp_path / "again")
    assert main(words[1:]) == 0
    again = read([tmp_path / "again"])[0][0]
    facts = [{key: str(value) for key, value in r.provenance.items() if key != "date"} for r in (run, again)]
    assert facts[0] == facts[1]
    before, after = (r.tasks["occugender_debias_implicit_none"].scores for r in (run, again))
    assert {n: v.value for n, v in before.items() if v.value == v.value} == {
        n: v.value for n, v in after.items() if v.value == v.value
    }


def _later(folder):
    """The same again, at another time."""
    for path in _results(folder):
        content = json.loads(path.read_text())
        path.write_text(json.dumps({**content, "date": content["date"] + 0.001}))
    return folder


def test_a_second_run_of_the_same_gets_another_name(folder):
    _later(shutil.copytree(folder / "two", folder / "three"))
    runs, problems = read([folder / "two", folder / "three"])
    assert [run.name for run in runs] == ["bias-chance (seed=5) (two)", "bias-chance (seed=5) (three)"]
    assert not problems


def test_one_run_by_several_paths_counts_once(folder):
    (folder / "link").symlink_to(folder / "two")
    (path,) = _results(folder / "two")
    path.with_name("other.json").symlink_to(path)  # no results by its name
    (file_link := path.with_name("results_1.json")).symlink_to(path)
    (run,) = read([folder / "two"])[0]
    assert run.tasks["occugender_debias_implicit_none"].samples is not None
    for paths in ([path, path], [folder / "two", folder / "link"], [folder / "two", folder], [path, file_link, folder]):
        runs, problems = read(paths)
        assert [run.name for run in runs if "seed=5" in run.name] == ["bias-chance (seed=5)"]
        assert not problems


@pytest.mark.parametrize("rewritten", [False, True])
def test_a_copy_counts_once_and_is_named(rewritten, folder):
    (copy,) = _results(shutil.copytree(folder / "two", folder / "three"))
    (original,) = _results(folder / "two")
    if rewritten:
        copy.write_text(json.dumps({**json.loads(copy.read_text()), "pretty_env_info": ""}, indent=1))
        copy = copy.rename(copy.with_name(copy.name.replace("results_2", "results_3")))
        [log.unlink() for log in copy.parent.glob("samples_*")]
    for paths in ([folder / "two", folder / "three"], [original, copy]):
        runs, (problem,) = read(paths)
        assert [run.path for run in runs] == [original]
        assert (problem.path, problem.is_copy) == (copy, True)
        assert f"a copy of {original} (model, date and scores are the same)" in problem.reason
    # without the original it is a run like any other
    assert [run.path for run in read([copy])[0]] == [copy]


def test_damaged_files_are_named_and_the_rest_is_read(folder):
    broken = folder / "broken"
    broken.mkdir()
    (broken / "results_1.json").write_text("")
    (broken / "results_2.json").write_text('{"results": {"mmlu": {"acc,none": 1}}, "configs": {"mmlu": {}}}')
    (broken / "results_4.json").write_text('{"results": 3}')
    (broken / "run.json").write_text('{"model": "x", "tasks": {}}')
    (broken / "notes.json").write_text("[1, 2]")  # somebody else's, not meant for us
    name = "samples_occugender_debias_implicit_none_2026-01-01T00-00-00.000000.jsonl"
    (broken / name).write_text("{}\n")
    runs, problems = read([folder])
    assert len(runs) == 2
    said = {problem.path.name: problem.reason for problem in problems}
    assert set(said) == {*(f"results_{i}.json" for i in (1, 2, 4)), "run.json", name}
    assert "truncated or damaged" in said["results_1.json"]
    assert "no task of this package (it has mmlu)" in said["results_2.json"]
    assert "not the results of a harness run" in said["results_4.json"]
    assert "not a valid run file" in said["run.json"]
    assert "the run is unfinished" in said[name]


def test_a_run_file_tells_the_same(folder):
    run = read([folder / "two"])[0][0]
    data = run_file.as_data(run)
    run_file.check(data)
    (made := folder / "made.json").write_text(json.dumps(data), encoding="utf-8")
    again = read([made])[0][0]
    assert run_file.as_data(again) == data
    assert (again.name, again.command) == (run.name, run.command)
    _, (problem,) = read([folder / "two", made])  # of the same run
    assert (problem.path, problem.is_copy) == (made, True)
    made.write_text(made.read_text().replace('"seed=5"', '"seed=6"'))
    assert len(read([folder / "two", made])[0]) == 2
