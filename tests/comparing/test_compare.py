"""The command on result folders: paired, refused, unpaired, within a run, and names that are no markup."""

from __future__ import annotations

import json
import math
import shutil

import pytest
from scipy import stats

import lm_eval_bias as leb
from lm_eval_bias.cli.main import main
from tests.support.commands import refused
from tests.support.made_runs import edited
from tests.support.run_scores import results_of, run

TASKS = ("occugender_debias_implicit_none", "occugender_debias_implicit_1")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folders = [tmp_path_factory.mktemp("runs") / seed for seed in "12"]
    for folder in folders:
        more = [
            "--model_args",
            f"strength=0,seed={folder.name}",
            "--output_path",
            str(folder),
            "--log_samples",
        ]
        assert (
            main(["run", "--tasks", ",".join(TASKS), "--model", "bias-dial", *more])
            == 0
        )
    return folders


@pytest.fixture
def runs(made, tmp_path):
    """Copies that a test may change."""
    return [shutil.copytree(folder, tmp_path / folder.name) for folder in made]


@pytest.fixture
def compared(said):
    return lambda *arguments: json.loads(
        said("compare", *arguments, "--format", "json")
    )


def test_a_score_has_an_n_of_its_own_in_files_and_frames(runs):
    (run,) = leb.load(runs[0])
    for task, config in results_of(runs[0])["configs"].items():
        stored = {entry["metric"]: entry["n"] for entry in config["metric_list"]}
        assert (stored["stereotype_gap"], stored["male_dominated_gap"]) == (200, 100)
        assert {value.n for value in run.tasks[task].scores.values()} == {100, 200}
    frame = leb.scores(run)
    assert set(frame.n[frame.score == "male_dominated_gap"]) == {100}


def test_two_runs(runs, compared):
    found, plain = (
        compared(*runs),
        compared(*runs, "--correction", "none", "--by", "run"),
    )
    assert len(found) == len(plain) == 10  # five main scores of two tasks
    values = results_of(runs[0])["results"]
    for row in found:
        assert row["paired"]
        # a score of one half of the occupations rests on half of the prompts
        assert row["items"] == (100 if "dominated" in row["score"] else 200)
        assert row["base_value"] == pytest.approx(
            values[row["task"]][f"{row['score']},none"], abs=1e-9
        )
        assert row["difference"] == pytest.approx(
            row["other_value"] - row["base_value"], abs=1e-9
        )
        assert row["interval"][0] < row["difference"] < row["interval"][1]
        assert row["p"] <= row["p_adjusted"] <= 1
    assert (found[0]["base"], found[0]["other"]) == (
        "bias-dial (strength=0,seed=1)",
        "bias-dial (strength=0,seed=2)",
    )
    # what is detectable is told at the level after correction for the tests of its family: two, and eight
    primary = {row["score"] for row in found if row["family"] == "primary"}
    assert primary == {"stereotype_gap"}
    for rows, corrected in ((found, True), (plain, False)):
        for row in rows:
            tests = (2 if row["score"] in primary else 8) if corrected else 1
            level = 0.05 / tests
            t = stats.t.ppf([1 - level / 2, 0.8], row["dof"])
            assert row["minimum_detectable_level"] == pytest.approx(level)
            if row["minimum_detectable"] is not None:  # more than the range allows
                expected = pytest.approx(t.sum() * row["stderr"])
                assert row["minimum_detectable"] == expected
                # four times the templates find half of it, where occupations play no part
                if row["p_adjusted"] > 0.05 and row["required_clusters"]:
                    growth = (t.sum() * row["stderr"] / row["difference"]) ** 2
                    assert row["clusters"] == 5
                    assert row["required_clusters"] >= 0.999 * growth * 5


def test_a_plan_tells_what_a_run_could_find(runs, said, tmp_path):
    plan = ("power", str(runs[0]))
    (run,) = leb.load(runs[0])
    for row in json.loads(said(*plan, "--format", "json")):
        value = run.tasks[row["task"]].scores["stereotype_gap"]
        for level, name in (
            (0.05, "minimum_detectable_alone"),
            (0.025, "minimum_detectable"),
        ):
            t = stats.t.ppf([1 - level / 2, 0.8], 2 * value.dof).sum()
            assert row[name] == pytest.approx(t * 2**0.5 * value.stderr)
    # four times the templates find half of it, but for what the occupations leave
    fall = (0.14 / row["minimum_detectable"]) ** 2
    times = (1 - value.stays) / (fall - value.stays)
    text = f" 0.140  {math.ceil(5 * times)} (5 templates here, 5 in all)"
    assert said(*plan, "--target", "0.14").splitlines()[-1].rstrip().endswith(text)
    assert "above 0 and up to 1" in refused(tmp_path, *plan, "--target", "7")
    both = str(runs[0].parent)
    assert "power is of one run" in refused(tmp_path, "power", both)
    assert "no format goes with .html" in refused(
        tmp_path, *plan, "-o", str(tmp_path / "plan.html")
    )


def test_instructions_within_a_run(runs, compared):
    found = compared(runs[0], "--by", "instruction")
    assert {(row["base"], row["other"]) for row in found} == {
        ("instruction none", "instruction 1")
    }
    assert {row["items"] for row in found} == {100, 200}
    # neutral words are compared; the family that is tested first stays the same
    assert {"female_dominated_D", "male_dominated_D"} < {row["score"] for row in found}
    primary = [row["score"] for row in found if row["family"] == "primary"]
    assert primary == ["stereotype_gap"]
    other = compared(runs[0], "--by", "instruction", "--base", "1")
    assert other[0]["difference"] == pytest.approx(-found[0]["difference"], abs=1e-12)


def of_another_version(content):
    content["versions"] = dict.fromkeys(content["versions"], 0.5)


@pytest.mark.parametrize("named", ["version 2.0 and 0.5", "saved answers"])
def test_what_cannot_be_paired_is_refused_or_unpaired(runs, compared, tmp_path, named):
    if named == "saved answers":
        for path in [*runs[1].rglob("samples_*"), *runs[1].rglob("answers_*")]:
            path.unlink()
    else:
        edited(runs[1], of_another_version)
    said = refused(tmp_path, "compare", *map(str, runs))
    assert named in said
    assert "--unpaired" in said
    found = compared(*runs, "--unpaired")
    assert len(found) == 10
    assert all(named in row["note"] and not row["paired"] for row in found)


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
