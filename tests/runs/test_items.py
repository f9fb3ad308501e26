"""Items: what was asked, as it was sent, and answered, on a terminal, as a table, as a page and in Python."""

import csv
import io
import json

import pytest

import lm_eval_bias as leb
from lm_eval_bias.cli.main import main

TASKS = "occugender_explicit,occugender_explicit_gen"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with a log of likelihoods and one of texts."""
    out = tmp_path_factory.mktemp("items") / "out"
    arguments = ["--tasks", TASKS, "--model", "bias-chance", "--limit", "80"]
    saved = ["--output_path", str(out), "--log_samples", "--table", "none"]
    assert main(["run", *arguments, *saved]) == 0
    return out


def test_table_data_and_python_say_the_same(run, said):
    task = "occugender_explicit_gen"
    rows = list(csv.DictReader(io.StringIO(said("items", run, task))))
    data = json.loads(said("items", run, task, "--format", "json"))
    frame = leb.items(leb.load(run)[0], task)
    assert len(rows) == len(data) == len(frame) == 80
    for row, one, (_, of_frame) in zip(rows, data, frame.iterrows(), strict=True):
        assert row["key"] == one["key"] == of_frame["key"]
        assert row["prompt"] == one["prompt"] == of_frame["prompt"]
        assert one["extracted"] == of_frame["extracted"]
        assert one["prompt"].startswith("Q: ")
