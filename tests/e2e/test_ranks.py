"""Several processes: the same scores as one, and no rank that waits for ever."""

import json
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch.distributed
import transformers
from lm_eval.tasks import TaskManager
from sqlitedict import SqliteDict

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.evaluation import preflight
from lm_eval_bias.harness import distributed, running
from lm_eval_bias.harness.score_aggregation import Aggregation, Notes, Scored
from lm_eval_bias.models.next_sentence import nsp_model
from lm_eval_bias.runs import sample_logs
from lm_eval_bias.tasks.regard import classifier, regard_texts
from lm_eval_bias.tasks.stereoset import stereoset_items
from tests.support import tiny


@pytest.mark.parametrize("world_size", [2, 3, 4, 8])
@pytest.mark.parametrize("more", [-1, 0, 1, None])  # -1: a rank without any document
def test_every_rank_has_every_kind_in_the_same_order(tiny_mirror, world_size, more):
    limit = None if more is None else world_size + more
    manager = TaskManager(include_path=str(tasks_path()), include_defaults=False)
    per_rank = []
    for rank in range(world_size):
        task = manager.load(["stereoset_en"])["tasks"]["stereoset_en"]
        task.build_all_requests(limit=limit, rank=rank, world_size=world_size)
        kinds = [instance.request_type for instance in task.instances]
        per_rank.append(list(dict.fromkeys(kinds)))
        assert kinds == sorted(kinds, key=per_rank[0].index)
        own = {instance.doc_id for instance in task.instances if instance.doc_id >= 0}
        given = {doc_id for doc_id, _ in task.doc_iterator(rank=rank, limit=limit, world_size=world_size)}
        assert own == set() if rank == limit else own == given
        assert own or given == {-1}
    assert all(kinds == per_rank[0] for kinds in per_rank)


@pytest.mark.parametrize("world_size", [2, 4, 8])
def test_ranks_get_as_much_of_both_tests(mirror, world_size):
    items = stereoset_items.spread(
        [item for test in stereoset_items.TESTS for item in stereoset_items.read("en", test)]
    )
    for rank in range(world_size):
        tests = [item["test"] for item in items[rank::world_size]]
        assert 0.45 < tests.count("inter") / len(tests) < 0.55


def built(name, rank=0, world_size=1, limit=3, **metadata):
    task = TaskManager(include_path=str(tasks_path()), include_defaults=False, metadata=metadata).load([name])
    task = task["tasks"][name]
    task.build_all_requests(limit=limit, rank=rank, world_size=world_size)
    return task


@pytest.mark.parametrize(
    "name", ["occugender_implicit", "gg_bbq_group_terms", "gg_bbq_group_terms_gen", "stereoset_en"]
)
def test_a_rank_without_documents_asks_something_and_says_nothing(tiny_mirror, name):
    busy, idle = (built(name, rank, world_size=2, limit=1) for rank in (0, 1))
    assert [i.request_type for i in idle.instances] == [i.request_type for i in busy.instances]
    ((doc_id, doc),) = idle.doc_iterator(rank=1, limit=1, world_size=2)
    assert doc_id < 0
    assert all(instance.doc_id == doc_id for instance in idle.instances if instance.request_type != "cloze")
    said = idle.process_results(doc, [])
    assert set(said.values()) == {None}
    sample = {"doc": busy.eval_docs[0], "filter": "none", "doc_id": 0, "filtered_resps": []}
    stand_in = {**sample, "doc": doc, "doc_id": doc_id}
    assert running.samples_in_order({name: [sample, stand_in]}) == {name: [sample]}


def test_sample_logs_of_the_stock_harness_may_hold_an_idle_rank(tmp_path):
    doc = {"benchmark": "gg_bbq"}
    samples = [{"doc_id": 0, "doc": doc, "filtered_resps": []}]
    samples.append({"doc_id": -1, "doc": {**doc, distributed.IDLE: True}, "filtered_resps": [None]})
    path = tmp_path / "samples_gg_bbq_group_terms_2026-11-22T00-00-00.jsonl"
    path.write_text("\n".join(map(json.dumps, samples)))
    assert [saved.docs for saved in sample_logs.collect(sample_logs.samples(path)).values()] == [[doc]]


def test_documents_of_several_ranks_are_scored_in_their_own_order(tiny_mirror):
    seen = []
    score = SimpleNamespace(compute=lambda records: seen.append(records), has_stderr=False, name="s")
    values = [Scored(1.0, {"n": n}, n) for n in (0, 2, 4, 1, 3)]  # two ranks, one behind the other
    Aggregation(score, Notes("t", 1), {})._compute(pickle.loads(pickle.dumps([*values, None])))
    assert [record["n"] for record in seen[0]] == [0, 1, 2, 3, 4]
    task = built("gg_bbq_group_terms", rank=1, world_size=2)
    ((_, doc),) = task.doc_iterator(rank=1, limit=3, world_size=2)
    said = task.process_results(doc, [(-1.0, False), (-2.0, False), (-3.0, False)])
    assert {value.place for value in said.values() if value is not None} == {1}


def test_samples_are_logged_in_the_order_of_the_documents():
    own = [{"filter": name, "doc_id": n, "doc": {}} for name in ("b", "a") for n in (0, 2, 1)]
    (found,) = running.samples_in_order({"t": own}).values()
    assert [(s["filter"], s["doc_id"]) for s in found] == [(name, n) for name in ("b", "a") for n in (0, 1, 2)]


def test_samples_given_in_any_order_get_their_own_numbers():
    config = SimpleNamespace(samples={"t": [3, 1, 3]})
    preflight.check_samples(config, [SimpleNamespace(task_name="t", eval_docs=range(5))])
    assert config.samples == {"t": [1, 3]}


class Threads:
    """What is used of ``torch.distributed``, between threads."""

    def __init__(self, size):
        self.size, self.own, self.sent, self.here = size, {}, [], threading.local()
        self.barrier = threading.Barrier(size, timeout=30)

    is_available = is_initialized = lambda self: True

    def get_world_size(self):
        return self.size

    def get_rank(self):
        return self.here.rank

    def gather_object(self, obj, gathered, dst):
        self.own[self.here.rank] = pickle.dumps(obj)
        self.barrier.wait()
        if gathered is not None:
            gathered[:] = [pickle.loads(self.own[rank]) for rank in range(self.size)]

    def scatter_object_list(self, received, parts, src):
        if parts is not None:
            self.sent = parts
        self.barrier.wait()
        received[0] = pickle.loads(pickle.dumps(self.sent[self.here.rank]))


@pytest.fixture
def threads(monkeypatch):
    group = Threads(2)
    for name in ("is_available", "is_initialized", "get_world_size", "get_rank", "gather_object"):
        monkeypatch.setattr(torch.distributed, name, getattr(group, name))
    monkeypatch.setattr(torch.distributed, "scatter_object_list", group.scatter_object_list)

    def on_all(function):
        def one(rank):
            group.here.rank = rank
            try:
                return function(rank)
            except BiasError as error:
                return error

        with ThreadPoolExecutor(group.size) as pool:
            return list(pool.map(one, range(group.size)))

    return on_all


def answered(task, surplus=0):
    """A task whose requests have answers; the harness may have asked the last one too often."""
    for instance in task.instances:
        instance.resps = [f" was {instance.args[0]} {n}. And" for n in range(instance.repeats)]
    task.instances[-1].resps += ["one too many"] * surplus
    task.apply_filters()
    return {instance.doc_id: (instance.resps, instance.filtered_resps) for instance in task.instances}


@pytest.mark.parametrize("limit", [3, 1])
def test_texts_of_all_ranks_are_classified_once_and_as_by_one_process(tiny_mirror, threads, monkeypatch, limit):
    calls = []
    label = classifier.label
    monkeypatch.setattr(classifier, "label", lambda found, texts: calls.append(texts) or label(found, texts))
    options = {"limit": limit, "repeats": 2, "classifier": "light"}
    alone = answered(built("regard_en", **options))
    tasks = [built("regard_en", rank, world_size=2, **options) for rank in (0, 1)]
    both = threads(lambda rank: answered(tasks[rank], surplus=2 * rank))
    assert {doc_id: own for part in both for doc_id, own in part.items() if doc_id >= 0} == alone
    assert len(calls) == 2
    assert calls[0] == calls[1]


def test_what_goes_wrong_on_the_first_rank_stops_all(tiny_mirror, threads, monkeypatch):
    options = {"repeats": 2, "classifier": "light"}
    tasks = [built("regard_en", rank, world_size=2, **options) for rank in (0, 1)]

    def broken(found, texts):
        raise BiasError("no probabilities")

    monkeypatch.setattr(classifier, "label", broken)
    assert [str(error) for error in threads(lambda rank: answered(tasks[rank]))] == ["no probabilities"] * 2


def test_a_task_of_the_harness_with_fewer_items_than_processes_is_one_line(monkeypatch, capsys):
    def evaluate(**arguments):
        raise ValueError("task.build_requests() did not find any docs!")

    monkeypatch.setattr("lm_eval.simple_evaluate", evaluate)
    assert main(["run", "--model", "bias-chance", "--tasks", "occugender_implicit"]) == 2
    assert "fewer processes or a larger --limit" in capsys.readouterr().err


def launch(out, processes, model, tasks, mirror, more=()):
    """Run in so many processes; samples by task, scores by task, and what was printed."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes)]
    command += ["--standalone", "-m", "lm_eval_bias"]
    own = ["run", "--tasks", tasks, *model, *more, "--device", "cpu", "--batch_size", "8", "--log_samples"]
    own += ["--output_path", str(out)]
    printed = ""
    if processes > 1:
        settings = {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "GLOO_SOCKET_IFNAME": "lo"}
        settings |= {"LM_EVAL_BIAS_DATA": str(mirror), "PYTHONPATH": str(Path(__file__).parents[2])}
        # no rank may wait for ever
        done = subprocess.run(
            [*command, *own], env={**os.environ, **settings}, capture_output=True, text=True, timeout=400
        )
        assert done.returncode == 0, done.stderr[-3000:]
        printed = done.stdout
    else:
        assert main(own) == 0
    samples = {
        path.name.rsplit("_", 1)[0].removeprefix("samples_"): [json.loads(line) for line in path.open(encoding="utf-8")]
        for path in sorted(out.rglob("samples_*.jsonl"))
    }
    (path,) = out.rglob("results_*.json")
    results = json.loads(path.read_text(encoding="utf-8"))
    return samples, {task: {k: v for k, v in s.items() if "," in k} for task, s in results["results"].items()}, printed


def close(one, two):
    """Whether logs or scores are the same but for the last digits of numbers, which may stand there as text."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(close(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(close, one, two))
    try:
        return float(one) == pytest.approx(float(two), rel=1e-4, abs=1e-6, nan_ok=True)
    except (TypeError, ValueError):
        return one == two


def model_of(kind, folder):
    made = (tiny.bert if kind == "hf-mlm" else tiny.gpt2)(folder, positions=400)
    if kind == "hf-nsp":
        body, made = transformers.AutoModel.from_pretrained(made), folder.with_name("nsp")
        torch.manual_seed(20261122)
        head = nsp_model.make_head(body.config.hidden_size)
        nsp_model.save(made, body, tiny.gpt2_tokenizer(), nsp_model.NSPConfig("causal"), head)
    return ["--model", kind, "--model_args", f"pretrained={made}"]


# texts that are drawn without chance; three items are two for one rank and one for the other
DRAWN = ["--metadata", '{"repeats": 3, "classifier": "light"}', "--gen_kwargs", "top_k=1,max_gen_toks=8"]
ALL = "occugender_implicit,gg_bbq_group_terms,gg_bbq_group_terms_gen,stereoset_en,regard_en"
CHOSEN = {"occugender_implicit": [3, 500, 7], "stereoset_de": [9, 8, 2, 2100, 3000], "gg_bbq_group_terms": [4]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "processes", "tasks", "more"),
    [
        ("hf", 2, ALL, ["--limit", "3", *DRAWN]),
        ("hf", 3, ALL, ["--limit", "2", *DRAWN]),
        ("hf-packed", 2, ",".join(CHOSEN), ["--samples", json.dumps(CHOSEN)]),
        ("hf-mlm", 2, "stereoset_en,stereoset_de_inter", ["--limit", "21"]),
        ("hf-nsp", 2, "stereoset_de_inter", ["--limit", "3"]),
    ],
)
def test_several_processes_give_the_scores_and_the_log_of_one(kind, processes, tasks, more, mirror, tmp_path):
    model = model_of(kind, tmp_path / "model")
    one = launch(tmp_path / "one", 1, model, tasks, mirror, more)
    several = launch(tmp_path / "several", processes, model, tasks, mirror, more)
    assert one[0].keys() == several[0].keys() == set(tasks.split(","))
    for task, samples in one[0].items():
        assert len(samples) == len(several[0][task]) > 0
        for a, b in zip(samples, several[0][task], strict=True):
            assert close(a, b), (task, a["doc_id"])
    assert one[1].keys() == several[1].keys()
    for task, scores in one[1].items():
        for name, value in scores.items():
            assert close(value, several[1][task][name]), (task, name)
    assert several[2].count("In words") == 1


@pytest.mark.slow
def test_each_process_goes_on_from_its_own_cache(mirror, tmp_path):
    more = ["--limit", "3", "--use_cache", str(tmp_path / "cache")]
    model = model_of("hf", tmp_path / "model")
    first = launch(tmp_path / "first", 2, model, "occugender_implicit", mirror, more)
    for path in tmp_path.glob("cache_rank*.db"):  # only who reads the cache gets these answers
        with SqliteDict(str(path)) as cache:
            answers = {key: value for key, value in cache.items() if isinstance(value, tuple)}
            assert answers
            cache.update({key: (value[0] - 1.0, *value[1:]) for key, value in answers.items()})
            cache.commit()
    again = launch(tmp_path / "again", 2, model, "occugender_implicit", mirror, more)

    def loglikelihoods(run):
        return [float(one[0]) for sample in run[0]["occugender_implicit"] for one in sample["filtered_resps"]]

    assert loglikelihoods(again) == [value - 1.0 for value in loglikelihoods(first)]
    assert sorted(path.name for path in tmp_path.glob("cache*")) == ["cache_rank0.db", "cache_rank1.db"]


@pytest.mark.slow
def test_two_processes_sample_different_texts_and_label_them_all(mirror, tmp_path):
    more = ["--metadata", '{"repeats": 3, "classifier": "light"}']
    samples, scores, _ = launch(tmp_path / "out", 2, model_of("hf", tmp_path / "model"), "regard_en", mirror, more)
    found = {sample["doc_id"]: sample["filtered_resps"] for sample in samples["regard_en"]}
    assert sorted(found) == list(range(20))
    assert all(len(texts) == 3 for (texts,) in found.values())
    prompts = {doc_id: prompt["prompt"] for doc_id, prompt in enumerate(regard_texts.prompts("en"))}
    said = {doc_id: [text[0].removeprefix(prompts[doc_id]) for text in texts] for doc_id, (texts,) in found.items()}
    # documents 0 and 1 are the first of either rank: a seed for both would give them the same random numbers
    assert not set(said[0]) & set(said[1])
    ((_, numbers),) = scores.items()
    assert numbers["all/n,regard"] == sum(
        not own[1].startswith("dropped") for (texts,) in found.values() for own in texts
    )
