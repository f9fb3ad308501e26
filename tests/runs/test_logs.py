"""Sample logs: read line by line, kept as records; what each item adds to a score."""

from __future__ import annotations

import json

from lm_eval_bias.runs import rescoring, sample_logs
from tests.support.commands import command

TASK = "gg_bbq_group_terms"
NAME = f"samples_{TASK}_2026-01-01T00-00-00.000000.jsonl"
LONG = "ä" * 10_000


def line(number, name="none"):
    """A logged item of GG-BBQ with a text that is far longer than its record."""
    doc = {"benchmark": "gg_bbq", "item": number, "context_type": "disambiguated",
           "context": LONG, "choices": ["a", "b", "c"], "groups": ["M", "F", "unknown"], "label": number % 3,
           "biased_choice": 0, "value": "v", "template": f"t{number % 7}", "subset": "s", "wording": 2,
           "letters": []}  # fmt: skip
    answers = [[str(-1.0 - (number * k) % 5), "False"] for k in (1, 2, 3)]
    return json.dumps(
        {"doc_id": number, "doc": doc, "filtered_resps": answers, "filter": name},
        ensure_ascii=False,
    )


def test_the_documents_of_two_filters_are_parts_of_their_own_in_any_order(tmp_path):
    path = tmp_path / NAME
    path.write_text(
        "\n".join(
            line(n, name=name) for n, name in ((0, "x"), (0, "y"), (1, "y"), (1, "x"))
        )
    )
    parts = sample_logs.collect(sample_logs.samples(path))
    assert [
        (part.filter, [one.doc["item"] for one in saved])
        for part, saved in parts.items()
    ] == [
        ("x", [0, 1]),
        ("y", [0, 1]),
    ]
    assert [
        (one.saved_task.filter, one.documents)
        for one in rescoring.rescore([str(path)], None, rescoring.AnswerReading())
    ] == [("x", 2), ("y", 2)]


def test_a_log_of_another_version_is_named_and_the_rest_is_computed(tmp_path):
    (tmp_path / NAME).write_text(line(0))
    doc = json.loads(line(1))
    del doc["doc"]["label"]
    other = tmp_path / NAME.replace("group_terms", "names")
    other.write_text(json.dumps(doc))
    done = command("rescore", str(tmp_path), "--json")
    assert done.status == 2
    assert [one["task"] for one in json.loads(done.out)] == [TASK]
    assert f"not computed: {other}: document 1: no field 'label'" in done.err
    assert command("rescore", str(tmp_path), "--by", "value").status == 2
    alone = command("rescore", str(other))
    assert (alone.status, alone.out) == (2, "")
