"""``lm-eval-bias export``: written whole or not at all, never over a run."""

import pytest

from lm_eval_bias.exports.exporting import FORMATS
from tests.support.exported import a_run, exported
from tests.support.fuzzing import disk
from tests.support.made_runs import harness_folder, write

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


def test_a_second_export_replaces_the_first_and_leaves_other_files(tmp_path, capsys):
    path, _ = a_run(tmp_path)
    out = tmp_path / "out"
    exported(capsys, path, "--to", "eee", "-o", out)
    (out / "mine.txt").write_text("x")
    before = sorted(out.rglob("*"))
    exported(capsys, path, "--to", "eee", "-o", out)
    assert sorted(out.rglob("*")) == before
    (tmp_path / "file").write_text("x")
    assert "Not a directory" in exported(capsys, path, "--to", "eee", "-o", tmp_path / "file", status=2).err


@pytest.mark.parametrize("form", FORMATS)
def test_a_full_disk_leaves_nothing(form, tmp_path, capsys):
    path, _ = a_run(tmp_path)
    with disk(20):
        said = exported(capsys, path, "--to", form, *MORE.get(form, []), "-o", tmp_path / "out", status=2).err
    assert "cannot be written" in said
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["tiny.json"]


def test_withheld_scores_are_not_exported(tmp_path, capsys):
    path, content = a_run(tmp_path, "withheld", ["regard_en"])
    scores = content["tasks"]["regard_en"]["scores"]
    for name in [name for name in scores if name.startswith(("caregiving", "sexualization", "perpetration"))]:
        del scores[name]
    write(tmp_path / "withheld.json", content)
    assert ": 0 scores\n" in exported(capsys, path, "--to", "eee", "-o", tmp_path / "out").out


@pytest.mark.parametrize("form", FORMATS)
def test_a_benchmark_that_this_version_does_not_know(form, tmp_path, capsys):
    folder = harness_folder(tmp_path / "run")
    path = next((tmp_path / "run").rglob("results_*.json"))
    path.write_text(path.read_text().replace('"benchmark": "occugender"', '"benchmark": "newer"'))
    more = [*MORE.get(form, []), *(["--allow-trial"] if form != "eee" else [])]
    said = exported(capsys, folder, "--to", form, *more, "-o", tmp_path / "out").out
    assert ": 0 scores" not in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--to model-card --language en", "--language has no effect with --to model-card: it is for predictions"),
        ("--to model-card --no-items", "--no-items has no effect with --to model-card: it is for eee"),
        ("--to eee --dataset a/b", "--dataset has no effect with --to eee: it is for hf-eval-results"),
        ("--to predictions --name x", "--name has no effect with --to predictions"),
    ],
)
def test_options_that_another_format_has(arguments, says, tmp_path, capsys):
    options = [*arguments.split(), "-o", tmp_path / "out"]
    assert says in exported(capsys, a_run(tmp_path)[0], *options, status=2).err
