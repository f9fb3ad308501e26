"""Command lines that would hang, lose a file, or quietly mean something else than they say."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from tests.fuzz.kit import check_refusal, command, refused
from tests.report.made_runs import run_file

RUN = ["run", "--model", "bias-chance", "--tasks", "occugender_explicit"]


@pytest.fixture
def logs(small_run, tmp_path):
    """The small run once more, as if it had been made a second later."""
    folder = shutil.copytree(small_run, tmp_path / "logs")
    for path in folder.rglob("results_*.json"):
        content = json.loads(path.read_text())
        path.write_text(json.dumps({**content, "date": content["date"] + 1}))
    return folder


# ---- what is read for ever


@pytest.fixture
def endless(tmp_path):
    """A folder whose YAML is a pipe that nobody writes to; a name that is none has no one look into it."""
    folder = tmp_path / "endless"
    folder.mkdir()
    os.mkfifo(folder / "x.yaml")
    return folder


@pytest.mark.parametrize("task", ["occugender", "hellaswag", "nonsense", "nonsense*"])
def test_a_pipe_among_the_yamls(task, endless, tmp_path):
    line = refused(tmp_path, "run", "--model", "bias-chance", "--tasks", task, "--include_path", str(endless))
    assert f"--include_path {endless}: {endless / 'x.yaml'} is a pipe or a device" in line


def test_a_device_among_the_yamls_of_a_folder_of_tasks(endless, tmp_path):
    (endless / "x.yaml").unlink()
    (endless / "x.yaml").symlink_to("/dev/zero")
    line = refused(tmp_path, "run", "--model", "bias-chance", "--tasks", str(endless))
    assert f"--tasks {endless}: {endless / 'x.yaml'} is a pipe or a device" in line


def test_base_files_that_are_read_for_ever_name_nothing(endless):
    from lm_eval_bias.harness import task_names

    os.mkfifo(endless / "_base_yaml")
    (endless / "zero").symlink_to("/dev/zero")
    assert task_names.unknown(["my_name"], [endless]) == ["my_name"]


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


@pytest.mark.parametrize("way", ["itself", "relative", "symlink", "hard link"])
@pytest.mark.parametrize("kind", ["report", "leaderboard", "compare", "export"])
def test_a_runs_own_file_is_no_output(kind, way, logs, tmp_path, monkeypatch):
    arguments, own = inputs(logs, kind)
    monkeypatch.chdir(tmp_path)
    link = tmp_path / f"link{own.suffix}"
    target = {"itself": own, "relative": os.path.relpath(own)}.get(way, link)
    if way == "symlink":
        link.symlink_to(own)
    elif way == "hard link":
        os.link(own, link)
        if kind in ("report", "compare"):
            (logs / "other").mkdir()  # a link below the folder that is read
            link.rename(logs / "other" / link.name)
            target = logs / "other" / link.name
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


def test_a_data_set_is_no_review_sheet(tmp_path):
    (tmp_path / "set.csv").write_text("id\n")
    validate = ["stereoset", "validate", str(tmp_path / "set.csv"), "--language", "it", "--source", "none"]
    assert "which the sheet would replace" in refused(tmp_path, *validate, "--review", str(tmp_path / "set.csv"))
    both = ["--review", str(tmp_path / "x.json"), "-o", str(tmp_path / "x.json")]
    assert "which the sheet would replace" in refused(tmp_path, *validate, *both)
    assert "-o names the data set that --review corrects" in refused(tmp_path, *validate, "-o", validate[2])


# ---- options that would quietly win, or count as absent


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--samples", '{"occugender_explicit": [0], "occugender_explicit": [1]}'],
            "'occugender_explicit' appears twice",
        ),
        (["--samples", "twice.json"], "'occugender_explicit' appears twice"),
        (["--config", "twice.yaml"], "--config twice.yaml line 2: 'limit' appears twice"),
        (["--config", "samples.yaml"], "--samples twice.json: the key 'occugender_explicit' appears twice"),
        (["--metadata", '{"words": "pronouns", "words": "appendix_a"}'], "--metadata: the key 'words' appears twice"),
        (["--gen_kwargs", '{"seed": 1, "seed": 2}'], "--gen_kwargs: the key 'seed' appears twice"),
        (["--gen_kwargs", "seed=1,seed=2"], "--gen_kwargs: seed= is given twice"),
        (["--gen_kwargs", "seed=1", "seed=2"], "--gen_kwargs: seed= is given twice"),
        (["--gen_kwargs", "seed=1", "--gen_kwargs", "seed=2"], "--gen_kwargs: seed= is given twice"),
        (["--gen_kwargs", '{"seed": 1}', '{"top_p": 1}'], "follows a JSON"),
        (["--model_args", "seed=1,seed=2"], "seed= is given twice"),
        (["--limit", "5", "--limit", "7"], "--limit/-L: given twice"),
        (["--limit", "5", "-L", "5"], "given twice"),
        (["--gen_kwargs", ""], "--gen_kwargs: is empty"),
        (["--metadata", '{"words": ""}'], "--metadata words= is empty"),
        (["--system_instruction", ""], "--system_instruction: is empty"),
    ],
)
def test_flags_of_a_run(arguments, says, tmp_path, monkeypatch):
    (tmp_path / "twice.json").write_text('{"occugender_explicit": [0], "occugender_explicit": [1]}')
    (tmp_path / "twice.yaml").write_text("limit: 5\nlimit: 7\n")
    (tmp_path / "samples.yaml").write_text("samples: twice.json\n")
    monkeypatch.chdir(tmp_path)
    assert says in refused(tmp_path, *RUN, *arguments)


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
        ["leaderboard", "RUN", "--task", "stereoset_en", "--task", ""],
        ["rescore", "RUN", "--language", ""],
        ["rescore", "RUN", "--classifier", ""],
        ["export", "--to", "predictions", "RUN", "-o", "x.json", "--variant", ""],
        ["regard", "classify", "RUN", "--classifier", ""],
        ["regard", "train", "--encoder", ""],
        ["nsp", "train", "--revision", ""],
        ["stereoset", "translate", "--language", ""],
        ["stereoset", "validate", "RUN", "--tasks", ""],
        ["report", "RUN", "-o", "x.md", "-o", "y.md"],
    ],
    ids=" ".join,
)
def test_options_of_commands(arguments, small_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    option = next(word for word in arguments[::-1] if word.startswith("-"))
    line = refused(tmp_path, *(str(small_run) if word == "RUN" else word for word in arguments))
    assert option in line
    assert "is empty" in line or "no score named" in line or "given twice" in line


def test_a_score_that_is_named_twice_is_compared_once(small_run, logs):
    once, twice = (
        command("compare", str(small_run), str(logs), "--scores", scores, "--format", "json")
        for scores in ("ss,lms", "ss, lms,ss,")
    )
    assert (once.status, once.out) == (0, twice.out)


# ---- numbers of policies


@pytest.mark.parametrize(
    ("allowed", "holds"),
    [
        ("limit=8", True),
        ("limit=8.0", True),
        ("limit=8.00", True),
        ("limit", True),
        ("limit=9", False),
        ("limit=08", False),
    ],
)
def test_a_number_that_a_policy_allows_may_be_written_another_way(allowed, holds, small_run, tmp_path):
    policy = tmp_path / "policy.yaml"
    bound = "{task: occugender_debias_implicit_none, score: stereotype_gap, max: 0.9999999999}"
    policy.write_text(f"bounds: [{bound}]\nallow: ['{allowed}']\n")
    outcome = command("check", str(small_run), "--policy", str(policy), "--json")
    findings = {finding["score"]: finding for finding in json.loads(outcome.out)["runs"][0]["findings"]}
    assert findings["limit"]["holds"] is holds
    assert findings["stereotype_gap"]["bound"] == "the whole interval at most 0.9999999999"


def test_a_hash_of_digits_is_no_number():
    from lm_eval_bias.analysis.departures import Departure
    from lm_eval_bias.analysis.policy_verdict import _allows

    assert _allows("samples=012345678901", Departure("samples", "012345678901", ""))
    assert not _allows("samples=12345678901", Departure("samples", "012345678901", ""))
    assert not _allows("samples=123e4", Departure("samples", "1230000", ""))
    assert not _allows("wording=3", Departure("limit", "3.0", ""))


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


# ---- where a command is given


@pytest.mark.parametrize("arguments", [["export", "--to", "predictions", "RUN", "-o", "p.json"], ["ls"], RUN])
def test_a_deleted_current_folder(arguments, small_run, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    line = refused(tmp_path, *(str(small_run) if word == "RUN" else word for word in arguments))
    assert "the current folder is gone" in line


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


@pytest.mark.parametrize("engine", ["command:false", "command:no-such-program", "command:echo one", "hf:EMPTY"])
def test_an_engine_that_fails_is_one_line(engine, tiny_mirror, tmp_path):
    (tmp_path / "EMPTY").mkdir()
    (tmp_path / "EMPTY" / "config.json").write_text("{}")
    engine = engine.replace("EMPTY", str(tmp_path / "EMPTY"))
    outcome = command("stereoset", "translate", "--to", "it", "--engine", engine, "-o", str(tmp_path / "it"))
    assert f"--engine {engine}: " in check_refusal(outcome)
