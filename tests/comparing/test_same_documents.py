"""Runs are paired by what they were asked and scored by, not by what it is called or where it lay."""

from __future__ import annotations

import json

import pytest

from lm_eval_bias.cli.main import main

TASK = "occugender_debias_implicit_none"
WORDS = "male: [wug]\nfemale: [blick]\ndiverse: [dax]\n"


def made(folder, seed, **metadata):
    run = ["run", "--tasks", TASK, "--model", "bias-chance", "--model_args", f"seed={seed}", "--log_samples"]
    options = ["--metadata", json.dumps({key: str(value) for key, value in metadata.items()})] if metadata else []
    assert main([*run, *options, "--output_path", str(folder)]) == 0
    return folder


def compared(capsys, *arguments):
    capsys.readouterr()
    status = main(["compare", *map(str, arguments), "--format", "json"])
    out, err = capsys.readouterr()
    return json.loads(out) if status == 0 else err


def edited(folder, change):
    (path,) = folder.rglob("results_*.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content["configs"][TASK]["metadata"])
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def runs(tmp_path):
    """Two runs whose words came from one path with different contents."""
    path = tmp_path / "own.yaml"
    found = []
    for seed, text in enumerate((WORDS, WORDS.replace("wug", "gostak"))):
        path.write_text(text, encoding="utf-8")
        found.append(made(tmp_path / str(seed), seed, words=path))
    return found


def test_the_same_path_with_other_contents(runs, capsys):
    refusal = compared(capsys, *runs)
    assert "words 'own.yaml (" in refusal
    assert "--unpaired" in refusal
    unpaired = compared(capsys, *runs, "--unpaired")
    assert not any(row["paired"] for row in unpaired)
    assert all(row["note"].startswith("unpaired: ") for row in unpaired)
    # older files don't say what lay at the path, but their logs hold the documents
    for folder in runs:
        edited(folder, lambda metadata: metadata.pop("inputs"))
    assert "other contents of " in compared(capsys, *runs)


def test_prompts_and_documents_are_known_by_their_hashes(tmp_path, capsys):
    runs = [made(tmp_path / "a", 1), made(tmp_path / "b", 2)]
    edited(runs[1], lambda metadata: metadata["inputs"].update(documents="1" * 64, chat_template=True))
    assert "other prompts for the same documents" in compared(capsys, *runs)
    edited(runs[1], lambda metadata: metadata["inputs"].update(num_fewshot=3))
    assert "different numbers of examples" in compared(capsys, *runs)
    # files of older versions are paired, and that is said
    edited(runs[1], lambda metadata: metadata.pop("inputs"))
    rows = compared(capsys, *runs)
    assert all(row["paired"] and "older version" in row["note"] for row in rows)
