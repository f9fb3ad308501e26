"""Options of tasks among a model's arguments: refused by ``run``, departures where plain lm_eval let them in."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.support.fuzzing import command, refused


@pytest.mark.parametrize("argument", ["bos=all", "language=de", "version=0.5", "benchmark=gg_bbq", "inter=x"])
def test_options_of_tasks_among_a_models_arguments(argument, tmp_path):
    run = ["run", "--tasks", "stereoset_en_inter", "--model", "bias-chance", "--model_args", f"seed=1,{argument}"]
    name = argument.partition("=")[0]
    assert f"--model_args {name}=: the harness passes it to tasks" in refused(
        tmp_path, *run, "--metadata", '{"bos": "all"}'
    )


def test_options_that_came_with_a_models_arguments_are_departures(small_run, tmp_path):
    """The harness's own command lets them through, and its files have them in both places."""
    mixed = shutil.copytree(small_run, tmp_path / "mixed")
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
