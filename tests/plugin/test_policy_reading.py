"""What a policy's text means, word for word, and on which line it says what it can't mean."""

from __future__ import annotations

import math

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.gate import policy_file
from lm_eval_bias.gate.policy_file import Bound, Policy
from lm_eval_bias.runs import remarks, settings

BOUND = "bounds: [{task: a, score: b, max: 1}]\n"


@pytest.fixture
def read(tmp_path):
    path = tmp_path / "policy.yaml"

    def read(text):
        path.write_text(text, encoding="utf-8")
        return policy_file.read(path)

    return read


@pytest.fixture
def refusal(read, tmp_path):
    def refusal(text):
        with pytest.raises(BiasError) as error:
            read(text)
        return str(error.value).removeprefix(str(tmp_path / "policy.yaml"))

    return refusal


def test_what_is_not_said_is_the_default(read, tmp_path):
    place = f"{tmp_path / 'policy.yaml'} line 1"
    bound = Bound("a", "b", -math.inf, 1.0, math.inf, "interval", "", place)
    assert read(BOUND) == Policy((bound,), None, 0.1, ())


def test_what_is_said_stands(read, tmp_path):
    found = read(
        "min_documents_share: 0.25\nmax_unanswered_share: 0\n"
        "allow: [limit, 'gen_kwargs={''stop'': ''a=b''}', wording=3]\nbounds:\n"
        "- {task: a, score: b, min: 1, max: 1, max_distance_from_neutral: 3, on: point, why: so}\n"
    )
    bound = Bound("a", "b", 1.0, 1.0, 3.0, "point", "so", f"{tmp_path / 'policy.yaml'} line 5")
    allow = ("limit", "gen_kwargs={'stop': 'a=b'}", "wording=3")
    assert found == Policy((bound,), 0.25, 0.0, allow)
    assert isinstance(found.unanswered, float)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", None), ("min_documents_share: 1\n", 1.0), ("min_documents_share: 0.5\n", 0.5),
    ],
)  # fmt: skip
def test_which_share_of_the_items_is_asked_for(text, share, read):
    found = read(text + BOUND).share
    assert found == share
    assert found is None or isinstance(found, float)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{BOUND}bound: 1\nlimits: 2\n", " line 1: unknown key 'bound'. Did you mean bounds? Known: description, "
         "min_documents_share, max_unanswered_share, allow, bounds"),
        ("bounds:\n- {task: a, score: b, max: 1}\n- {task: a, score: b, most: 1}\n",
         " line 3 (bounds/1): unknown key 'most'. Known: task, score, min, max, max_distance_from_neutral, on, why"),
        ("allow: [limit]\n", " line 1: 'bounds' is a required property"),
        ("bounds:\n- {task: a, score: b}\n", " line 2 (bounds/0): a bound needs min, max or max_distance_from_neutral"),
        (f"allow: 3\n{BOUND}", " line 1 (allow): 3"),
        (f"{BOUND}allow:\n- limit\n- ''\n", " line 4 (allow/1): ''"),
        ("bounds:\n- task: a\n  score: b\n  max: 1\n- task: ''\n  score: b\n  max: 1\n",
         " line 5 (bounds/1/task): ''"),
        (f"allow:\n- limit\n- limits\n{BOUND}", " line 3: unknown name 'limits'. Did you mean limit? Known: "),
        (f"allow:\n- limit\n- limit=3\n- words2=a=b\n{BOUND}", " line 4: unknown name 'words2'. Did you mean"),
        ("bounds:\n- {task: a, score: b, max: 1}\n- {task: a, score: b, min: 0.5, max: -1}\n",
         " line 3: min 0.5 is above max -1"),
        ("", ": the file is empty: a policy needs bounds ('lm-eval-bias check --example' prints one)"),
    ],
)  # fmt: skip
def test_what_it_cannot_mean_is_told_with_its_line(text, said, refusal):
    assert refusal(text).startswith(said)


def test_a_long_value_is_cut(refusal):
    said = refusal(f"max_unanswered_share: {'x' * 500}\n{BOUND}")
    start = " line 1 (max_unanswered_share): '"
    assert said == f"{start}{'x' * 199}"


def test_a_misspelt_key_is_told_before_what_is_missing_because_of_it(refusal):
    assert "unknown key 'bonds'" in refusal("bonds: [{task: a, score: b, max: 1}]\n")
    assert "unknown key 'taks'" in refusal("bounds:\n- {taks: a, score: b, max: 1}\n")
    # of several, the first by where it stands
    assert "(bounds/0)" in refusal("bounds:\n- {task: a, score: b}\n- {task: a, skore: b, max: 1}\n")


def test_a_departure_that_no_run_can_have_is_told_with_all_that_it_can(refusal):
    known = ", ".join([*settings.option_names(), *remarks.UNMAKING])
    assert refusal(f"allow: [qqq]\n{BOUND}") == f" line 1: unknown name 'qqq'. Known: {known}"


def test_a_bound_may_be_given_twice_in_two_bounds(read):
    assert [bound.high for bound in read("bounds:\n" + "- {task: a, score: b, max: 1}\n" * 2).bounds] == [1.0, 1.0]


def test_files_that_cannot_be_read_are_told_with_the_reason(refusal, tmp_path):
    with pytest.raises(BiasError) as error:
        policy_file.read(tmp_path / "gone.yaml")
    assert str(error.value) == f"{tmp_path / 'gone.yaml'} cannot be read: No such file or directory"
    path = tmp_path / "latin.yaml"
    path.write_bytes("bounds: [] # für".encode("latin-1"))
    with pytest.raises(BiasError) as error:
        policy_file.read(path)
    assert str(error.value) == f"{path}: byte 14 is not UTF-8"
    assert refusal("bounds: [\n").startswith(" line 2: not valid YAML")


def test_a_file_larger_than_a_policy_can_be_is_refused(tmp_path):
    path = tmp_path / "large.yaml"
    path.write_text(BOUND + "#" * (1 << 20))
    with pytest.raises(BiasError):
        policy_file.read(path)


def test_the_example_is_read(read):
    assert read(policy_file.example()).bounds
