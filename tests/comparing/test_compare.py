"""The command on result folders: paired, refused, unpaired, within a run, and names that are no markup."""

from __future__ import annotations

import json

import pytest

from lm_eval_bias.cli.main import main
from tests.support.commands import refused
from tests.support.run_scores import run


@pytest.fixture
def compared(said):
    return lambda *arguments: json.loads(
        said("compare", *arguments, "--format", "json")
    )


def test_parallel_items_of_languages_are_paired_and_others_are_independent(
    mirror, tmp_path, compared
):
    subjects = ("religion", "physical_appearance")
    tasks = ",".join(
        f"{language}_bbq_{subject}" for subject in subjects for language in ("es", "ca")
    )
    model = ["--model", "bias-dial", "--model_args", "strength=0.2", "--limit", "192"]
    assert (
        main(
            [
                "run",
                *model,
                "--tasks",
                tasks,
                "--output_path",
                str(tmp_path),
                "--log_samples",
            ]
        )
        == 0
    )
    rows = compared(tmp_path, "--by", "language", "--base", "es")
    assert {(row["task"], row["other"]): row["paired"] for row in rows} == {
        (f"*_bbq_{subject}", "language ca"): subject == "religion"
        for subject in subjects
    }
    names = {
        f"{kind}_{context}"
        for kind in ("acc", "diff_bias")
        for context in ("amb", "disamb")
    }
    assert {row["score"] for row in rows} == names


def test_a_score_of_one_language_has_nothing_to_compare_with(tiny_mirror, tmp_path):
    run(tmp_path, "occugender_implicit,stereoset_en,stereoset_de", "--limit", "12")
    by = ("compare", str(tmp_path), "--by", "language", "--scores")
    refusal = refused(tmp_path, *by, "labour_pearson")
    assert "no task here has this score" in refusal

    # a verdict is about everything that was given
