"""``lm-eval-bias export``: written whole or not at all, never over a run."""

import pytest

from lm_eval_bias.exports.exporting import FORMATS
from tests.support.exported import a_run, exported
from tests.support.made_runs import edited, harness_folder, write

MORE = {"hf-eval-results": ["--dataset", "owner/bench"]}


@pytest.mark.parametrize("form", FORMATS)
def test_files_are_written_and_nothing_else(form, tmp_path, capsys):
    path, _ = a_run(tmp_path)
    out = tmp_path / "out"
    said = exported(capsys, path, "--to", form, *MORE.get(form, []), "-o", out).out
    assert said.startswith(f"{out}: ")
    assert "left out: " in said
    files = [p for p in out.rglob("*") if p.is_file()] if FORMATS[form].is_folder else [out]
    assert files
    assert all(file.stat().st_mode & 0o777 == 0o644 for file in files)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "tiny.json"]


def test_withheld_scores_are_not_exported(tmp_path, capsys):
    _, content = a_run(tmp_path, tasks=["regard_en"])
    scores = content["tasks"]["regard_en"]["scores"]
    content["tasks"]["regard_en"]["scores"] = {k: v for k, v in scores.items() if not k.startswith("sexualization")}
    path = write(tmp_path / "withheld.json", content)
    assert ": 0 scores\n" in exported(capsys, path, "--to", "eee", "-o", tmp_path / "out").out


@pytest.mark.parametrize("form", FORMATS)
def test_a_benchmark_that_this_version_does_not_know(form, tmp_path, capsys):
    def newer(content):
        content["configs"]["occugender_explicit"]["metadata"]["benchmark"] = "newer"

    folder = edited(harness_folder(tmp_path / "run"), newer)
    more = [*MORE.get(form, []), *(["--allow-trial"] if form != "eee" else [])]
    said = exported(capsys, folder, "--to", form, *more, "-o", tmp_path / "out").out
    assert ": 0 scores" not in said
