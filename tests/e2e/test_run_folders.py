"""What a run's files are called, and on which device they say that it ran."""

import json
import os

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.runs import run_discovery, run_file
from tests.support import tiny

TASK = "occugender_debias_implicit_none"
RUN = ["run", "--limit", "1", "--log_samples", "--output_path"]


def read(folder):
    (path,) = folder.rglob("results_*.json")
    (run,), problems = run_discovery.read([folder])
    assert not problems
    return path, json.loads(path.read_text(encoding="utf-8")), run_file.as_data(run)


def used():
    import torch

    return "cuda:0" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("kind", "make", "task"), [
    ("hf", tiny.t5, TASK),
    ("hf-packed", tiny.llama, TASK),
    ("hf-mlm", tiny.bert, "stereoset_en_intra"),
])  # fmt: skip
def test_local_models(kind, make, task, tmp_path, tiny_mirror, capsys):
    model_args = f"pretrained={make(tmp_path / '.hidden' / 'my model')}"
    model_args += ",backend=seq2seq" if make is tiny.t5 else ""
    out = tmp_path / "out"
    assert main([*RUN, str(out), "--tasks", task, "--model", kind, "--model_args", model_args]) == 0
    path, results, run = read(out)
    assert path.parent.name.startswith("my_model-")
    assert results["config"]["device"] == results["provenance"]["settings"]["device"] == used()
    assert run["provenance"]["device"] == used()
    assert f"--device {used()}" in run["command"]
    assert main(["rescore", str(out)]) == 0
    assert "fatal" not in capsys.readouterr().err


def test_models_that_are_nowhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*RUN, "out", "--tasks", TASK, "--model", "bias-chance", "--model_args", "seed=3"]) == 0
    path, results, run = read(tmp_path / "out")
    assert os.path.basename(path.parent) == results["model_name"] == "bias-chance"
    assert results["config"]["device"] is None
    assert run["provenance"]["device"] is None
    assert "--device" not in run["command"]


def test_runs_of_the_harness_itself_keep_their_names_and_say_no_device_that_was_not_there(tmp_path):
    from lm_eval.loggers import EvaluationTracker

    assert main([*RUN, str(tmp_path / "ours"), "--tasks", TASK, "--model", "bias-chance"]) == 0
    path, results, _ = read(tmp_path / "ours")
    tracker = EvaluationTracker(output_path=str(tmp_path / "theirs"))
    pretrained = {"pretrained": ".venv/lib/model"}
    tracker.general_config_tracker.log_experiment_args("hf", pretrained, None, None, False)
    results["config"] |= {"device": "cuda:0", "model": "hf", "model_args": pretrained}
    results["pretty_env_info"] = "PyTorch version: 2\nIs CUDA available: False\n"
    tracker.save_results_aggregated(results)
    path, _, run = read(tmp_path / "theirs")
    assert path.parent.name == ".venv__lib__model"
    assert run["model"] == "model"
    assert run["provenance"]["device"] is None
    assert "--device" not in run["command"]
    results["pretty_env_info"] = "PyTorch version: 2\nIs CUDA available: True\n"
    tracker.save_results_aggregated(results)
    path.unlink()
    assert "--device cuda:0" in read(tmp_path / "theirs")[2]["command"]
