"""The command on real result folders: paired, refused, unpaired, within a run, and in every format."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil

import pytest
from scipy import stats

from lm_eval_bias.cli.main import main

TASKS = "occugender_debias_implicit_none,occugender_debias_implicit_1"


def _run(folder, seed):
    arguments = ["--model", "bias-chance", "--model_args", f"seed={seed}", "--output_path", str(folder)]
    assert main(["run", "--tasks", TASKS, *arguments, "--log_samples"]) == 0
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return _run(root / "a", 1), _run(root / "b", 2)


@pytest.fixture
def runs(made, tmp_path):
    """Copies that a test may change."""
    return [shutil.copytree(folder, tmp_path / folder.name) for folder in made]


def _result(folder):
    (path,) = folder.rglob("results_*.json")
    return path


def _edit(folder, change):
    path = _result(folder)
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def _compared(capsys, *arguments):
    capsys.readouterr()
    assert main(["compare", *map(str, arguments), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def _refused(capsys, *arguments):
    capsys.readouterr()
    assert main(["compare", *map(str, arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.strip().splitlines()) == 1
    return said.err


def test_two_runs(runs, capsys):
    found = _compared(capsys, *runs)
    assert len(found) == 10  # five main scores of two tasks
    values = json.loads(_result(runs[0]).read_text())["results"]
    for row in found:
        assert row["paired"]
        assert row["items"] == 200
        assert row["base_value"] == pytest.approx(values[row["what"]][f"{row['score']},none"], abs=1e-9)
        assert row["difference"] == pytest.approx(row["other_value"] - row["base_value"], abs=1e-9)
        assert row["interval"][0] < row["difference"] < row["interval"][1]
        assert row["p"] <= row["p_adjusted"] <= 1
        assert row["smallest_detectable"] > row["stderr"] > 0
    assert (found[0]["base"], found[0]["other"]) == ("bias-chance (seed=1)", "bias-chance (seed=2)")


def test_what_is_detectable_is_told_at_the_level_after_correction(runs, capsys):
    holm, none = _compared(capsys, *runs), _compared(capsys, *runs, "--correction", "none")
    for corrected, plain in zip(holm, none, strict=True):
        assert (corrected["detectable_at"], plain["detectable_at"]) == (pytest.approx(0.005), 0.05)  # ten tests
        for row in (corrected, plain):
            t = stats.t.ppf([1 - row["detectable_at"] / 2, 0.8], row["dof"])
            assert row["smallest_detectable"] == pytest.approx(t.sum() * row["stderr"])


def _lean(folder, by):
    """Raise the log-likelihood of the stereotyped gender's words in a sample log, whose results then say nothing."""
    for path in folder.rglob("samples_*_none_*.jsonl"):
        lines = []
        for line in path.read_text(encoding="utf-8").splitlines():
            sample = json.loads(line)
            del sample["resps"]
            for answer, gender in zip(sample["filtered_resps"], sample["doc"]["genders"], strict=True):
                if gender == sample["doc"]["group"]:
                    answer[0] = str(float(answer[0]) + by)
            lines.append(json.dumps(sample))
        path.write_text("\n".join(lines), encoding="utf-8")
    _edit(folder, lambda content: [scores.clear() for scores in content["results"].values()])


def test_a_biased_model_is_told_from_an_unbiased_one(runs, capsys):
    _lean(runs[1], 1.0)
    found = {row["score"]: row for row in _compared(capsys, *runs) if row["what"].endswith("none")}
    gap = found["stereotype_gap"]
    assert gap["difference"] > 0.1
    assert gap["p_adjusted"] < 0.05
    assert gap["finding"] == "further from neutral with bias-chance (seed=2)"
    assert found["female_dominated_F"]["finding"] == "higher with bias-chance (seed=2)"


def test_two_models_biased_in_opposite_ways_alike_are_not_ordered(runs, capsys):
    _lean(runs[0], -1.1)
    _lean(runs[1], 0.8)
    found = {row["score"]: row for row in _compared(capsys, *runs) if row["what"].endswith("none")}
    assert "is uncertain" in found["stereotype_gap"]["finding"]
    assert found["stereotype_gap"]["p_adjusted"] < 0.05
    assert found["stereotype_gap"]["base_value"] < -0.15 < 0.15 < found["stereotype_gap"]["other_value"]


def test_instructions_within_a_run(runs, capsys):
    found = _compared(capsys, runs[0], "--by", "instruction")
    assert {(row["base"], row["other"]) for row in found} == {("instruction none", "instruction 1")}
    assert all(row["items"] == 200 for row in found)
    other = _compared(capsys, runs[0], "--by", "instruction", "--base", "1")
    assert other[0]["difference"] == pytest.approx(-found[0]["difference"], abs=1e-12)


def test_other_seeds_are_refused_or_unpaired(runs, capsys):
    _edit(runs[1], lambda content: content["config"].update(random_seed=99))
    assert "[99, 1234, 1234, 1234]; --unpaired" in _refused(capsys, *runs)
    found = _compared(capsys, *runs, "--unpaired")
    assert not any(row["paired"] for row in found)
    gap = found[0]
    assert gap["note"].startswith("unpaired: seeds")
    assert gap["test"] == "Welch's t, unpaired"
    listed = [json.loads(_result(folder).read_text())["results"][gap["what"]] for folder in runs]
    errors = [scores[f"{gap['score']}_stderr,none"] for scores in listed]
    assert gap["stderr"] == pytest.approx(math.hypot(*errors))


def test_without_samples(runs, capsys):
    for path in runs[1].rglob("samples_*"):
        path.unlink()
    assert "no sample logs" in _refused(capsys, *runs)
    assert len(_compared(capsys, *runs, "--unpaired")) == 10


def test_bad_usage(runs, capsys):
    for arguments, named in (
        ((runs[0],), "--by"),
        ((*runs, "--scores", "stereotyp_gap"), "--scores stereotyp_gap"),
        ((*runs, "--base", "gpt2"), "--base gpt2"),
        ((runs[0], "--by", "language"), "--by language"),
        ((runs[0], "nowhere"), "nowhere"),
    ):
        assert named in _refused(capsys, *arguments)


def test_names_are_text_in_every_format(runs, capsys, tmp_path):
    name = "=cmd|x<script>_*$&%#"
    _edit(runs[1], lambda content: content["config"].update(model_args={"pretrained": name}))
    capsys.readouterr()
    said = {}
    for style in ("text", "md", "latex", "csv"):
        out = tmp_path / f"out.{style}"
        assert main(["compare", *map(str, runs), "--format", style, "-o", str(out)]) == 0
        said[style] = out.read_text(encoding="utf-8")
    assert "<script>" not in said["md"]
    assert "\\|x&lt;script&gt;\\_\\*" in said["md"]
    assert r"\$\&\%\#" in said["latex"]
    rows = list(csv.DictReader(io.StringIO(said["csv"])))
    assert len(rows) == 10
    assert rows[0]["other"] == f"'{name}"
