"""Command lines that would hang, lose a file, or quietly mean something else than they say."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from tests.support.fuzzing import check_refusal, command, refused
from tests.support.made_runs import run_file

RUN = ["run", "--model", "bias-chance", "--tasks", "occugender_explicit"]


@pytest.fixture
def logs(small_run, tmp_path):
    """The small run once more, as if it had been made a second later."""
    folder = shutil.copytree(small_run, tmp_path / "logs")
    for path in folder.rglob("results_*.json"):
        content = json.loads(path.read_text())
        path.write_text(json.dumps({**content, "date": content["date"] + 1}))
    return folder


# ---- files that would be lost


def inputs(folder, kind):
    """A command line that reads a run, and the run's own file that it would be written to."""
    results, log = next(folder.rglob("results_*.json")), next(folder.rglob("samples_stereoset_en_2*.jsonl"))
    return {
        "report": (["report", str(folder), "--format", "json"], results),
        "leaderboard": (["leaderboard", str(results), "--format", "json"], results),
        "compare": (["compare", str(folder), str(folder), "--format", "json"], log),
        "export": (["export", "--to", "predictions", str(log)], log),
    }[kind]


@pytest.mark.parametrize("way", ["itself", "relative"])
@pytest.mark.parametrize("kind", ["report", "leaderboard", "compare", "export"])
def test_a_runs_own_file_is_no_output(kind, way, logs, tmp_path, monkeypatch):
    arguments, own = inputs(logs, kind)
    monkeypatch.chdir(tmp_path)
    target = {"itself": own, "relative": os.path.relpath(own)}[way]
    content = own.read_bytes()
    assert f"-o {target}: " in refused(tmp_path, *arguments, "-o", str(target))
    assert own.read_bytes() == content


def test_a_run_file_that_is_read_is_no_output(tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "model.json").write_text(json.dumps(run_file(tasks=("stereoset_en",))))
    board = ["leaderboard", str(runs), "-o"]
    assert "this file is also an input and would be overwritten" in refused(tmp_path, *board, str(runs / "model.json"))
    for _ in range(2):  # a report may lie among the runs, and be written anew
        assert command(*board, str(runs / "board.json")).status == 0
        assert command("report", str(runs), "-o", str(runs / "report.md")).status == 0


def test_texts_are_no_output_of_their_labels(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("text\nDie Frau lacht.\n")
    monkeypatch.chdir(tmp_path)
    line = refused(tmp_path, "regard", "classify", "t.csv", "--classifier", "light", "-o", "./t.csv")
    assert "-o ./t.csv: this file is also an input and would be overwritten" in line


# ---- options that would quietly win, or count as absent


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--system_instruction", ""], "--system_instruction: is empty"),
    ],
)
def test_flags_of_a_run(arguments, says, tmp_path):
    assert says in refused(tmp_path, *RUN, *arguments)


def test_a_key_that_is_given_twice_is_warned_about():
    done = command(*RUN, "--limit", "2", "--gen_kwargs", "seed=1,seed=2")
    assert done.status == 0
    assert "Overwriting key 'seed'" in done.err


def test_flags_that_may_be_repeated():
    from lm_eval_bias.cli.run import parser

    given = ["--tasks", "a", "--tasks", "b,c", "--gen_kwargs", "x=1", "y=2", "--gen_kwargs", '{"z": {"a": 1}}']
    for _ in range(2):  # a parser serves more than one command line
        arguments = parser().parse_args([*given, "--log_samples", "--log_samples"])
        assert arguments.tasks == ["a", "b", "c"]
        assert arguments.gen_kwargs == {"x": 1, "y": 2, "z": {"a": 1}}


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "RUN", "--scores", ""],
        ["compare", "RUN", "--scores", " , "],
        ["compare", "RUN", "--base", ""],
        ["report", "RUN", "-o", "x.md", "--name", " "],
        ["rescore", "RUN", "--language", ""],
        ["rescore", "RUN", "--classifier", ""],
        ["export", "--to", "predictions", "RUN", "-o", "x.json", "--variant", ""],
        ["regard", "classify", "RUN", "--classifier", ""],
        ["regard", "train", "--encoder", ""],
        ["nsp", "train", "--revision", ""],
        ["stereoset", "validate", "RUN", "--language", ""],
        ["stereoset", "validate", "RUN", "--tasks", ""],
    ],
    ids=" ".join,
)
def test_options_of_commands(arguments, small_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    option = next(word for word in arguments[::-1] if word.startswith("-"))
    line = refused(tmp_path, *(str(small_run) if word == "RUN" else word for word in arguments))
    assert option in line
    assert "is empty" in line or "no score named" in line


def test_a_score_that_is_named_twice_is_compared_once(small_run, logs):
    once, twice = (
        command("compare", str(small_run), str(logs), "--scores", scores, "--format", "json")
        for scores in ("ss,lms", "ss, lms,ss,")
    )
    assert (once.status, once.out) == (0, twice.out)


# ---- numbers of policies


def test_bounds_are_shown_as_written(small_run, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("bounds: [{task: stereoset_en, score: ss, min: 99.99999999, max: 99.99999998}]\n")
    line = refused(tmp_path, "check", str(small_run), "--policy", str(policy))
    assert "min 99.99999999 is above max 99.99999998" in line
    policy.write_text(
        "bounds: [{task: stereoset_en, score: ss, max: 99.99999999}, {task: stereoset_en, score: ss, max: 43.3}]\n"
        "min_documents_share: 0.9999\n"
    )
    text = command("check", str(small_run), "--policy", str(policy)).out
    assert "at most 99.99999999\n" in text
    assert "at most 43.3 " in text
    assert "at least 99.99% of the items" in text


# ---- files that a refusal has to name


def own_block(content):
    content["configs"]["stereoset_en"]["metadata"]["lm_eval_bias"] = 3


def no_benchmark(content):
    content["configs"]["stereoset_en"]["metadata"]["benchmark"] = "x"


@pytest.mark.parametrize(("edit", "name"), [(own_block, "report"), (no_benchmark, "report"), (no_benchmark, "check")])
def test_damaged_results_are_named(edit, name, logs, tmp_path):
    path = next(logs.rglob("results_*.json"))
    content = json.loads(path.read_text(encoding="utf-8"))
    for task in set(content["configs"]) - {"stereoset_en"}:
        del content["configs"][task], content["results"][task]
    edit(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "policy.yaml").write_text("bounds: [{task: stereoset_en, score: ss, max: 60}]\n")
    more = ["-o", str(tmp_path / "x.json")] if name == "report" else ["--policy", str(tmp_path / "policy.yaml")]
    assert f"error: {path}: " in refused(tmp_path, name, str(path), *more)


# ---- suggestions


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("sbrt", "sbert"),
        ("lihgt", "light"),
    ],
)
def test_a_suggested_classifier_is_one(name, suggested, tmp_path):
    (tmp_path / "t.txt").write_text("Die Frau lacht.\n")
    line = refused(tmp_path, "regard", "classify", str(tmp_path / "t.txt"), "--language", "de", "--classifier", name)
    assert f"Did you mean {suggested}? Known: " in line
    assert suggested in line.partition("Known: ")[2].split(", ")


def test_a_misspelt_score_beside_a_right_one(small_run, logs):
    line = refused(logs, "compare", str(small_run), str(logs), "--scores", "lms,icatt")
    assert "--scores icatt: no task in these runs has this score. Did you mean icat?" in line


# ---- one line, whatever was under way


def test_an_engine_that_fails_is_one_line(tiny_mirror, tmp_path):
    (tmp_path / "EMPTY").mkdir()
    (tmp_path / "EMPTY" / "config.json").write_text("{}")
    engine = f"hf:{tmp_path / 'EMPTY'}"
    outcome = command("stereoset", "translate", "--to", "it", "--engine", engine, "-o", str(tmp_path / "it"))
    assert f"--engine {engine}: " in check_refusal(outcome)
