"""Files of several runs or tasks that got mixed, and surroundings that nobody thinks of: nothing false is believed."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.fuzz.kit import command, refused

LOGS = ("rescore", "compare")


@pytest.fixture
def mixed(small_run, tmp_path):
    """A run like the small one beside it, made at another time."""
    folder = shutil.copytree(small_run, tmp_path / "mixed")
    (path,) = folder.rglob("results_*")
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "date": content["date"] + 1}), encoding="utf-8")
    return folder


def log(folder, task):
    (path,) = folder.rglob(f"samples_{task}_2*.jsonl")
    return path


def change(path, edit):
    """Rewrite a log with what is made of its lines."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    edit(lines)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def asked(name, small_run, folder):
    """A command on a folder: what compares gets the untouched run first."""
    return [name, *([str(small_run)] if name == "compare" else []), str(folder)]


def in_german(lines):
    for line in lines:
        line["doc"]["language"] = "de"


def exchanged(lines):
    """Each item with the answers to another."""
    answers = [(line["filtered_resps"], line["resps"]) for line in lines]
    for line, others in zip(lines, [*answers[3:], *answers[:3]], strict=True):
        line["filtered_resps"], line["resps"] = others


def relabelled(lines):
    """Stereotypes for unrelated candidates."""
    names = {"stereotype": "unrelated", "unrelated": "stereotype"}
    for candidate in (candidate for line in lines for candidate in line["doc"]["candidates"]):
        candidate["label"] = names.get(candidate["label"], candidate["label"])


def reworded(lines):
    lines[0]["arguments"]["gen_args_0"]["arg_1"] += "!"


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("results", [True, False])
def test_the_log_of_another_benchmark(results, name, small_run, mixed):
    log(mixed, "stereoset_en").write_bytes(log(mixed, "gg_bbq_group_terms").read_bytes())
    if not results:
        next(mixed.rglob("results_*")).unlink()
        name = "rescore"
    line = refused(mixed, *asked(name, small_run, mixed))
    assert (
        "a sample of gg_bbq in a log of stereoset_en, which is of stereoset: the file belongs to another task" in line
    )


def test_the_log_of_another_language(small_run, mixed):
    change(log(mixed, "stereoset_en"), in_german)
    next(mixed.rglob("results_*")).unlink()
    assert "a sample in the language 'de' in a log of stereoset_en" in refused(mixed, "rescore", str(mixed))


@pytest.mark.parametrize("name", [*LOGS, "export"])
@pytest.mark.parametrize("edit", [relabelled, reworded])
def test_the_log_of_other_documents(edit, name, small_run, mixed):
    change(log(mixed, "stereoset_en"), edit)
    more = ["--to", "predictions", "-o", str(mixed / "x.json"), "--language", "en"] if name == "export" else []
    line = refused(mixed, *asked(name, small_run, mixed), *more)
    assert "its samples have other documents or prompts than the run (results_" in line


def test_documents_of_which_nothing_is_known(small_run, mixed):
    change(log(mixed, "stereoset_en"), relabelled)
    (path,) = mixed.rglob("results_*")
    content = json.loads(path.read_text(encoding="utf-8"))
    for config in content["configs"].values():
        del config["metadata"]["inputs"]
    path.write_text(json.dumps(content), encoding="utf-8")
    outcome = command("rescore", str(mixed))
    assert outcome.status == 0
    assert "lm-eval-bias: differs from what its run says: " in outcome.err


def test_the_answers_of_another_model(small_run, mixed):
    change(log(mixed, "stereoset_en"), exchanged)
    assert "files are of different runs, or one was edited" in refused(mixed, "compare", str(small_run), str(mixed))
    outcome = command("rescore", str(mixed))
    assert outcome.status == 0
    (line,) = outcome.err.splitlines()
    assert line.startswith(f"lm-eval-bias: differs from what its run says: {log(mixed, 'stereoset_en')}: ")
    assert "of another run, edited, or scored by another version" in line


def test_logs_as_they_are(small_run, mixed):
    change(log(mixed, "stereoset_en"), lambda lines: lines.reverse())
    for name in LOGS:
        outcome = command(*asked(name, small_run, mixed))
        assert (outcome.status, outcome.err) == (0, "")


@pytest.mark.parametrize("argument", ["bos=all", "language=de", "version=0.5", "benchmark=gg_bbq", "inter=x"])
def test_options_of_tasks_among_a_models_arguments(argument, tmp_path):
    run = ["run", "--tasks", "stereoset_en_inter", "--model", "bias-chance", "--model_args", f"seed=1,{argument}"]
    name = argument.partition("=")[0]
    assert f"--model_args {name}=: the harness also passes" in refused(tmp_path, *run, "--metadata", '{"bos": "all"}')


def test_options_that_came_with_a_models_arguments_are_departures(mixed, tmp_path):
    """The harness's own command lets them through, and its files have them in both places."""
    (path,) = mixed.rglob("results_*")
    content = json.loads(path.read_text(encoding="utf-8"))
    smuggled = {"bos": "all", "classifier_used": "x", "pretrained": "y"}
    content["config"]["model_args"] = smuggled
    for task, config in content["configs"].items():
        config["metadata"] |= {key: value for key, value in smuggled.items() if key not in config["metadata"]}
        assert task != "regard_en" or config["metadata"]["classifier_used"] != "x"  # the task's own
    path.write_text(json.dumps(content), encoding="utf-8")
    bounds = "{task: stereoset_en, score: ss, max: 99}, {task: regard_en, score: all/chi2, max: 99}"
    (tmp_path / "policy.yaml").write_text(f"bounds: [{bounds}]\nallow: [limit, samples, repeats]\n", encoding="utf-8")
    outcome = command("check", str(mixed), "--policy", str(tmp_path / "policy.yaml"), "--json")
    findings = {(f["task"], f["score"]): f["says"] for f in json.loads(outcome.out)["runs"][0]["findings"]}
    assert "it is all" in findings["stereoset_en", "bos"]
    assert "light" in findings["regard_en", "classifier"]
    assert not [key for key in findings if key[1] == "pretrained"]
