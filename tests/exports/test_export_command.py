"""``lm-eval-bias export``: a preview first, written whole or not at all, never over anything."""

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.exports import evidence, formats
from tests.exports.kit import a_run, exported
from tests.report.made_runs import harness_folder, write

WITHOUT_LIBRARIES = [form for form in formats.FORMATS if form.name not in ("wandb", "mlflow")]
MORE = {"hf-eval-results": ["--dataset", "owner/bench"]}


@pytest.mark.parametrize("form", WITHOUT_LIBRARIES, ids=lambda form: form.name)
def test_a_preview_writes_nothing(form, tmp_path, capsys, monkeypatch):
    path, _ = a_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    said = exported(capsys, path, "--to", form.name, *MORE.get(form.name, [])).out
    assert said.startswith(f"{form.name}: ")
    assert said.endswith("This is only a preview: -o PATH writes the files.\n")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("form", WITHOUT_LIBRARIES, ids=lambda form: form.name)
def test_what_is_written_is_what_was_shown(form, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767323045")
    path, _ = a_run(tmp_path)
    said = exported(capsys, path, "--to", form.name, *MORE.get(form.name, []), "-o", tmp_path / "out").out
    out = tmp_path / "out"
    files = [p for p in out.rglob("*") if p.is_file()] if form.is_folder else [out]
    for file in files:
        name = str(file.relative_to(out)) if form.is_folder else str(out)
        assert f"=== {name} ({file.stat().st_size:,} bytes)" in said
        assert file.stat().st_mode & 0o777 == 0o644
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("form", [form for form in WITHOUT_LIBRARIES if form.is_folder], ids=lambda form: form.name)
def test_a_folder_that_holds_something_stays(form, tmp_path, capsys):
    path, _ = a_run(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    exported(capsys, path, "--to", form.name, "-o", out)  # an empty one will do
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert "exists already" in exported(capsys, path, "--to", form.name, "-o", out, status=2).err
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before
    (tmp_path / "file").write_text("x")
    assert "exists already" in exported(capsys, path, "--to", form.name, "-o", tmp_path / "file", status=2).err


def test_nothing_half_written_is_left(tmp_path, capsys, monkeypatch):
    path, _ = a_run(tmp_path)
    monkeypatch.setattr(evidence, "SUMS", "no/such\0name")
    with pytest.raises(ValueError, match="null"):
        main(["export", path, "--to", "evidence", "-o", str(tmp_path / "out")])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["tiny.json"]


def test_a_runs_own_file_is_no_output(tmp_path, capsys):
    path, _ = a_run(tmp_path)
    content = open(path).read()
    said = exported(capsys, path, "--to", "csv", "-o", path, status=2).err
    assert "this file is also an input and would be overwritten" in said
    assert open(path).read() == content


def test_refusals(tmp_path, capsys, monkeypatch):
    path, _ = a_run(tmp_path)
    assert "no such file" in exported(capsys, tmp_path / "none", "--to", "csv", status=2).err
    with pytest.raises(SystemExit):
        main(["export", path, "--to", "nonsense"])
    assert "invalid choice" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", path, "--to", "eee", "--relationship", "friend"])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    assert "SOURCE_DATE_EPOCH='yesterday'" in exported(capsys, path, "--to", "eee", status=2).err


def test_without_a_format_it_writes_predictions_as_before(tmp_path, capsys):
    folder = harness_folder(tmp_path / "run")
    assert "-o FILE" in exported(capsys, folder, status=2).err
    # a run of another benchmark, as it always said
    assert "no samples of StereoSet" in exported(capsys, folder, "-o", tmp_path / "p.json", status=2).err
    said = exported(capsys, folder, "--to", "predictions", "-o", tmp_path / "p.json", status=2).err
    assert "no samples of StereoSet" in said


def test_withheld_scores_are_not_exported(tmp_path, capsys):
    path, content = a_run(tmp_path, "withheld", ["regard_en"])
    scores = content["tasks"]["regard_en"]["scores"]
    for name in [name for name in scores if name.startswith(("caregiving", "sexualization", "perpetration"))]:
        del scores[name]
    write(tmp_path / "withheld.json", content)
    assert exported(capsys, path, "--to", "csv").out.startswith("csv: 0 scores\n")
    assert exported(capsys, path, "--to", "eee").out.startswith("eee: 0 scores\n")


@pytest.mark.parametrize("form", WITHOUT_LIBRARIES, ids=lambda form: form.name)
def test_a_benchmark_that_this_version_does_not_know(form, tmp_path, capsys):
    folder = harness_folder(tmp_path / "run")
    path = next((tmp_path / "run").rglob("results_*.json"))
    path.write_text(path.read_text().replace('"benchmark": "occugender"', '"benchmark": "newer"'))
    said = exported(capsys, folder, "--to", form.name, *MORE.get(form.name, []), "-o", tmp_path / "out").out
    assert not said.startswith(f"{form.name}: 0 scores")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--to csv --scores main", "--scores has no effect with --to csv: it is for eee, model-card"),
        ("--to csv --language en", "--language has no effect with --to csv: it is for predictions"),
        ("--to evidence --no-items", "--no-items has no effect with --to evidence: it is for eee"),
        ("--to eee --dataset a/b", "--dataset has no effect with --to eee: it is for hf-eval-results"),
        ("-o p.json --name x", "--name has no effect with --to predictions"),
    ],
)
def test_options_that_another_format_has(arguments, says, tmp_path, capsys):
    assert says in exported(capsys, a_run(tmp_path)[0], *arguments.split(), status=2).err
