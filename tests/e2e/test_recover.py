"""Runs that are killed and started again: the same numbers, nothing asked twice, no half-written file read."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.runs import run_discovery as runs
from tests.support import tiny
from tests.support.places import ROOT

BATCH = 2
TRACKER = "lm_eval.loggers.evaluation_tracker:EvaluationTracker"


class Forks:
    """The process that forks runs, see ``forked.py``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        labels = tiny.classification(
            folder / "hub", ["negative", "neutral", "positive"]
        )
        metadata = json.dumps({"repeats": 5, "classifier": f"hub:{labels}"})
        tasks, model = (
            "occugender_debias_implicit_none,regard_de",
            f"pretrained={tiny.llama(folder / 'model')}",
        )
        self.arguments = [
            "run",
            "--tasks",
            tasks,
            "--limit",
            "4",
            "--log_samples",
            "--model",
            "hf",
            "--device",
            "cpu",
        ]
        self.arguments += [
            "--model_args",
            model,
            "--batch_size",
            str(BATCH),
            "--gen_kwargs",
            "max_gen_toks=8",
        ]
        self.arguments += ["--metadata", metadata]
        command = [sys.executable, "-m", "tests.support.forked"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, **pipes
        )
        assert self.process.stdout.readline() == "ready\n"

    def run(self, where: Path, at=None):
        """Whether a run with what is kept in a folder was killed at the n-th call of a function."""
        where.mkdir(exist_ok=True)
        arguments = [
            *self.arguments,
            "--use_cache",
            str(where / "cache"),
            "--output_path",
            str(where / "out"),
        ]
        self.process.stdin.write(
            json.dumps({"arguments": arguments, "log": str(where / "log"), "at": at})
            + "\n"
        )
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        assert status in (0, -9), (where / "log.out").read_text()[-3000:]
        return status == -9

    def asked(self, where: Path) -> Counter:
        return Counter((where / "log").read_text().split("\n")) - Counter([""])


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    started = Forks(tmp_path_factory.mktemp("forks"))
    yield started
    started.process.stdin.close()
    started.process.wait(timeout=60)


# the calls by which a run is written, in the order in which they come, and which of each
SAVING = [
    (f"{TRACKER}.save_results_aggregated", [1]),
    ("pathlib:Path.write_text", [1]),
    (f"{TRACKER}.save_results_samples", [2]),
    ("lm_eval.loggers.evaluation_tracker:sanitize_list", [11]),
    ("lm_eval_bias.evaluation.steps:_is_whole", [3]),
    ("lm_eval_bias.evaluation.steps:_put", [1, 2, 3]),
    ("shutil:rmtree", [1]),
]
PUT = "lm_eval_bias.evaluation.steps:_put"  # once for each file, the results last


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name, numbers in SAVING for number in numbers],
)
def test_killed_at_each_write(name, number, forks):
    """Nothing of a killed run is taken for a finished one."""
    where = forks.folder / "saving"  # one cache for all: the model is asked once
    out = where / "out"
    assert forks.run(where, (name, number))
    results = list(out.glob("*/results_*.json"))
    assert len(results) == (
        name == "shutil:rmtree"
    )  # when all has its name, the run is finished
    logs = list(out.glob("*/samples_*.jsonl"))
    assert len(logs) == (2 if results else number - 1 if name == PUT else 0)
    if not results and out.is_dir():
        with pytest.raises(
            BiasError, match="the run is unfinished" if logs else "holds no run"
        ):
            runs.read([str(out)])
    asked = forks.asked(where)
    assert not forks.run(where)
    assert forks.asked(where) == asked  # all was answered before
    found, problems = runs.read([str(out)])
    assert len(found) == len(results) + 1
    assert len(problems) == (0 if results else len(logs))
    shutil.rmtree(out)
