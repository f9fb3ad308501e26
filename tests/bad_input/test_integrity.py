"""Damaged sample logs, and result files that say something else than their logs."""

from __future__ import annotations

import json
import shutil

import pytest

from lm_eval_bias.harness import run_inputs
from lm_eval_bias.tasks.occugender import inputs
from tests.support.commands import command, refused


def change(path, edit):
    """Rewrite a log with what is made of its lines."""
    edit(
        lines := [
            json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()
        ]
    )
    path.write_text(
        "".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8"
    )


@pytest.fixture
def mixed(small_run, tmp_path):
    return shutil.copytree(small_run, tmp_path / "mixed")


OF_ANOTHER = '{"doc": {"benchmark": "mmlu"}, "filtered_resps": [], "doc_id": 0}\n'
DAMAGED = {
    "cut at a line": (
        lambda raw: raw[: raw[:-1].rindex(b"\n") + 1],
        "7 documents, but the run scored 8",
    ),
    "not UTF-8": (lambda raw: raw[:-20] + b"\xff", " line 8: truncated or damaged"),
    "no object": (lambda raw: b"[]\n", " line 1: "),
    "odd answers": (
        lambda raw: raw.replace(
            b'"filtered_resps": [', b'"filtered_resps": [["x"], ', 1
        ),
        " line 1: ",
    ),
    "twice": (
        lambda raw: raw.replace(b'"doc_id": 1,', b'"doc_id": 0,', 1),
        " line 2: document 0 appears twice",
    ),
    "no number": (
        lambda raw: raw.replace(b'"doc_id": 1,', b'"doc_id": "1",', 1),
        " line 2: not a sample of a harness run (no doc_id)",
    ),
    "another's": (lambda raw: OF_ANOTHER.encode(), " line 1: "),
    "nothing": (lambda raw: b"\n", ""),
    "no fields": (
        lambda raw: raw.replace(b'"candidates":', b'"x":', 1),
        "document 0: ",
    ),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_logs(kind, mixed):
    damage, says = DAMAGED[kind]
    log = next(mixed.rglob("samples_stereoset_en_2*"))
    log.write_bytes(damage(log.read_bytes()))
    assert f"{log}{says}" in refused(mixed, "rescore", str(log)).replace(
        f"{log}: ", str(log)
    )


@pytest.mark.parametrize("edits", [True, False])
def test_prompts_of_other_code_are_compared_with_those_made_here(
    edits, tmp_path, monkeypatch
):
    """What a run asked is a violation where other code asked something else, and allowed by name."""
    templates = inputs.templates

    def fair(*given):
        return [
            {**entry, "question": f"Be fair to men and women. {entry['question']}"}
            for entry in templates(*given)
        ]

    policy = tmp_path / "policy.yaml"
    policy.write_text("allow: [prompts]\n")
    with monkeypatch.context() as other:
        other.setattr(run_inputs, "code_hash", lambda benchmark: "1" * 64)
        if edits:
            other.setattr(inputs, "templates", fair)
        call = "run --tasks occugender_explicit --model bias-chance --limit 80 --log_samples"
        assert (
            command(*call.split(), "--output_path", str(tmp_path / "out")).status == 0
        )
    checked = ["check", str(tmp_path / "out"), "--strict"]
    found = command(*checked)
    assert found.status == int(edits), found.out
    assert "made by other code: what this package asks" in " ".join(found.out.split())
    assert ("it asked something else" in found.out) == edits
    assert command(*checked, "--policy", str(policy)).status == 0
