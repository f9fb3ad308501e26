"""Whole runs of a suite: the result is an ordinary one that a policy can judge."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from lm_eval.tasks import TaskManager

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import registry
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.evaluation import suites
from lm_eval_bias.evaluation.suites import Suite, SuitePart
from lm_eval_bias.runs.run_discovery import read
from tests.support import tiny

QUICK = {task: sampling for benchmark in registry.benchmarks() for task, sampling in benchmark.quick.items()}
TASKS = {
    "regard_en": SuitePart(None, 20, 40),
    "occugender_implicit": SuitePart(QUICK["occugender_implicit"]._replace(number=2), 80, 480),
    "gg_bbq_group_terms": SuitePart(QUICK["gg_bbq_group_terms"], 16, 48),
    "stereoset_en": SuitePart(QUICK["stereoset_en"]._replace(number=1), 6, 18),
    "stereoset_de_inter_variants": SuitePart(None, 2, 6),
}


@pytest.fixture
def small_suite(monkeypatch):
    """A suite with every kind of request, small enough for a test."""
    suite = Suite("quick", "nothing", TASKS)
    monkeypatch.setattr(suites, "load", lambda name: suite)
    return suite


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny.gpt2(tmp_path_factory.mktemp("gpt2"), positions=400)


def content(folder):
    (path,) = folder.rglob("results_*.json")
    return json.loads(path.read_text(encoding="utf-8"))


def comparable(results):
    """A result file without what differs from one run to the next by itself."""
    for key in ("date", "total_evaluation_time_seconds"):
        del results[key]
    results["config"].pop("use_cache")
    return results


def samples(folder):
    return {
        path.name.rsplit("_", 1)[0]: path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("samples_*.jsonl"))
    }


def cached(path):
    with sqlite3.connect(f"{path}_rank0.db") as database:
        return dict(database.execute("SELECT key, value FROM unnamed"))


@pytest.mark.slow
def test_a_suite_runs_its_items_alone(small_suite, tiny_mirror, model, tmp_path, capsys):
    base = ["run", "--model", "hf", "--model_args", f"pretrained={model}", "--device", "cpu", "--batch_size", "8"]
    base += ["--log_samples", "--metadata", '{"repeats": 2, "classifier": "light"}', "--seed", "5"]

    def arguments(name):
        return [*base, "--output_path", str(tmp_path / name), "--use_cache", str(tmp_path / f"{name}.cache")]

    assert main([*arguments("suite"), "--suite", "quick"]) == 0
    assert "Not in it: nothing.\n124 items, 592 requests.\n" in capsys.readouterr().out
    suite = content(tmp_path / "suite")
    indices = {}
    for name in TASKS:
        lines = samples(tmp_path / "suite")[f"samples_{name}"].splitlines()
        indices[name] = sorted(json.loads(line)["doc_id"] for line in lines)
        label = suite["configs"][name]["metadata"].pop("suite")
        assert (label["name"], label["version"]) == ("quick", suites.VERSION)
        assert label.get("documents", len(lines)) == len(lines)
    chosen = {name: own for name, own in indices.items() if TASKS[name].sampling}
    assert main([*arguments("plain"), "--tasks", ",".join(TASKS), "--samples", json.dumps(chosen)]) == 0
    assert samples(tmp_path / "suite") == samples(tmp_path / "plain")
    assert comparable(suite) == comparable(content(tmp_path / "plain"))
    assert suite["model_source"] == suite["config"]["model"] == "hf"
    assert suite["config"]["model_args"] == {"pretrained": str(model)}
    ours, plain = (cached(tmp_path / f"{name}.cache") for name in ("suite", "plain"))
    assert ours == plain
    assert len(ours) > 500
    assert read([tmp_path / "suite"])[0][0].command.startswith("lm-eval-bias run --suite quick --model hf ")


def test_cached_requests_are_not_taken_for_those_of_other_documents(tmp_path, monkeypatch):
    monkeypatch.setattr("lm_eval.caching.cache.PATH", str(tmp_path / "requests"))
    asked = []
    for instruction, part, documents in (("none", 80, 80), ("none", None, 1000), (3, 80, 80), ("none", 80, 80)):
        manager = TaskManager(
            include_path=str(tasks_path()), include_defaults=False, metadata={"instruction": instruction}
        )
        task = manager.load(["occugender_implicit"])["tasks"]["occugender_implicit"]
        task.build_all_requests(samples=part and list(range(part)), cache_requests=True)
        assert len(task.instances) == 6 * documents
        asked.append([instance.arguments for instance in task.instances])
    assert asked[0] == asked[3] != asked[2]
    assert len(list((tmp_path / "requests").iterdir())) == 3


def test_policies_judge_a_run(tmp_path, capsys):
    out, policy = tmp_path / "run", tmp_path / "policy.yaml"
    some = json.dumps({"occugender_implicit": list(range(80))})
    base = ["run", "--tasks", "occugender_implicit", "--model", "bias-chance", "--samples", some]
    assert main([*base, "--output_path", str(out)]) == 0
    full, part = "min_documents_share: 1\n", "allow: [samples, chance_level, low_coverage]\n"
    for text, status, says in (
        (part + "bounds: [{task: occugender_implicit, score: stereotype_gap, min: -0.9, max: 0.9}]", 0, "all 4 hold"),
        ("bounds: [{task: occugender_implicit, score: stereotype_gap, min: -0.9, max: 0.9}]", 1, "80 of 1,000 items;"),
        ("bounds: [{task: occugender_implicit, score: stereotype_gap, min: 0.5}]", 1, "VIOLATED"),
        ("bounds: [{task: occugender, score: stereotype_gap, max: 0.9}]", 1, "not measured"),
        ("bounds: [{task: occugendr_implicit, score: stereotype_gap, max: 0.9}]", 2, "Did you mean occugender_implic"),
        (full + "bounds: [{task: occugender_implicit, score: coverage, min: 0.0001}]", 1, "80 of 1,000 items, 8% of"),
    ):
        policy.write_text(text)
        capsys.readouterr()
        assert main(["check", str(out), "--policy", str(policy)]) == status, text
        said = capsys.readouterr()
        assert says in (said.err if status == 2 else said.out)


@pytest.mark.slow
def test_of_two_processes_one_speaks(mirror, tmp_path):
    where = tiny.gpt2(tmp_path / "model", positions=400)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "29534"]
    command += ["-m", "lm_eval_bias", "run", "--model", "hf-packed", "--device", "cpu"]
    command += ["--model_args", f"pretrained={where}"]
    settings = {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "GLOO_SOCKET_IFNAME": "lo", "HF_HUB_OFFLINE": "1"}
    settings |= {"PYTHONPATH": str(Path(__file__).parents[2]), "LM_EVAL_BIAS_DATA": str(mirror)}
    done = subprocess.run(
        [*command, "--suite", "quick", "--output_path", str(tmp_path / "out")],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("Suite quick (version") == 1
    assert len(list(tmp_path.rglob("results_*.json"))) == 1
