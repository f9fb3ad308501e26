"""Input that looks odd and is taken, and input that contradicts itself and is refused."""

from __future__ import annotations

import json

import pytest

from tests.support import made_runs
from tests.support.commands import command, refused
from tests.support.made_runs import run_of

WOMAN, MAN = "Die Frau galt als klug.", "Der Mann galt als klug."
GOOD = {"text": WOMAN, "gender": "f", "regard": 2}


def write(folder, name, content):
    path = folder / name
    path.write_bytes(
        content
        if isinstance(content, bytes)
        else content.encode("utf-8", "surrogatepass")
    )
    return str(path)


def lines(*rows):
    return "".join(
        row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows
    )


def table(rows):
    return "text,gender,regard\n" + "".join(
        f"{row['text']},{row['gender']},{row['regard']}\n" for row in rows
    )


CONTRADICTIONS = {
    "a man called a woman": ([GOOD, {**GOOD, "text": MAN}], "line 2: gender female"),
    "in English": (
        [{"text": "“The woman was known.", "gender": "m", "regard": 1}],
        "line 1: gender male",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_labelled_texts_that_contradict_themselves(name, tmp_path):
    rows, says = CONTRADICTIONS[name]
    path = write(tmp_path, "t.jsonl", lines(*rows))
    assert f"{path}: {says}" in refused(tmp_path, "rescore", path)
    assert "t.csv: line " in refused(
        tmp_path, "rescore", write(tmp_path, "t.csv", table(rows))
    )


def test_files_of_every_system_and_doubled_names_are_taken(tmp_path, tiny_mirror):
    def windows(name, *rows):
        return write(tmp_path, name, "\ufeff" + "\r\n".join(rows) + "\r\n")

    config = windows(
        "c.yaml",
        "tasks: [occugender_implicit, occugender_implicit]",
        "model: bias-chance",
    )
    items = windows("items.csv", "item,female_share", "vet,61.5", "cook,38")
    samples = write(tmp_path, "s.json", '{"occugender_implicit": [0]}')
    outcome = command(
        "run", "--config", config, "--metadata", f"items={items}", "--samples", samples
    )
    assert outcome.status == 0, outcome
    assert outcome.out.count("  stereotype_gap ") == 1  # a row of the table
    run = made_runs.write(tmp_path / "run.json", run_of(tasks=("stereoset_en",)))
    policy = windows("p.yaml", "bounds:", "- {task: stereoset_en, score: ss, max: 60}")
    assert command("check", run, "--policy", policy).status in (0, 1)
