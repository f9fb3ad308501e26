"""Runs that were made by the harness alone are read: its own numbers, to the last digit, and what it lacks."""

import contextlib
import io
import json
import math
import shutil

import pytest

import lm_eval_bias as leb
from lm_eval_bias.cli.main import main
from lm_eval_bias.runs import answer_files, run_discovery
from tests.support import harness_runs, made_documents

KINDS = ("age", "race_color")
BBQ = {
    f"{name}{suffix}": f"bbq/{file}{suffix}.yaml"
    for name, file in (("bbq", "bbq_multiple_choice"), ("bbq_generate", "bbq_generate"))
    for suffix in ("", "_ambig", "_disambig")
}
CROWS_PAIRS = {
    name: f"crows_pairs/{name}.yaml"
    for language in ("english", "french")
    for name in (
        f"crows_pairs_{language}",
        *(f"crows_pairs_{language}_{kind}" for kind in KINDS),
    )
}
OF_WINOGENDER = ("male", "female", "neutral", "gotcha", "gotcha_male")
WINOGENDER = {
    f"winogender_{kind}": f"winogender/winogender_{kind}.yaml" for kind in OF_WINOGENDER
}
WINOGENDER["winogender_all"] = "winogender/winogender.yaml"
FAMILIES = {
    "bbq": (BBQ, made_documents.bbq()),
    "crows_pairs": (CROWS_PAIRS, made_documents.crows_pairs()),
    "winogender": (WINOGENDER, made_documents.winogender()),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two models' runs of every task: their folders, and the harness's numbers of each."""
    folder = tmp_path_factory.mktemp("runs")
    tasks = {
        task: (yaml, rows)
        for yamls, rows in FAMILIES.values()
        for task, yaml in yamls.items()
    }
    return [
        (folder / seed / "out", harness_runs.run(folder / seed, tasks, int(seed)))
        for seed in ("1", "2")
    ]


@pytest.fixture(scope="module")
def rescored(runs):
    """What ``rescore`` says of each model's run, by task."""
    return [by_task(folder) for folder, _ in runs]


def by_task(folder):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["rescore", str(folder), "--json"]) == 0
    return {entry["task"]: entry for entry in json.loads(out.getvalue())}


def test_the_harness_s_numbers_to_the_last_digit(runs, rescored):
    for (folder, numbers), found in zip(runs, rescored, strict=True):
        (read,), _ = run_discovery.read([folder])
        assert (
            set(found)
            == set(numbers)
            == {task for tasks, _ in FAMILIES.values() for task in tasks}
        )
        for task, own in numbers.items():
            named = {harness_runs.called(name): value for name, value in own.items()}
            scores = found[task]["scores"]
            assert scores.keys() & named.keys()
            for name, value in named.items():
                cell = scores.get(
                    name,
                    {
                        "value": None,
                        "reason": "a category that the documents don't have",
                    },
                )
                assert (
                    math.nan if cell["value"] is None else cell["value"]
                ) == pytest.approx(value, abs=0, nan_ok=True)
                assert cell["value"] is not None or cell["reason"]
                assert (
                    cell["value"] is None
                    or read.tasks[task].scores[name].value == cell["value"]
                )


def logged(folder, task):
    (path,) = folder.rglob(f"samples_{task}_2*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def asked_otherwise(folder, task, out, change):
    """A copy of a task's log in which each document's options were asked as a function arranges their places."""
    results = next(folder.rglob("results_*.json"))
    lines = logged(folder, task)
    for line in lines:
        arguments = list(line["arguments"].values())
        places = change(range(len(arguments)))
        line["arguments"] = {
            f"gen_args_{i}": arguments[place] for i, place in enumerate(places)
        }
        for field in ("resps", "filtered_resps"):
            line[field] = [line[field][place] for place in places]
    out.mkdir()
    content = json.loads(results.read_text(encoding="utf-8"))
    for part in ("results", "configs", "n-samples"):
        content[part] = {task: content[part][task]}
    (out / results.name).write_text(json.dumps(content), encoding="utf-8")
    date = results.stem.removeprefix("results_")
    path = out / f"samples_{task}_{date}.jsonl"
    path.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize("task", ["bbq", "winogender_all", "crows_pairs_english"])
def test_somebody_s_own_task_of_the_name(task, runs, rescored, tmp_path, capsys):
    folder, _ = runs[0]
    # other places: the answers are read by their texts
    asked_otherwise(folder, task, tmp_path / "turned", lambda places: places[::-1])
    assert by_task(tmp_path / "turned")[task]["scores"] == rescored[0][task]["scores"]
    # fewer options: it is another task
    path = asked_otherwise(folder, task, tmp_path / "fewer", lambda places: places[1:])
    assert main(["rescore", str(path)]) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert f"{task}: not the harness's task of this name, which scores " in line
    assert main(["report", str(tmp_path / "fewer"), "--format", "md"]) == 2
    assert f"skipped: {task}: not the harness's task" in capsys.readouterr().err


def test_a_task_whose_answers_were_not_kept_leaves_the_others(runs, tmp_path):
    folder = shutil.copytree(runs[0][0], tmp_path / "out")
    (results,) = folder.rglob("results_*.json")
    answer_files.write(results, folder.rglob("samples_bbq_2*"))
    for log in folder.rglob("samples_*"):
        log.unlink()
    tasks = leb.load(folder)[0].tasks
    assert set(BBQ) <= set(tasks)
    with_logs = leb.load(runs[0][0])[0].tasks
    assert repr(tasks["bbq"].scores) == repr(with_logs["bbq"].scores)
    assert "--log_samples" in tasks["bbq_ambig"].scores["s_amb"].note
