"""Runs that are killed and started again: the same numbers, nothing asked twice, no half-written file read."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.runs import run_discovery as runs
from tests.support import tiny
from tests.support.run_scores import numbers, same

BATCH = 2
LOST = 3  # batches that a kill may cost: the one in work, and what was on its way to the disk
HF = "lm_eval.models.huggingface:HFLM"
TRACKER = "lm_eval.loggers.evaluation_tracker:EvaluationTracker"


class Forks:
    """The process that forks runs, see ``forked.py``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        metadata = {
            "repeats": 5,
            "classifier": f"hub:{tiny.classification(folder / 'hub', ['negative', 'neutral', 'positive'])}",
        }
        self.arguments = [
            "run",
            "--tasks",
            "occugender_debias_implicit_none,regard_de",
            "--limit",
            "4",
            "--log_samples",
        ]
        self.arguments += ["--model", "hf", "--model_args", f"pretrained={tiny.llama(folder / 'model')}"]
        self.arguments += ["--device", "cpu", "--batch_size", str(BATCH), "--gen_kwargs", "max_gen_toks=8"]
        self.arguments += ["--metadata", json.dumps(metadata)]
        script = Path(__file__).with_name("forked.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "ready\n"

    def run(self, where: Path, **moment):
        where.mkdir(exist_ok=True)
        arguments = [*self.arguments, "--use_cache", str(where / "cache"), "--output_path", str(where / "out")]
        order = {"arguments": arguments, "log": str(where / "log"), **moment}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["status"] in (0, -9), (where / "log.out").read_text()[-3000:]
        return answer

    def asked(self, where: Path) -> Counter:
        return Counter((where / "log").read_text().split("\n")) - Counter([""])


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    started = Forks(tmp_path_factory.mktemp("forks"))
    yield started
    started.process.stdin.close()
    started.process.wait(timeout=60)


def finished(where: Path):
    """Scores and samples of the last finished run of a folder; a kill after the last file leaves a run before it."""
    paths = sorted((where / "out").glob("*/results_*.json"))
    results = [json.loads(path.read_text()) for path in paths]
    date = paths[-1].stem.removeprefix("results_")
    samples = {}
    for name in results[-1]["configs"]:
        text = paths[-1].with_name(f"samples_{name}_{date}.jsonl").read_text()
        samples[name] = [json.loads(line) for line in text.splitlines()]
    found, problems = runs.read([str(where / "out")])
    assert len(found) == len(paths) <= 2
    assert all("the run is unfinished" in str(problem) for problem in problems)
    return numbers(results[-1]), samples


def assert_same(one, other):
    for task, scores in one[0].items():
        assert scores.keys() == other[0][task].keys()
        for name, value in scores.items():
            assert same(value, other[0][task][name], 1e-6), (task, name)
    # what is sampled is the same to the letter, and so are its labels
    assert [s["resps"] for s in one[1]["regard_de"]] == [s["resps"] for s in other[1]["regard_de"]]
    assert [s["filtered_resps"] for s in one[1]["regard_de"]] == [s["filtered_resps"] for s in other[1]["regard_de"]]


# the calls by which a run is written, in the order in which they come, and which of each
SAVING = [
    ("tempfile:mkdtemp", [1]),
    (f"{TRACKER}.save_results_aggregated", [1]),
    ("pathlib:Path.write_text", [1]),
    (f"{TRACKER}.save_results_samples", [1, 2]),
    ("lm_eval.loggers.evaluation_tracker:sanitize_list", [2, 11]),
    ("lm_eval_bias.evaluation.evaluate:_is_whole", [1, 3]),
    ("os:replace", [1, 2, 3]),
    ("shutil:rmtree", [1]),
]
SAVED_BEFORE = ("os:replace", "lm_eval_bias.evaluation.evaluate:_is_whole")  # once for each file, the results last


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), [(name, number) for name, numbers in SAVING for number in numbers])
def test_killed_at_each_write(name, number, forks):
    """Nothing of a killed run is taken for a finished one."""
    where = forks.folder / "saving"  # one cache for all: the model is asked once
    out = where / "out"
    assert forks.run(where, at=(name, number))["status"] == -9
    results = list(out.glob("*/results_*.json"))
    assert len(results) == (name == "shutil:rmtree")  # when all has its name, the run is finished
    logs = list(out.glob("*/samples_*.jsonl"))
    assert len(logs) == (2 if results else number - 1 if name in SAVED_BEFORE else 0)
    if not results and out.is_dir():
        with pytest.raises(BiasError, match="the run is unfinished" if logs else "holds no run"):
            runs.read([str(out)])
    asked = forks.asked(where)
    assert forks.run(where)["status"] == 0
    assert forks.asked(where) == asked  # all was answered before
    found, problems = runs.read([str(out)])
    assert len(found) == len(results) + 1
    assert len(problems) == (0 if results else len(logs))
    shutil.rmtree(out)


def chains():
    """Twelve moments at which a function is called, in three runs that are killed again and again."""
    draw = random.Random(20261122)
    writing = [("os:replace", 1), (f"{TRACKER}.save_results_samples", 2), ("os:replace", 3)]
    for last in writing:
        yield [
            (f"{HF}.tok_encode", draw.randint(1, 12)),
            (f"{HF}._model_call", draw.randint(2, 5)),
            (f"{HF}._model_generate", draw.randint(2, 6)),
            last,
        ]


@pytest.mark.slow
def test_killed_at_random_moments(forks, tmp_path):
    whole = forks.run(tmp_path / "whole")
    assert whole["status"] == 0
    expected, asked = finished(tmp_path / "whole"), forks.asked(tmp_path / "whole")
    assert asked["_model_generate"] == 20
    assert max(count for row, count in asked.items() if row != "_model_generate") == 1
    took = min(whole["took"], forks.run(tmp_path / "whole2")["took"])
    assert finished(tmp_path / "whole2")[1] == expected[1]
    draw = random.Random(20261122)
    moments = [[{"after": (i + draw.random()) / 10 * took}] for i in range(8)]
    moments += [[{"at": at} for at in chain] for chain in chains()]
    killed = 0
    for number, chain in enumerate(moments):
        where = tmp_path / str(number)
        kills = sum(forks.run(where, **moment)["status"] == -9 for moment in chain)
        while not kills:  # this time it was done before
            where, chain = where.with_name(f"{where.name}-earlier"), [{"after": 0.7 * chain[0]["after"]}]
            kills = sum(forks.run(where, **moment)["status"] == -9 for moment in chain)
        killed += kills
        assert forks.run(where)["status"] == 0
        assert_same(finished(where), expected)
        repeated = sum((forks.asked(where) - asked).values())
        assert repeated <= kills * LOST * BATCH, (number, chain)
    assert killed == 20
    before = forks.asked(where)
    (where / "out").rename(where / "first")
    assert forks.run(where)["status"] == 0  # all is known: the model is asked nothing
    assert forks.asked(where) == before
    assert_same(finished(where), expected)


def test_two_runs_are_the_same_but_for_dates(tmp_path, tiny_mirror):
    files = []
    for name in ("a", "b"):
        out = tmp_path / name
        arguments = ["run", "--model", "bias-chance", "--tasks", "stereoset_en_intra,regard_de,gg_bbq_group_terms_gen"]
        arguments += ["--metadata", '{"repeats": 3, "classifier": "light"}', "--output_path", str(out), "--log_samples"]
        assert main(arguments) == 0
        (path,) = out.rglob("results_*.json")
        results = json.loads(path.read_text())
        assert results.pop("date")
        assert results.pop("total_evaluation_time_seconds")
        date = path.stem.removeprefix("results_")
        logs = {p.name.replace(date, ""): p.read_bytes() for p in path.parent.glob("samples_*")}
        assert len(logs) == 3
        files.append((json.dumps(results), logs))
    assert files[0] == files[1]
    assert " at 0x" not in files[0][0]
    assert not [name for name in os.listdir(tmp_path / "a") if name.startswith(".")]
