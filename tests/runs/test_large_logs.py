"""Long sample logs: read line by line, kept as records, one run after another."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import pytest

from lm_eval_bias.comparing import pairing
from lm_eval_bias.comparing.findings import Choice, find
from lm_eval_bias.core import catalog
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.runs import rescoring, sample_logs
from lm_eval_bias.tasks.occugender import hooks, inputs

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


def test_a_file_is_read_once_and_forgotten_after_its_comparison(tmp_path, monkeypatch):
    runs = [side(name, log(tmp_path / name, 40, shift)).run for shift, name in enumerate("abcd")]
    pairs = pairing.pairs(runs)
    read, held = [], []
    plain = sample_logs._samples

    def watched(path):
        read.append(path.parent.name)
        held.append(sum("records" in vars(own) for pair in pairs for own in (pair, pair.other)))
        return plain(path)

    monkeypatch.setattr(sample_logs, "_samples", watched)
    found, _ = find(pairs, Choice())
    assert len(found) == 3 * 4
    assert sorted(read) == list("abcd")
    assert held == [0] * 4


def test_the_documents_of_two_filters_are_parts_of_their_own_in_any_order(tmp_path, monkeypatch):
    entry = catalog.entries()["gg_bbq_group_terms"]
    of_the_harness = {"gg_bbq_group_terms": replace(entry, path=None)}
    monkeypatch.setattr(catalog, "entries", lambda: {**catalog.packaged(), **of_the_harness})
    path = tmp_path / f"samples_gg_bbq_group_terms_{DATE}.jsonl"
    path.write_text("\n".join(line(n, name=name) for n, name in ((0, "x"), (0, "y"), (1, "y"), (1, "x"))))
    parts = list(sample_logs.collect(sample_logs.samples(path)).values())
    assert [(part.filter, [doc["item"] for doc in part.docs]) for part in parts] == [("x", [0, 1]), ("y", [0, 1])]
    assert [(one.part.filter, one.documents) for one in rescoring.rescore([str(path)])] == [("x", 2), ("y", 2)]


def test_a_damaged_byte_is_named_by_its_place_in_the_file(tmp_path):
    path = log(tmp_path, 3)
    raw = path.read_bytes()
    at = raw.rindex("ä".encode())
    path.write_bytes(raw[:at] + b"\xff" + raw[at + 1 :])
    with pytest.raises(BiasError, match="not UTF-8 after line"):
        rescoring.rescore([str(path)])


def test_a_word_set_is_read_once_for_all_documents(monkeypatch):
    read = []
    plain = inputs.words
    monkeypatch.setattr(inputs, "words", lambda *which: (read.append(which), plain(*which))[1])
    hooks.genders_of_set.cache_clear()
    docs = hooks.documents("explicit")[:3]
    read.clear()
    for doc in docs:
        changed, answers = hooks.rewrite(doc, [(-1.0, False)] * len(doc["words"]), "authors_code")
        assert len(changed["words"]) == len(answers) < len(doc["words"])
    assert read == [("authors_code", "explicit")]
