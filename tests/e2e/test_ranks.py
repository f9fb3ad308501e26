"""Several processes: the same scores as one, and no rank that waits for ever."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lm_eval.tasks import TaskManager

from lm_eval_bias.data import stereoset
from lm_eval_bias.paths import tasks_path
from lm_eval_bias.regard import texts as regard_texts
from tests import tiny


@pytest.mark.parametrize("world_size", [2, 3, 4, 8])
@pytest.mark.parametrize("more", [0, 1, None])  # the harness refuses ranks without any document
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
        assert own == {doc_id for doc_id, _ in task.doc_iterator(rank=rank, limit=limit, world_size=world_size)}
    assert all(kinds == per_rank[0] for kinds in per_rank)


@pytest.mark.parametrize("world_size", [2, 4, 8])
def test_ranks_get_as_much_of_both_tests(mirror, world_size):
    items = stereoset.spread([item for test in stereoset.TESTS for item in stereoset.read("en", test)])
    for rank in range(world_size):
        tests = [item["test"] for item in items[rank::world_size]]
        assert 0.45 < tests.count("inter") / len(tests) < 0.55


def launch(folder, processes, model, where, tasks, mirror, documents=21, more=()):
    out = folder / f"{model}{processes}"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "29533"]
    command = command if processes > 1 else [sys.executable]
    command += ["-m", "lm_eval_bias", "run", "--model", model, "--model_args", f"pretrained={where}", "--tasks", tasks]
    command += [
        "--limit",
        str(documents),
        *more,
        "--device",
        "cpu",
        "--batch_size",
        "8",
        "--output_path",
        str(out),
        "--log_samples",
    ]
    settings = {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "GLOO_SOCKET_IFNAME": "lo", "HF_HUB_OFFLINE": "1"}
    settings |= {"LM_EVAL_BIAS_DATA": str(mirror), "PYTHONPATH": str(Path(__file__).parents[2])}
    # no rank may wait for ever
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    found = {}
    for path in sorted(out.rglob("samples_*.jsonl")):
        task = path.name.rsplit("_", 1)[0]
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found[task] = {line["doc_id"]: line["filtered_resps"] for line in lines}
        assert len(found[task]) == len(lines) == documents
    results = json.loads(next(out.rglob("results_*.json")).read_text())["results"]
    return found, {task: {k: v for k, v in scores.items() if "," in k} for task, scores in results.items()}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["hf-packed", "hf-mlm"])
def test_two_processes_give_the_scores_of_one(model, mirror, tmp_path):
    where = (tiny.bert if model == "hf-mlm" else tiny.gpt2)(tmp_path / "model", positions=400)
    tasks = "stereoset_en,stereoset_de_inter"  # one rank with a kind less would hang the other
    one, two = (launch(tmp_path, n, model, where, tasks, mirror) for n in (1, 2))
    assert one[0].keys() == two[0].keys()
    for task, answers in one[0].items():
        for doc_id, own in answers.items():
            for a, b in zip(own, two[0][task][doc_id], strict=True):
                assert [float(x) for x in a] == pytest.approx([float(x) for x in b], rel=1e-4)
    for task, scores in one[1].items():
        for name, value in scores.items():
            other = two[1][task][name]
            assert other == value or (other != other and value != value), (task, name)  # noqa: PLR0124 (nan)


@pytest.mark.slow
def test_two_processes_sample_different_texts_and_label_them_all(mirror, tmp_path):
    where = tiny.gpt2(tmp_path / "model", positions=400)
    more = ["--metadata", '{"repeats": 3, "classifier": "light"}']
    answers, scores = launch(tmp_path, 2, "hf", where, "regard_en", mirror, documents=20, more=more)
    (found,) = answers.values()
    assert all(len(texts) == 3 for (texts,) in found.values())
    prompts = {doc_id: prompt["prompt"] for doc_id, prompt in enumerate(regard_texts.prompts("en"))}
    said = {doc_id: [text[0].removeprefix(prompts[doc_id]) for text in texts] for doc_id, (texts,) in found.items()}
    # documents 0 and 1 are the first of either rank: a seed for both would give them the same random numbers
    assert not set(said[0]) & set(said[1])
    ((_, numbers),) = scores.items()
    assert numbers["all/n,regard"] == sum(
        not own[1].startswith("dropped") for (texts,) in found.values() for own in texts
    )
