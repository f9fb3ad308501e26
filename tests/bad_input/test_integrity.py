"""Damaged sample logs, and result files that say something else than their logs."""

from __future__ import annotations

import json
import math
import shutil

import pytest

from lm_eval_bias.harness import run_inputs
from lm_eval_bias.tasks.occugender import inputs
from tests.support.commands import command, refused
from tests.support.made_runs import edited


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


# ---- check --strict computes every score again from the samples


@pytest.fixture
def strict(mixed, tmp_path):
    """The status of ``check``, of ``--strict`` as to samples, and what it says of each task's samples."""
    allowed = "[limit, samples, inputs, seeds, repeats, classifier, chance_level]"
    bound = "{task: stereoset_en, score: ss, max: 99.9, on: point}"
    (tmp_path / "policy.yaml").write_text(f"bounds: [{bound}]\nallow: {allowed}\n")

    def check():
        arguments = [
            "check",
            str(mixed),
            "--policy",
            str(tmp_path / "policy.yaml"),
            "--json",
        ]
        plain, found = command(*arguments), command(*arguments, "--strict")
        findings = [
            json.loads(one.out)["runs"][0]["findings"] for one in (plain, found)
        ]
        assert "samples" not in {f["score"] for f in findings[0]}
        return (
            plain.status,
            # the data were pinned otherwise when the run was made, which --strict says, too
            int(any(f["score"] == "samples" and not f["passes"] for f in findings[1])),
            {f["task"]: f["says"] for f in findings[1] if f["score"] == "samples"},
        )

    return check


@pytest.mark.parametrize(("change", "says"), [
    (lambda r, m: r.update({"ss,none": r["ss,none"] * (1 + 1e-12)}), ""),  # rounding
    (lambda r, m: r.update({"ss,none": r["ss,none"] * (1 + 1e-8)}), "ss has the value"),
    (lambda r, m: r.update({"ss_stderr,none": r["ss_stderr,none"] * (1 + 1e-8)}), ""),  # a root of rounding
    (lambda r, m: r.update({"ss_stderr,none": r["ss_stderr,none"] * (1 + 1e-6)}), "ss has the standard error"),
    (lambda r, m: (r.update({"lms,none": math.nan}), m["lms"].update(interval=None)), "lms has the value"),
    (lambda r, m: m["ss"].update(dof=1000.0), "ss has the degrees of freedom 1000"),
    (lambda r, m: m["ss"].update(interval=[0.0, 100.0]), "ss has the interval's lower end 0"),
    (lambda r, m: r.pop("icat,none"), "icat is not in the file"),
    (lambda r, m: (r.update({"own,none": 1.0}), m["icat"].update(metric="own")), "own is not a score of"),
])  # fmt: skip
def test_a_file_that_says_anything_else_is_a_violation(change, says, strict, mixed):
    def of_stereoset(content):
        metrics = {
            metric["metric"]: metric
            for metric in content["configs"]["stereoset_en"]["metric_list"]
        }
        change(content["results"]["stereoset_en"], metrics)

    edited(mixed, of_stereoset)
    plain, status, found = strict()
    assert (plain, status) == (0, bool(says))
    assert says in found.pop("stereoset_en")
    assert found == dict.fromkeys(found, "") != {}


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
