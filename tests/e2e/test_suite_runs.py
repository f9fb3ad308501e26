"""Whole runs of a suite: the result is an ordinary one that a policy can judge."""

import json
import sqlite3

import pytest
from lm_eval.tasks import TaskManager

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.evaluation import suites
from lm_eval_bias.evaluation.suites import Sampling, Suite, SuitePart
from lm_eval_bias.runs.run_discovery import read
from tests.support import tiny
from tests.support.run_scores import logs_of, results_of

TASKS = {
    "regard_en": SuitePart(None, 20, 40),
    "occugender_implicit": SuitePart(Sampling("some", "0-39,80-119", 1000), 80, 480),
    "gg_bbq_group_terms": SuitePart(Sampling("some", "0-15", 16), 16, 48),
    "stereoset_en": SuitePart(Sampling("some", "0-5", 8), 6, 18),
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


def comparable(results):
    """A result file without what differs from one run to the next by itself."""
    own = {
        key: value
        for key, value in results.items()
        if key not in ("date", "total_evaluation_time_seconds")
    }
    return {
        **own,
        "config": {
            key: value for key, value in own["config"].items() if key != "use_cache"
        },
        "provenance": {
            key: value
            for key, value in own["provenance"].items()
            if key not in ("command", "cache")
        },
    }


@pytest.mark.slow
def test_a_suite_runs_its_items_alone(
    small_suite, tiny_mirror, model, tmp_path, capsys
):
    base = [
        "run",
        "--model",
        "hf",
        "--model_args",
        f"pretrained={model}",
        "--device",
        "cpu",
        "--batch_size",
        "8",
    ]
    base += [
        "--log_samples",
        "--metadata",
        '{"repeats": 2, "classifier": "light"}',
        "--seed",
        "5",
    ]

    def run(name, *more):
        kept = [
            "--output_path",
            str(tmp_path / name),
            "--use_cache",
            str(tmp_path / f"{name}.cache"),
        ]
        assert main([*base, *kept, *more]) == 0
        with sqlite3.connect(tmp_path / f"{name}.cache_rank0.db") as database:
            return dict(database.execute("SELECT key, value FROM unnamed"))

    ours = run("suite", "--suite", "quick")
    assert "Not in it: nothing.\n124 items, 592 requests.\n" in capsys.readouterr().out
    suite, indices = results_of(tmp_path / "suite"), {}
    for name in TASKS:
        indices[name] = sorted(
            sample["doc_id"] for sample in logs_of(tmp_path / "suite")[name]
        )
        label = suite["configs"][name]["metadata"].pop("suite")
        assert (label["name"], label["version"]) == ("quick", suites.VERSION)
        assert label.get("documents", len(indices[name])) == len(indices[name])
    chosen = {name: own for name, own in indices.items() if TASKS[name].sampling}
    assert (
        run("plain", "--tasks", ",".join(TASKS), "--samples", json.dumps(chosen))
        == ours
    )
    assert len(ours) > 300
    assert logs_of(tmp_path / "suite") == logs_of(tmp_path / "plain")
    assert comparable(suite) == comparable(results_of(tmp_path / "plain"))
    assert suite["model_source"] == suite["config"]["model"] == "hf"
    assert suite["config"]["model_args"] == {"pretrained": str(model)}
    (ran,) = read([tmp_path / "suite"])[0]
    assert ran.command.startswith("lm-eval-bias run --model hf ")
    assert ran.command.endswith(" --suite quick")


def test_cached_requests_are_not_taken_for_those_of_other_documents(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("lm_eval.caching.cache.PATH", str(tmp_path / "requests"))
    asked = []
    for instruction, part, documents in (
        ("none", 80, 80),
        ("none", None, 1000),
        (3, 80, 80),
        ("none", 80, 80),
    ):
        manager = TaskManager(
            include_path=str(tasks_path()),
            include_defaults=False,
            metadata={"instruction": instruction},
        )
        task = manager.load(["occugender_implicit"])["tasks"]["occugender_implicit"]
        task.build_all_requests(samples=part and list(range(part)), cache_requests=True)
        assert len(task.instances) == 6 * documents
        asked.append([instance.arguments for instance in task.instances])
    assert asked[0] == asked[3] != asked[2]
    assert len(list((tmp_path / "requests").iterdir())) == 3
