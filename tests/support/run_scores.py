"""Scores of result files and of their rescored logs, compared with each other."""

from __future__ import annotations

import json
import math

import pytest

from lm_eval_bias.cli.main import main


def not_json(constant):
    """For ``json.loads``: refuse NaN and Infinity, which are no JSON."""
    raise AssertionError(f"{constant} in a file")


def results_of(folder):
    """The one result file below a folder."""
    (path,) = folder.rglob("results_*.json")
    return json.loads(path.read_text(encoding="utf-8"), parse_constant=not_json)


def run(folder, tasks, *more, model="bias-chance"):
    """Run tasks into a folder, with logs of their samples; what the result file says."""
    arguments = [
        "run",
        "--tasks",
        tasks,
        "--model",
        model,
        "--output_path",
        folder,
        "--log_samples",
        *more,
    ]
    assert main([*map(str, arguments)]) == 0
    return results_of(folder)


def logs_of(folder):
    """The samples of the one run below a folder, by task."""
    found = {}
    for path in sorted(folder.rglob("samples_*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            found[path.name.removeprefix("samples_").rpartition("_")[0]] = [
                json.loads(line, parse_constant=not_json) for line in lines
            ]
    return found


def numbers(results):
    """All scores and standard errors of a result file, nan where there is none: {task: {name: value}}."""
    found = {}
    for task, scores in results["results"].items():
        if not any("," in key for key in scores):
            continue
        found[task] = {
            key.split(",")[0]: math.nan if value == "N/A" else value
            for key, value in scores.items()
            if "," in key
            # the plain harness's errors of our standard errors
            and "_stderr_stderr," not in key
        }
        for entry in results["configs"][task]["metric_list"]:
            for ending, which in (("", "value"), ("_stderr", "stderr")):
                if which in entry:
                    value = math.nan if entry[which] is None else entry[which]
                    found[task][entry["metric"] + ending] = value
    return found


def rescored(capsys, *arguments):
    """What ``rescore --json`` prints, by task."""
    capsys.readouterr()
    assert main(["rescore", *map(str, arguments), "--json"]) == 0
    return {entry["task"]: entry for entry in json.loads(capsys.readouterr().out)}


def assert_rescored_equals(entries, results, least=16):
    """Hold rescored scores against those of a result file."""
    assert set(entries) == set(results)
    for task, scores in results.items():
        assert len(scores) >= least, task
        for name, value in scores.items():
            told = entries[task]["scores"][name.removesuffix("_stderr")]
            found = told["stderr" if name.endswith("_stderr") else "value"]
            exact = pytest.approx(value, rel=0, abs=0, nan_ok=True)
            assert (math.nan if found is None else found) == exact, (task, name)
