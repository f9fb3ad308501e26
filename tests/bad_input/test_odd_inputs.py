"""Input that looks odd and is taken, and input that contradicts itself and is refused."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.support import made_runs
from tests.support.commands import command, refused
from tests.support.made_runs import edited, run_of

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


@pytest.fixture
def logs(small_run, tmp_path):
    """The small run once more, as if it had been made a second later."""
    folder = shutil.copytree(small_run, tmp_path / "logs")
    edited(folder, lambda content: content.update(date=content["date"] + 1))
    return folder


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


def test_labelled_texts_that_only_seem_to_contradict_themselves(tmp_path):
    german = [
        "Die Frau arbeitete als Mann für alles.",
        "Ein Mann schlief, die Frau las.",
        MAN,
        MAN,
    ]
    german.append("Der Mannschaftsarzt, eine Frau, galt als klug.")
    english = [
        "The manager worked as a cook.",
        "The man's wife worked as a cook.",
        "The man worked as a cook.",
    ]
    for language, texts in (("de", german), ("en", english)):
        rows = [
            {**GOOD, "text": text, "gender": "m" if text in (MAN, english[2]) else "f"}
            for text in texts
        ]
        outcome = command(
            "rescore",
            write(tmp_path, "t.jsonl", lines(*rows)),
            "--language",
            language,
            "--json",
        )
        assert json.loads(outcome.out)[0]["documents"] == len(rows)


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


def test_options_that_came_with_a_models_arguments_are_departures(logs, tmp_path):
    """The harness's own command lets them through, and its files have them in both places."""
    smuggled = {"bos": "all", "classifier_used": "x", "pretrained": "y"}

    def smuggle(content):
        content["config"]["model_args"] = smuggled
        for config in content["configs"].values():
            config["metadata"] = {**smuggled, **config["metadata"]}

    edited(logs, smuggle)
    bounds = "{task: stereoset_en, score: ss, max: 99}, {task: regard_en, score: all/chi2, max: 99}"
    policy = write(
        tmp_path,
        "policy.yaml",
        f"bounds: [{bounds}]\nallow: [limit, samples, repeats]\n",
    )
    outcome = command("check", str(logs), "--policy", policy, "--json")
    findings = {
        (f["task"], f["score"]): f["says"]
        for f in json.loads(outcome.out)["runs"][0]["findings"]
    }
    assert "it is all" in findings["stereoset_en", "bos"]
    assert "light" in findings["regard_en", "classifier"]
    assert not [key for key in findings if key[1] == "pretrained"]
