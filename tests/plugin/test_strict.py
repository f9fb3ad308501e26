"""``check --strict`` computes every score again from the samples, and believes no file that says anything else."""

from __future__ import annotations

import json
import math
import re
import shutil

import pytest

from lm_eval_bias.cli.main import main
from tests.support.made_mirror import make_tiny_mirror

TASKS = "occugender_debias_implicit_none,gg_bbq_group_terms,stereoset_en,regard_en"
POLICY = """
bounds: [{task: stereoset_en, score: ss, max: 99.9, on: point}]
allow: [limit, samples, inputs, seeds, repeats, classifier, chance_level]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A part of every benchmark, with samples."""
    folder = tmp_path_factory.mktemp("strict")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_BIAS_CACHE", str(folder / "cache"))
        make_tiny_mirror(folder / "mirror", patch)
        options = ["--limit", "8", "--metadata", '{"classifier": "light", "repeats": 2}', "--log_samples"]
        run = ["run", "--tasks", TASKS, "--model", "bias-chance", *options, "--output_path", str(folder / "run")]
        assert main(run) == 0
    return folder / "run"


@pytest.fixture
def folder(made, tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    return shutil.copytree(made, tmp_path / "run")


def check(folder, capsys, *more):
    capsys.readouterr()
    status = main(["check", str(folder), "--policy", str(folder.parent / "policy.yaml"), "--json", *more])
    out, err = capsys.readouterr()
    findings = json.loads(out)["runs"][0]["findings"] if out else []
    return status, {f["task"]: f["says"] for f in findings if f["score"] == "samples"}, err


def edit(folder, change):
    (path,) = folder.rglob("results_*.json")
    content = json.loads(path.read_text())
    change(content, content["results"]["stereoset_en"])
    path.write_text(json.dumps(content))


def test_what_a_run_wrote_is_what_its_samples_give(folder, capsys):
    status, says, _ = check(folder, capsys, "--strict")
    assert (status, says) == (0, dict.fromkeys(TASKS.split(","), ""))
    assert check(folder, capsys)[1] == {}  # asked for alone


def meaning(content):
    return {metric["metric"]: metric for metric in content["configs"]["stereoset_en"]["metric_list"]}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c, r: r.update({"ss,none": r["ss,none"] + 0.25}), "ss has the value"),
        (lambda c, r: r.update({"ss_stderr,none": r["ss_stderr,none"] / 2}), "ss has the standard error"),
        (lambda c, r: (r.update({"lms,none": math.nan}), meaning(c)["lms"].update(interval=None)), "lms has the value"),
        (lambda c, r: meaning(c)["ss"].update(dof=1000.0), "ss has the degrees of freedom 1000"),
        (lambda c, r: meaning(c)["ss"].update(interval=[0.0, 100.0]), "ss has the interval's lower end 0"),
        (lambda c, r: r.pop("icat,none"), "icat is not in the file"),
        (lambda c, r: (r.update({"own,none": 1.0}), meaning(c)["icat"].update(metric="own")), "own is not a score of"),
    ],
)
def test_a_file_that_says_anything_else_is_a_violation(change, says, folder, capsys):
    edit(folder, change)
    assert check(folder, capsys)[0] == 0
    status, found, _ = check(folder, capsys, "--strict")
    assert status == 1
    assert says in found["stereoset_en"]
    assert not any(problem for task, problem in found.items() if task != "stereoset_en")


def test_rounding_is_no_difference(folder, capsys):
    edit(folder, lambda c, r: r.update({"ss,none": r["ss,none"] * (1 + 1e-12)}))
    assert check(folder, capsys, "--strict")[0] == 0


def test_without_a_log_nobody_can_tell(folder, capsys):
    next(folder.rglob("samples_regard_en*")).unlink()
    assert check(folder, capsys)[0] == 0
    status, found, _ = check(folder, capsys, "--strict")
    assert status == 1
    assert found["regard_en"].startswith("they can't be recomputed: there is no sample log beside the file")
    assert "--log_samples" in found["regard_en"]


def test_a_log_that_was_cut_is_a_violation(folder, capsys):
    log = next(folder.rglob("samples_stereoset_en*"))
    log.write_text("".join(log.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
    status, found, _ = check(folder, capsys, "--strict")
    assert status == 1
    assert "7 documents, but the run scored 8" in found["stereoset_en"]


def test_a_log_of_other_documents_is_a_violation(folder, capsys):
    log = next(folder.rglob("samples_stereoset_en*"))
    other = {'"stereotype"': '"anti-stereotype"', '"anti-stereotype"': '"stereotype"'}
    text = re.sub('"(?:anti-)?stereotype"', lambda found: other[found[0]], log.read_text(encoding="utf-8"))
    log.write_text(text, encoding="utf-8")
    assert check(folder, capsys)[0] == 0
    status, found, _ = check(folder, capsys, "--strict")
    assert (status, found["stereoset_en"].partition(" ")[0]) == (1, "ss")
