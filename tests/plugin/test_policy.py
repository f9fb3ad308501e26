"""What a policy's text means, on which line it says what it can't mean, and what ``check`` makes of it."""

import math
import re

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.gate import policy_file, verdict
from lm_eval_bias.gate.policy_file import Bound, Policy
from lm_eval_bias.runs import run_discovery
from tests.support.made_runs import run_of, write

BOUND = "bounds: [{task: a, score: b, max: 1}]\n"


@pytest.fixture
def policy(tmp_path):
    def written(text):
        path = tmp_path / "policy.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


@pytest.fixture
def read(policy):
    return lambda text: policy_file.read(policy(text))


def test_what_is_said_stands_and_what_is_not_is_the_default(read, tmp_path):
    place = f"{tmp_path / 'policy.yaml'}/bounds"
    bound = Bound("a", "b", -math.inf, 1.0, math.inf, "interval", "", f"{place}/0")
    assert read(BOUND) == Policy([bound], 0.1, ())
    found = read(
        "max_unanswered_share: 0\n"
        "allow: [limit, 'gen_kwargs={''stop'': ''a=b''}', wording=3]\nbounds:\n"
        "- {task: a, score: b, min: 1, max: 1, max_distance_from_neutral: 3, on: point, why: so}\n"
        # YAML 1.1 would take "on" for true and "010" for eight
        "- task: stereoset_en\n  score: ss\n  max: 010\n  min: -1e-3\n  on: evidence\n"
    )
    bounds = [
        Bound("a", "b", 1.0, 1.0, 3.0, "point", "so", f"{place}/0"),
        Bound(
            "stereoset_en", "ss", -0.001, 10.0, math.inf, "evidence", "", f"{place}/1"
        ),
    ]
    assert found == Policy(
        bounds, 0.0, ["limit", "gen_kwargs={'stop': 'a=b'}", "wording=3"]
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ": "),
        ("bounds: []\n", "/bounds: "),
        ("bounds: [\n", " line 2: "),
        ("bounds: !!python/object:os.system {}\n", " line 1: "),
        (b"bounds: [] # f\xfcr", ": byte 14 "),
        (f"{BOUND}{'#' * (1 << 20)}", ""),
        ("bounds:\n  - task: a\n    max: 1\n", "/bounds/0: 'score'"),
        *(
            (f"bounds:\n  - task: a\n    score: b\n    max: {value}\n", "/bounds/0/max: ")
            for value in ("much", ".nan", ".inf", "1:30")
        ),
        ("bounds:\n  - {task: a, score: b, max: 1, on: values}\n", "/bounds/0/on: 'values'"),
        ("bounds:\n  - {task: a, score: b, max_distance_from_neutral: -1}\n", "/bounds/0/max_dist"),
        (f"{BOUND}bound: 1\nlimits: 2\n", ": Additional properties"),
        ("bounds:\n- {task: a, score: b, max: 1}\n- {task: a, score: b, most: 1}\n",
         "/bounds/1: Additional properties"),
        ("bounds:\n- {task: a, score: b}\n- {task: a, skore: b, max: 1}\n", "/bounds/0: "),
        (f"allow: 3\n{BOUND}", "/allow: 3"),
        (f"{BOUND}{BOUND}", " line 2: not valid YAML (the key 'bounds' is given twice)"),
        ("bounds: &a [*a]\n", " line 1: not valid YAML (its aliases repeat too much)"),
        ("bounds:\n- task: a\n  score: b\n  max: 1\n- task: ''\n  score: b\n  max: 1\n", "/bounds/1/task: ''"),
        (f"allow:\n- limit\n- limit=3\n- words2=a=b\n{BOUND}", "/allow/2: unknown name 'words2'. Did you mean"),
        ("bounds:\n- {task: a, score: b, max: 1}\n- {task: a, score: b, min: 0.5, max: -1}\n",
         "/bounds/1: min 0.5 is above max -1"),
    ],
)  # fmt: skip
def test_what_it_cannot_mean_is_told_with_its_place(text, said, read, tmp_path):
    with pytest.raises(BiasError) as error:
        read(text)
    assert str(error.value).startswith(f"{tmp_path / 'policy.yaml'}{said}")
    assert str(error.value).isprintable()


def test_the_example_is_a_policy_whose_names_exist(read, capsys):
    assert main(["check", "--example"]) == 0
    found = read(capsys.readouterr().out)
    assert {bound.on for bound in found.bounds} == {"interval", "point", "evidence"}


@pytest.mark.parametrize(
    ("score", "bound", "says"),
    [
        ("lms", "min: 0.7", "lms goes from 0 to 100 percent: write 70, or 0.7%"),
        ("lms", "min: 70%", ""),
        ("ss", "max_distance_from_neutral: 20%", ""),
        ("ss", "max_distance_from_neutral: 0.2", "write 20, or 0.2%"),
        ("lms", "min: 700%", "never be met"),
    ],
)
def test_a_bound_is_in_the_unit_of_its_score(score, bound, says, read, tmp_path):
    found = read(f"bounds: [{{task: stereoset_en, score: {score}, {bound}}}]\n")
    (run,), _ = run_discovery.read(
        [write(tmp_path / "run.json", run_of(tasks=["stereoset_en"]))]
    )
    value = run.tasks["stereoset_en"].scores[score]
    if says:
        with pytest.raises(BiasError, match=re.escape(says)):
            verdict.limits(found.bounds[0], value)
    else:
        low, high = verdict.limits(found.bounds[0], value)
        assert (low, high) in ((70.0, math.inf), (30.0, 70.0))
