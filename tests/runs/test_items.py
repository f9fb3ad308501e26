"""Items: what was asked, as it was sent, and answered, on a terminal, as a table, as a page and in Python."""

import csv
import io
import json

import lm_eval_bias as leb
from tests.support import run_scores


def test_table_data_and_python_say_the_same(tmp_path, said):
    task, run = "occugender_explicit_gen", tmp_path
    run_scores.run(run, task, "--limit", 80)
    rows = list(csv.DictReader(io.StringIO(said("items", run, task))))
    data = json.loads(said("items", run, task, "--format", "json"))
    frame = leb.items(leb.load(run)[0], task)
    assert len(rows) == len(data) == len(frame) == 80
    for row, one, (_, of_frame) in zip(rows, data, frame.iterrows(), strict=True):
        assert row["key"] == one["key"] == of_frame["key"]
        assert row["prompt"] == one["prompt"] == of_frame["prompt"]
        assert one["extracted"] == of_frame["extracted"]
        assert one["prompt"].startswith("Q: ")
