"""Long sample logs: read line by line, kept as records, one run after another."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from lm_eval_bias.comparing import pairing
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.runs import rescoring, sample_logs

DATE = "2026-01-01T00-00-00.000000"
LONG = "ä" * 10_000


def line(number: int, shift: int = 0, name: str = "none") -> str:
    """A logged item of GG-BBQ with a text that is far longer than its record."""
    item, label = number + shift, 2 if number % 2 else number % 3 % 2
    doc = {"benchmark": "gg_bbq", "item": number, "context_type": ("disambiguated", "ambiguous")[number % 2],
           "context": LONG, "choices": ["a", "b", "c"], "groups": ["M", "F", "unknown"], "label": label,
           "biased_choice": 0, "value": "v", "template": f"t{number % 7}", "subset": "s", "wording": 2,
           "letters": []}  # fmt: skip
    answers = [[str(-1.0 - (item * k) % 5), "False"] for k in (1, 2, 3)]
    return json.dumps({"doc_id": number, "doc": doc, "filtered_resps": answers, "filter": name}, ensure_ascii=False)


def log(folder, count, shift=0):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_gg_bbq_group_terms_{DATE}.jsonl"
    path.write_text("".join(f"{line(n, shift)}\n" for n in range(count)), encoding="utf-8")
    return path


def peak(work) -> int:
    """Most bytes held at once by what a function allocates."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_reading_takes_no_more_memory_for_more_items(tmp_path):
    logs = [log(tmp_path / str(count), count) for count in (50, 500)]
    # once through for what is imported on the way
    few, many = [[peak(lambda own=own: [None for _ in sample_logs.samples(own)]) for own in logs] for _ in "ab"][1]
    per_item = (many - few) / 450
    assert per_item < 300  # an item's number and hash; the line itself has 20,000 bytes


@pytest.mark.parametrize("kept", ["rescore", "compare"])
def test_of_an_item_only_its_record_is_kept(tmp_path, kept):
    def work(path):
        if kept == "rescore":
            rescoring.rescore([str(path)])
        else:
            _ = side("a", path).records

    logs = [log(tmp_path / str(count), count) for count in (50, 500)]
    few, many = [[peak(lambda own=own: work(own)) for own in logs] for _ in "ab"][1]
    assert (many - few) / 450 < 3_000


def side(name, path):
    task = TaskRun("gg_bbq_group_terms", "gg_bbq", "de", "1", 0, 0, {}, {}, path)
    return pairing.Side(name, Run(name, path, {}, "", {task.task: task}), task)


def test_the_documents_of_two_filters_are_parts_of_their_own_in_any_order(tmp_path):
    path = tmp_path / f"samples_gg_bbq_group_terms_{DATE}.jsonl"
    path.write_text("\n".join(line(n, name=name) for n, name in ((0, "x"), (0, "y"), (1, "y"), (1, "x"))))
    parts = list(sample_logs.collect(sample_logs.samples(path)).values())
    assert [(part.filter, [doc["item"] for doc in part.docs]) for part in parts] == [("x", [0, 1]), ("y", [0, 1])]
    assert [(one.part.filter, one.documents) for one in rescoring.rescore([str(path)])] == [("x", 2), ("y", 2)]
