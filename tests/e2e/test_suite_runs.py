"""Whole runs of a suite: the estimate changes nothing, and the result is an ordinary one that a policy can judge."""

import json
import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from lm_eval_bias import registry
from lm_eval_bias.cli.main import main
from lm_eval_bias.evaluation import run_plan, time_estimate
from lm_eval_bias.evaluation.suites import Part, Suite
from lm_eval_bias.paths import tasks_path
from lm_eval_bias.runs.run_discovery import read
from tests import tiny

QUICK = {task: sampling for benchmark in registry.benchmarks() for task, sampling in benchmark.quick.items()}
TASKS = {
    "regard_en": Part("regard_en", None, 20, 40),
    "occugender_implicit": Part("occugender_implicit", QUICK["occugender_implicit"]._replace(number=2), 80, 480),
    "gg_bbq_group_terms": Part("gg_bbq_group_terms", QUICK["gg_bbq_group_terms"], 16, 48),
    "stereoset_en": Part("stereoset_en", QUICK["stereoset_en"]._replace(number=1), 6, 18),
    "stereoset_de_inter_variants": Part("stereoset_de_inter_variants", None, 2, 6),
}


@pytest.fixture
def small_suite(monkeypatch):
    """A suite with every kind of request, small enough for a test."""
    suite = Suite("quick", 7, "a test", "nothing", "s", TASKS)
    monkeypatch.setattr(run_plan, "load", lambda name: suite)
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
def test_a_run_with_an_estimate_is_the_run_without(small_suite, tiny_mirror, model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("lm_eval_bias.evaluation.time_estimate.SECONDS", 2.0)
    base = ["run", "--model", "hf", "--model_args", f"pretrained={model}", "--device", "cpu", "--batch_size", "8"]
    base += ["--log_samples", "--metadata", '{"repeats": 2, "classifier": "light"}', "--seed", "5"]

    def arguments(name):
        return [*base, "--output_path", str(tmp_path / name), "--use_cache", str(tmp_path / f"{name}.cache")]

    assert main([*arguments("suite"), "--suite", "quick"]) == 0
    said = capsys.readouterr().out
    assert "592 requests in all: 40 generated texts, 528 log-likelihoods, 9 next sentences, 9 blanks" in said
    assert "Expected time: " in said
    suite = content(tmp_path / "suite")
    indices = {}
    for name in TASKS:
        lines = samples(tmp_path / "suite")[f"samples_{name}"].splitlines()
        indices[name] = sorted(json.loads(line)["doc_id"] for line in lines)
        label = suite["configs"][name]["metadata"].pop("suite")
        assert (label["name"], label["version"]) == ("quick", 7)
        assert label.get("documents", len(lines)) == len(lines)
    chosen = {name: own for name, own in indices.items() if TASKS[name].sampling}
    assert main([*arguments("plain"), "--tasks", ",".join(TASKS), "--samples", json.dumps(chosen)]) == 0
    assert "Expected time" not in capsys.readouterr().out
    assert samples(tmp_path / "suite") == samples(tmp_path / "plain")
    assert comparable(suite) == comparable(content(tmp_path / "plain"))
    assert suite["model_source"] == suite["config"]["model"] == "hf"
    assert suite["config"]["model_args"] == {"pretrained": str(model)}
    ours, plain = (cached(tmp_path / f"{name}.cache") for name in ("suite", "plain"))
    assert ours == plain
    assert len(ours) > 500
    assert read([tmp_path / "suite"])[0][0].command.startswith("lm-eval-bias run --suite quick --model hf ")


def test_estimate_stops_before_anything_is_scored(small_suite, tiny_mirror, tmp_path, capsys):
    base = [
        "run",
        "--model",
        "bias-chance",
        "--metadata",
        '{"classifier": "light"}',
        "--use_cache",
        str(tmp_path / "c"),
    ]
    assert main([*base, "--suite", "quick", "--estimate", "--output_path", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "2,000 generated texts" in out
    assert "Expected time: at most" in out
    assert not list((tmp_path / "out").rglob("*"))
    assert not list(tmp_path.glob("c_rank*"))


def test_estimate_of_named_tasks(tmp_path, capsys):
    assert main(["run", "--tasks", "occugender", "--model", "bias-chance", "--limit", "40", "--estimate"]) == 0
    out = capsys.readouterr().out
    assert "1,280 requests in all" in out
    assert "Expected time: about" in out


@pytest.mark.slow
def test_an_estimate_shows_no_progress_bars(tiny_mirror, model, capfd):
    hf = ["--model", "hf", "--model_args", f"pretrained={model}", "--device", "cpu", "--estimate"]
    for tasks in (["occugender_explicit"], ["regard_de", "--metadata", "classifier=light"]):
        assert main(["run", "--tasks", *tasks, *hf]) == 0
        out, err = capfd.readouterr()
        assert "Expected time: " in out
        assert "Running " not in err


def test_cached_requests_of_a_part_are_not_taken_for_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("lm_eval.caching.cache.PATH", str(tmp_path / "requests"))
    manager = TaskManager(include_path=str(tasks_path()), include_defaults=False)
    task = manager.load(["occugender_debias_implicit_none"])["tasks"]["occugender_debias_implicit_none"]
    for part, documents in ((list(range(80)), 80), (None, 200), (list(range(80)), 80)):
        task.build_all_requests(samples=part, cache_requests=True)
        assert len(task.instances) == 6 * documents
    assert len(list((tmp_path / "requests").iterdir())) == 2


class Elsewhere(LM):
    """A model that counts what it is asked."""

    asked = 0

    def loglikelihood(self, requests):
        self.asked += len(requests)
        return [(-1.0, False)] * len(requests)

    loglikelihood_rolling = generate_until = loglikelihood


class HFLM(Elsewhere):
    """By its name a model that computes here; it uses up random numbers, as sampling does."""

    batch_sizes = {0: 3}

    def loglikelihood(self, requests):
        random.random(), numpy.random.random(), torch.rand(1)
        self.batch_sizes[1] = 9
        for request in requests:
            self.cache_hook.add_partial("loglikelihood", request.args, (-1.0, False))
        return super().loglikelihood(requests)


def timed(model, number=30, kind="loglikelihood", options=None, **flags):
    """Announce the time of some requests; they are as they were."""
    from lm_eval.api.instance import Instance

    doc = {"benchmark": "occugender"}
    instances = [Instance(kind, doc, ("a", options or " b"), 0, ("t", n, 1)) for n in range(number)]
    try:
        time_estimate.announce(model, instances, **flags)
    finally:
        assert all(instance.resps == [] for instance in instances)


def test_models_elsewhere_are_asked_nothing(capsys):
    model = Elsewhere()
    timed(model)
    assert model.asked == 0
    assert "No time estimate: Elsewhere may compute on another machine" in capsys.readouterr().out


def test_timing_leaves_random_numbers_cache_and_batch_sizes_alone(capsys):
    class Hook:
        kept = 0

        def add_partial(self, *_):
            self.kept += 1

    model, hook = HFLM(), Hook()
    model.set_cache_hook(hook)
    states = random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    timed(model)
    assert model.asked > 0
    assert (random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == states
    assert model.cache_hook is hook
    assert hook.kept == 0
    assert model.batch_sizes == {0: 3}
    assert "Expected time: about" in capsys.readouterr().out


@pytest.fixture
def slow(monkeypatch):
    """Lets a request, or a token of a text, take so many seconds by a clock that nothing else moves; lists them."""
    clock, asked = [0.0], []

    def taking(each):
        def seconds(model, kind, requests):
            asked.extend(requests)
            took = each * sum(one.args[1]["max_gen_toks"] if kind == "generate_until" else 1 for one in requests)
            clock[0] += took
            return took

        monkeypatch.setattr(time_estimate, "_seconds", seconds)
        monkeypatch.setattr(time_estimate.time, "perf_counter", lambda: clock[0])
        return asked

    return taking


@pytest.mark.parametrize(
    ("each", "number", "says", "most"),
    [
        (0.4, 120, "", 1),  # 48 s
        (4.0, 120, "Expected time: about 8 min (occugender 8 min); measured on 1 request in 8 s.", 2),
        (0.05, 9000, "Expected time: about 8 min (occugender 8 min); measured on 73 requests", 75),
        (4.0, 30, "", 0),  # so few that asking would be a good part of the run
    ],
)
def test_a_run_of_minutes_says_so_at_the_cost_of_a_hundredth(each, number, says, most, slow, capsys):
    asked = slow(each)
    timed(HFLM(), brief=True, number=number)
    out = capsys.readouterr().out
    assert out.startswith(says)
    assert bool(out) is bool(says)
    assert len(asked) <= most <= max(2, 0.02 * number)


def test_a_slow_first_request_is_not_taken_for_the_others(slow, capsys, monkeypatch):
    slow(1.0)
    first = [60.0]  # seconds on top: memory is fetched, threads are started
    usual = time_estimate._seconds
    monkeypatch.setattr(time_estimate, "_seconds", lambda *given: usual(*given) + (first.pop() if first else 0.0))
    timed(HFLM(), number=120)
    assert capsys.readouterr().out.startswith("Expected time: about 2 min (occugender 2 min); measured on ")  # not 2 h


def test_the_time_of_texts_is_told_for_short_and_for_longest_ones(slow, capsys):
    slow(0.2)
    options = {"until": ["\n"], "max_gen_toks": 1024}
    timed(HFLM(), brief=True, number=16, kind="generated_text", options=options)
    out = capsys.readouterr().out
    assert out.startswith("Expected time: 2 min to 55 min (occugender from texts 2 min to 55 min); measured on 4 ")
    assert "Texts of 32 to 1,024 tokens: a lower limit (--gen_kwargs max_gen_toks=64) takes less time" in out


def test_of_a_model_elsewhere_or_one_that_seeks_its_batch_size_nothing_is_said_unasked(capsys):
    model = HFLM()
    model.batch_size = "auto:4"
    for one in (Elsewhere(), model):
        timed(one, brief=True, number=200)
        assert one.asked == 0
    assert not capsys.readouterr().out


def test_a_stopped_run_is_no_error_and_leaves_its_requests_alone():
    with pytest.raises(time_estimate.Stop):
        timed(HFLM(), stop=True)


@pytest.mark.parametrize("suite", [True, False])
def test_the_time_is_measured_before_the_first_request(suite, small_suite, tiny_mirror, monkeypatch):
    from lm_eval_bias.models.chance import ChanceLM

    order = []
    answer = ChanceLM.loglikelihood
    monkeypatch.setattr(ChanceLM, "loglikelihood", lambda *given: order.append("asked") or answer(*given))
    monkeypatch.setattr(
        time_estimate, "announce", lambda model, requests, stop, brief: order.append((len(requests), brief))
    )
    which = ["--suite", "quick"] if suite else ["--tasks", ",".join(TASKS), "--limit", "2"]
    assert main(["run", "--model", "bias-chance", *which, "--metadata", '{"repeats": 2, "classifier": "light"}']) == 0
    assert order[0] == ((572, False) if suite else (32, True))  # every text is one request with two samples
    assert set(order[1:]) == {"asked"}


def test_policies_judge_a_run(tmp_path, capsys):
    out, policy = tmp_path / "run", tmp_path / "policy.yaml"
    some = json.dumps({"occugender_implicit": list(range(80))})
    base = ["run", "--tasks", "occugender_implicit", "--model", "bias-chance", "--samples", some]
    assert main([*base, "--output_path", str(out)]) == 0
    full, part = "require_full: true\n", "allow: [samples]\n"
    for text, status, says in (
        (part + "bounds: [{task: occugender_implicit, score: stereotype_gap, min: -0.9, max: 0.9}]", 0, "all 2 hold"),
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
@pytest.mark.parametrize("more", [[], ["--estimate"]])
def test_two_processes_measure_together_and_one_speaks(more, mirror, tmp_path):
    where = tiny.gpt2(tmp_path / "model", positions=400)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "29534"]
    command += ["-m", "lm_eval_bias", "run", "--model", "hf-packed", "--device", "cpu"]
    command += ["--model_args", f"pretrained={where}"]
    command += (
        ["--tasks", "occugender_implicit", "--limit", "81", "--batch_size", "8"] if more else ["--suite", "quick"]
    )
    settings = {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "GLOO_SOCKET_IFNAME": "lo", "HF_HUB_OFFLINE": "1"}
    settings |= {"PYTHONPATH": str(Path(__file__).parents[2]), "LM_EVAL_BIAS_DATA": str(mirror)}
    done = subprocess.run(
        [*command, *more, "--output_path", str(tmp_path / "out")],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("Expected time") == 1
    assert len(list(tmp_path.rglob("results_*.json"))) == (0 if more else 1)
