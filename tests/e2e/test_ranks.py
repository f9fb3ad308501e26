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

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.tasks.regard import classifier
from tests.support import tiny
from tests.support.run_scores import logs_of, results_of


def test_every_rank_has_every_kind_in_the_same_order_or_all_refuse(tiny_mirror):
    orders = []
    for rank in (0, 1):
        task = built("stereoset_en", rank, 2, None)
        kinds = [instance.request_type for instance in task.instances]
        orders.append(list(dict.fromkeys(kinds)))
        assert kinds == sorted(kinds, key=orders[0].index)
    assert orders[0] == orders[1]
    for limit, rank in ((1, 0), (3, 0), (3, 1)):
        with pytest.raises(BiasError, match="documents are too few for 2 processes"):
            built("stereoset_en", rank, 2, limit)


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
