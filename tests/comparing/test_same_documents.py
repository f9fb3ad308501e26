"""Runs are paired by what they were asked and scored by, not by what it is called or where it lay."""

from __future__ import annotations

import json

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.files import tasks_path

TASK = "occugender_debias_implicit_none"
DATA = tasks_path() / "occugender" / "data"
WORDS = "male: [wug]\nfemale: [blick]\ndiverse: [dax]\n"


def made(folder, seed=1, **metadata):
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
    return folder


def as_in_older_versions(folder):
    return edited(folder, lambda metadata: metadata.pop("inputs"))


def changed_templates(text):
    return text.replace("[JOB]", "good [JOB]")


def changed_shares(text):
    lines = text.splitlines()
    return "\n".join([lines[0], *(line.replace("9", "8") for line in lines[1:])])


@pytest.mark.parametrize("older", [False, True], ids=["hashed", "older"])
@pytest.mark.parametrize(
    ("option", "content", "change"),
    [
        ("words", WORDS, lambda text: text.replace("wug", "gostak")),
        ("templates", (DATA / "templates.yaml").read_text("utf-8"), changed_templates),
        ("items", (DATA / "occupations.csv").read_text("utf-8"), changed_shares),
    ],
)
def test_the_same_path_with_other_contents(option, content, change, older, tmp_path, capsys):
    path = tmp_path / f"own{'.csv' if option == 'items' else '.yaml'}"
    path.write_text(content, encoding="utf-8")
    first = made(tmp_path / "first", 1, **{option: path})
    path.write_text(change(content), encoding="utf-8")
    second = made(tmp_path / "second", 2, **{option: path})
    if older:
        first, second = as_in_older_versions(first), as_in_older_versions(second)
    refusal = compared(capsys, first, second)
    assert "can't be compared item by item" in refusal
    # older files don't say what lay at the path, but their logs hold the documents
    assert ("other contents of " if older else f"{option} '{path.name} (") in refusal
    unpaired = compared(capsys, first, second, "--unpaired")
    assert not any(row["paired"] for row in unpaired)
    assert all(row["note"].startswith("unpaired: ") for row in unpaired)


def test_older_files_with_the_same_documents_are_paired_and_that_is_said(tmp_path, capsys):
    runs = [made(tmp_path / "a", 1), as_in_older_versions(made(tmp_path / "b", 2))]
    rows = compared(capsys, *runs)
    assert all(row["paired"] for row in rows)
    assert {row["note"].partition("; chance level: ")[0] for row in rows} == {
        "the files don't record whether the prompts are the same: they come from an older version"
    }


def test_other_prompts_of_the_same_documents(tmp_path, capsys):
    runs = [made(tmp_path / "a", 1), made(tmp_path / "b", 2)]
    edited(runs[1], lambda metadata: metadata["inputs"].update(documents="1" * 64, chat_template=True))
    assert "other prompts for the same documents" in compared(capsys, *runs)
    edited(runs[1], lambda metadata: metadata["inputs"].update(num_fewshot=3))
    assert "different numbers of examples" in compared(capsys, *runs)


def test_without_logs_the_hashes_tell_what_an_unpaired_comparison_compares(tmp_path, capsys):
    path = tmp_path / "own.yaml"
    path.write_text(WORDS)
    runs = [made(tmp_path / "a", 1), made(tmp_path / "b", 2, words=path)]
    for log in runs[1].rglob("samples_*"):
        log.unlink()
    rows = compared(capsys, *runs, "--unpaired")
    notes = {row["note"].partition("; chance level: ")[0] for row in rows}
    assert notes == {"unpaired: no sample logs; the runs have different items, documents or prompts"}
