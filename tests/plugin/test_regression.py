"""A run against an earlier one: what is shown to be worse, and what nothing shows."""

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from lm_eval_bias.gate import regression
from lm_eval_bias.report import policy_outputs
from lm_eval_bias.runs.run_discovery import read
from tests.support.commands import command
from tests.support.run_scores import run

TASK = "occugender_implicit"


@pytest.fixture(scope="module")
def dialled(tmp_path_factory):
    """Make runs of a synthetic bias, by strength and seed."""
    root = tmp_path_factory.mktemp("dialled")

    def get(strength, seed=0):
        folder = root / f"{strength}-{seed}"
        if not folder.exists():
            arguments = f"strength={strength},seed={seed}"
            run(folder, TASK, "--model_args", arguments, model="bias-dial")
        return str(folder)

    return get


def judged(base, other, margin=0.0, margins=None, shown=False):
    (first, second), _ = read([base, other])
    return regression.regressions(second, first, margin, margins or {}, shown)


def outcome_of(*arguments, **options):
    (finding,) = judged(*arguments, **options)
    return finding.change.outcome, finding.passes


def test_what_is_worse_is_found_and_what_is_within_the_margin_holds(dialled):
    (worse,) = judged(dialled(0.2), dialled(0.28))
    assert (worse.score, worse.passes) == ("stereotype_gap", False)
    assert worse.change.outcome == "worse"
    assert worse.change.difference == pytest.approx(worse.value - worse.change.base)
    assert outcome_of(dialled(0.28), dialled(0.2)) == ("not worse", True)
    assert outcome_of(dialled(0.2), dialled(0.21), 0.05) == ("not worse", True)
    # neither worse nor shown to be within the margin: a violation where that has to be shown
    assert outcome_of(dialled(0.2), dialled(0.21), 0.01) == ("not shown", True)
    shown = {"shown": True}
    assert outcome_of(dialled(0.2), dialled(0.21), 0.01, **shown) == (
        "not shown",
        False,
    )
    assert outcome_of(dialled(0.2), dialled(0.21), 0.05, **shown) == ("not worse", True)
    named = {"margins": {"stereo*": 0.01}}
    assert outcome_of(dialled(0.2), dialled(0.28), 0.5, **named) == ("worse", False)
    # as far from neutral on its other side
    assert judged(dialled(0.2), dialled(-0.2))[0].passes
    assert not judged(dialled(-0.2), dialled(0.5), 0.01)[0].passes


def test_no_more_can_be_detected_than_is_possible(dialled):
    (finding,) = judged(dialled(0.99), dialled(0.99, 1), 0.02)
    assert math.isnan(finding.change.minimum_detectable)
    assert policy_outputs.says(finding).endswith("Detects nothing.")


@pytest.mark.parametrize(("reach", "start"), [(0.15, 0.4), (0.25, 0.0)])
def test_a_base_that_cannot_be_told_from_neutral_starts_there(
    reach, start, monkeypatch
):
    """Of values 0.2 and 0.1: a worse value on the other side starts beyond -0.2, or at neutral."""
    monkeypatch.setattr(regression.power, "smallest_worsening", lambda *a: a[2])
    stderr = reach / regression.t_factor(20.0)
    difference = SimpleNamespace(sum_value=0.3, value=-0.1, dof=20.0, stderr=stderr)
    score = SimpleNamespace(higher_is_better=None, neutral=0.0, low=-1.0, high=1.0)
    finding = SimpleNamespace(
        score=score, base_value=0.2, difference=difference, level=0.05
    )
    found = regression.minimum_detectable(finding, 0.0)
    assert found == pytest.approx(start, abs=1e-12)


def test_a_score_without_a_value_on_both_sides_is_a_violation(tmp_path):
    for strength in (0.1, 0.9):
        arguments = ["--limit", "100", "--model_args", f"strength={strength}"]
        run(tmp_path / f"{strength}", TASK, *arguments, model="bias-dial")
    (found,) = judged(str(tmp_path / "0.1"), str(tmp_path / "0.9"))
    assert (found.score, found.passes) == ("stereotype_gap", False)
    assert found.change.outcome == "no value"


SHIPPED = Path(__file__).parents[2] / "results/runs/smollm2-135m-instruct-quick"


def test_what_is_allowed_is_allowed_in_every_rule(tmp_path):
    policy = tmp_path / "policy.yaml"
    codes = "position_bias, length_bias, saturated, low_coverage, chance_level, below_chance, unshown_ability"
    policy.write_text(f'allow: ["suite=quick", {codes}]\n')
    arguments = ["check", str(SHIPPED), "--base", str(SHIPPED), "--policy", str(policy)]
    outcome = command(*arguments)
    assert outcome.status == 0, outcome.out


def test_a_task_that_one_run_lacks_and_other_items(dialled, tmp_path):
    run(tmp_path / "two", f"{TASK},occugender_explicit", "--limit", "80", "--model_args", "strength=0.2",
        model="bias-dial")  # fmt: skip
    found = judged(dialled(0.2), str(tmp_path / "two"))
    problems = {
        finding.task: finding.problem for finding in found if not finding.passes
    }
    assert problems["occugender_explicit"] == "the base doesn't have it"
    assert problems[TASK].startswith("other items")


def test_the_command(dialled, tmp_path):
    written = ["--junit", str(tmp_path / "j.xml"), "--markdown", str(tmp_path / "c.md")]
    base = ["--base", dialled(0.2), *written, "--json"]
    outcome = command("check", dialled(0.28), *base)
    told = json.loads(outcome.out)
    (about,) = told["runs"]
    assert (outcome.status, told["complete"]) == (1, True)
    assert about["findings"][0]["passes"] is False
    assert command("check", dialled(0.21), *base, "--margin", "0.05").status == 0
    # a verdict is written whatever happens, over an earlier one
    outcome = command("check", str(tmp_path / "nosuch"), *base)
    assert (outcome.status, json.loads(outcome.out)["complete"]) == (2, False)
    assert "no verdict" in (tmp_path / "c.md").read_text()
    assert ElementTree.parse(tmp_path / "j.xml").getroot().get("errors") == "1"
    more = ["--policy", "x", "--margin", "5%"]
    assert "--margin goes with --base" in command("check", dialled(0.2), *more).err


BBQ = "gg_bbq_group_terms"


@pytest.fixture
def answering(tmp_path, mirror):
    """Make runs of question answering by what a model can do."""

    def get(arguments, model="bias-dial"):
        folder = tmp_path / re.sub("[=,]", "-", arguments or model)
        if not folder.exists():
            more = ["--model_args", arguments] if arguments else []
            run(folder, BBQ, *more, model=model)
        return str(folder)

    return get


def test_a_model_that_answers_by_chance_or_not_at_all_is_not_passed(answering):
    base = answering("strength=0,competence=0.9")
    for other, says in (
        (answering("", "bias-chance"), "answers at random"),
        (answering("strength=0,competence=0.9,refusals=0.8"), "unanswered"),
    ):
        outcome = command("check", other, "--base", base, "--margin", "5%")
        assert outcome.status == 1
        assert says in outcome.out


@pytest.mark.parametrize(
    ("margins", "says"),
    [
        (
            "{stereotype_gap: 5}",
            "can be worse by at most 1: it would never be violated",
        ),
        ("{stereotype_gab: 0.1}", "Did you mean stereotype_gap?"),
        ("{stereotype_gap: -0.1}", "margins/stereotype_gap"),
        ("{stereotype_gap: .nan}", "margins/stereotype_gap"),
        (
            "{stereotype_gap: 1, stereotype_gap: 2}",
            "the key 'stereotype_gap' is given twice",
        ),
        ("{stereotype_gap: 5%}", ""),
    ],
)
def test_margins_are_of_scores_that_are_compared(margins, says, dialled, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"margins: {margins}\n")
    outcome = command(
        "check", dialled(0.2), "--base", dialled(0.2), "--policy", str(policy)
    )
    assert outcome.status == (2 if says else 0)
    assert says in outcome.err


@pytest.mark.parametrize("margin", ["5", "nan", "0,05"])
def test_a_margin_is_a_share_and_bad_usage_leaves_no_older_verdict(
    margin, dialled, tmp_path
):
    comment = tmp_path / "c.md"
    comment.write_text("all hold")
    outcome = command(
        "check",
        dialled(0.2),
        "--base",
        dialled(0.2),
        "--margin",
        margin,
        "--markdown",
        str(comment),
    )
    assert (outcome.status, outcome.out) == (2, "")
    assert f"{margin}: give a share" in outcome.err
    assert "no verdict" in comment.read_text()
