"""Several processes: the same scores as one, and no rank that waits for ever."""

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed
from lm_eval.tasks import TaskManager
from sqlitedict import SqliteDict

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.tasks.regard import classifier, regard_texts
from tests.support import tiny
from tests.support.run_scores import logs_of, results_of


@pytest.mark.parametrize(
    ("world_size", "limit"), [(2, None), (2, 1), (2, 3), (5, None)]
)
def test_every_rank_has_every_kind_in_the_same_order_or_all_refuse(
    tiny_mirror, world_size, limit
):
    per_rank = []
    for rank in range(world_size):
        if (world_size, limit) != (2, None):
            with pytest.raises(
                BiasError, match=f"documents are too few for {world_size} processes"
            ):
                built("stereoset_en", rank, world_size, limit)
            continue
        task = built("stereoset_en", rank, world_size, limit)
        kinds = [instance.request_type for instance in task.instances]
        per_rank.append(list(dict.fromkeys(kinds)))
        assert kinds == sorted(kinds, key=per_rank[0].index)
    assert all(kinds == per_rank[0] for kinds in per_rank)


def built(name, rank=0, world_size=1, limit=3, **metadata):
    manager = TaskManager(
        include_path=str(tasks_path()), include_defaults=False, metadata=metadata
    )
    task = manager.load([name])["tasks"][name]
    task.build_all_requests(limit=limit, rank=rank, world_size=world_size)
    return task


@pytest.fixture
def on_both(tmp_path, monkeypatch):
    """Calls a function of the rank in two processes that know each other, and gives what it says in each."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    fork, where = multiprocessing.get_context("fork"), f"file://{tmp_path}/group"

    def on_rank(rank, function):
        torch.distributed.init_process_group(
            "gloo", init_method=where, rank=rank, world_size=2
        )
        try:
            return function(rank)
        except BiasError as error:
            return str(error)
        finally:
            torch.distributed.destroy_process_group()

    def call(function):
        answers = fork.SimpleQueue()
        other = fork.Process(
            target=lambda: answers.put(on_rank(1, function)), daemon=True
        )
        other.start()
        both = [on_rank(0, function), answers.get()]
        other.join(60)
        return both

    return call


def answered(task):
    """A task whose requests have answers."""
    for instance in task.instances:
        instance.resps = [
            f" was {instance.args[0]} {n}. And" for n in range(instance.repeats)
        ]
    task.apply_filters()
    return {
        instance.doc_id: (instance.resps, instance.filtered_resps)
        for instance in task.instances
    }


LABELLED = {"repeats": 2, "classifier": "light"}


def test_what_goes_wrong_on_the_first_rank_stops_all(tiny_mirror, on_both, monkeypatch):
    tasks = [built("regard_en", rank, 2, **LABELLED) for rank in (0, 1)]

    def broken(name, language, texts):
        raise BiasError("no probabilities")

    monkeypatch.setattr(classifier, "label_kept", broken)
    assert on_both(lambda rank: answered(tasks[rank])) == ["no probabilities"] * 2


def launch(out, processes, model, tasks, mirror, more=()):
    """Run in so many processes; samples by task, scores by task, and what was printed."""
    own = [
        "run",
        "--tasks",
        tasks,
        *model,
        *more,
        "--device",
        "cpu",
        "--batch_size",
        "8",
        "--log_samples",
    ]
    own += ["--output_path", str(out)]
    printed = ""
    if processes > 1:
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc_per_node",
            str(processes),
            "--standalone",
        ]
        settings = {
            "OMP_NUM_THREADS": "1",
            "ACCELERATE_USE_CPU": "true",
            "GLOO_SOCKET_IFNAME": "lo",
        }
        settings |= {
            "LM_EVAL_BIAS_DATA": str(mirror),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        command += ["-m", "lm_eval_bias", *own]
        # no rank may wait for ever
        done = subprocess.run(
            command,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        printed = done.stdout
    else:
        assert main(own) == 0
    scores = results_of(out)["results"]
    return (
        logs_of(out),
        {
            task: {k: v for k, v in own.items() if "," in k}
            for task, own in scores.items()
        },
        printed,
    )


def close(one, two):
    """Whether logs or scores are the same but for the last digits of numbers, which may stand there as text."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(
            close(one[key], two[key]) for key in one
        )
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(close, one, two))
    try:
        return float(one) == pytest.approx(float(two), rel=1e-4, abs=1e-6, nan_ok=True)
    except (TypeError, ValueError):
        return one == two


def model_of(kind, folder):
    made = tiny.gpt2(folder, positions=400)
    return ["--model", kind, "--model_args", f"pretrained={made}"]


# texts that are drawn without chance; three items are two for one rank and one for the other
DRAWN = [
    "--metadata",
    '{"repeats": 3, "classifier": "light"}',
    "--gen_kwargs",
    "top_k=1,max_gen_toks=8",
]
ALL = "occugender_implicit,gg_bbq_group_terms,gg_bbq_group_terms_gen,stereoset_en,regard_en"
CHOSEN = {
    "occugender_implicit": [3, 500, 7],
    "stereoset_de": [9, 8, 2, 2100, 3000],
    "gg_bbq_group_terms": [4, 9],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "processes", "tasks", "more"),
    [
        ("hf", 2, ALL, ["--limit", "4", *DRAWN]),
        ("hf-packed", 2, ",".join(CHOSEN), ["--samples", json.dumps(CHOSEN)]),
    ],
)
def test_several_processes_give_the_scores_and_the_log_of_one(
    kind, processes, tasks, more, mirror, tmp_path
):
    model = model_of(kind, tmp_path / "model")
    one = launch(tmp_path / "one", 1, model, tasks, mirror, more)
    several = launch(tmp_path / "several", processes, model, tasks, mirror, more)
    assert one[0].keys() == set(tasks.split(","))
    for task, samples in one[0].items():
        assert close(samples, several[0][task]), task
    assert close(one[1], several[1])
    assert several[2].count("In words") == 1


@pytest.mark.slow
def test_two_processes_sample_different_texts_and_label_them_all(mirror, tmp_path):
    more = ["--metadata", '{"repeats": 3, "classifier": "light"}']
    samples, _, _ = launch(
        tmp_path / "out",
        2,
        model_of("hf", tmp_path / "model"),
        "regard_en",
        mirror,
        more,
    )
    found = {
        sample["doc_id"]: sample["filtered_resps"][0] for sample in samples["regard_en"]
    }
    assert sorted(found) == list(range(20))
    assert all(len(texts) == 3 for texts in found.values())
    # documents 0 and 1 are the first of either rank: a seed for both would give them the same random numbers
    first, second = (
        {
            text.removeprefix(regard_texts.prompts("en")[doc_id]["prompt"])
            for text, *_ in found[doc_id]
        }
        for doc_id in (0, 1)
    )
    assert not first & second
    kept = sum(
        not label.startswith("dropped")
        for texts in found.values()
        for _, label, *_ in texts
    )
    configs = results_of(tmp_path / "out")["configs"]["regard_en"]["metric_list"]
    (counted,) = (entry for entry in configs if entry["metric"] == "all/n")
    assert counted["value"] == kept


@pytest.mark.slow
def test_each_request_is_answered_by_one_process(mirror, tmp_path):
    """Counted in the files of answers: the scores would be the same if each process answered all requests."""
    model = model_of("hf-packed", tmp_path / "model")
    more = ["--limit", "6", "--use_cache", str(tmp_path / "answers")]
    launch(tmp_path / "out", 2, model, "gg_bbq_group_terms", mirror, more)
    asked = []
    for rank in (0, 1):
        with SqliteDict(str(tmp_path / f"answers_rank{rank}.db")) as cache:
            asked.append({key for key in cache if len(key) == 64})
    assert len(asked[0]) == len(asked[1]) > 0
    assert not asked[0] & asked[1]
