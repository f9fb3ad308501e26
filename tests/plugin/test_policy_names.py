"""Which tasks and scores the names in a bound mean, and what is said of those that mean nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_bias.core import catalog
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.gate import verdict
from lm_eval_bias.gate.policy_file import Bound, Policy


def task(name, *scores, benchmark="occugender"):
    return TaskRun(name, benchmark, "en", "1", 9, 9, {}, {score: Value(score, 0.5) for score in scores})


def run(*tasks):
    return Run("model", Path("run.json"), {}, "", {one.task: one for one in tasks})


BOTH = run(
    task("occugender_explicit", "stereotype_gap", "male"), task("occugender_implicit (light)", "stereotype_gap"),
    task("stereoset_en", "ss", "lms", benchmark="stereoset"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("occugender_explicit", ["occugender_explicit"]),
        ("occugender_implicit", ["occugender_implicit (light)"]),  # a remark makes no other task
        ("occugender_implicit (light)", ["occugender_implicit (light)"]),
        ("occugender_*", ["occugender_explicit", "occugender_implicit (light)"]),
        ("*(light)", ["occugender_implicit (light)"]),
        ("*_?n", ["stereoset_en"]),
        ("OCCUGENDER_explicit", []),  # names have a case
        ("occugender", ["occugender_explicit", "occugender_implicit (light)"]),  # a group
        ("explicit", []),
    ],
)
def test_tasks_that_a_bound_is_about(name, tasks):
    assert [one.task for one in verdict.tasks(BOTH, Bound(name, "x"))] == tasks


@pytest.mark.parametrize(
    ("name", "scores"),
    [("ss", ["ss"]), ("*s", ["ss", "lms"]), ("l?s", ["lms"]), ("SS", []), ("s", [])],
)
def test_scores_that_a_bound_is_about(name, scores):
    assert [s.name for s in verdict.scores(BOTH.tasks["stereoset_en"], Bound("t", name))] == scores


def test_a_group_means_each_of_its_tasks_and_a_pattern_any():
    members = catalog.entries()["stereoset"].members
    assert len(members) > 1
    assert verdict.patterns(Bound("stereoset", "ss")) == members
    for name in ("stereoset_en", "stereoset_*", "nothing"):
        assert verdict.patterns(Bound(name, "ss")) == (name,)
    missing = [name for name in members if name != "stereoset_en"]
    assert verdict.unmeasured(BOTH, Bound("stereoset", "ss")) == missing


@pytest.mark.parametrize(
    ("name", "score", "missing"),
    [
        ("occugender", "stereotype_gap", []),
        ("occugender", "male", ["occugender_implicit (light)"]),
        ("occugender_*", "male", []),  # one of them has it
        ("occugender_*", "diverse", ["occugender_explicit, occugender_implicit (light)"]),
        ("regard_*", "gap", ["regard_*"]),
    ],
)
def test_what_was_not_measured(name, score, missing):
    assert verdict.unmeasured(BOTH, Bound(name, score)) == missing


def refused(*bounds, runs=()):
    policy = Policy(tuple(replace(bound, place=f"line {n}") for n, bound in enumerate(bounds, 1)))
    with pytest.raises(BiasError) as error:
        verdict.refuse_unknown(policy, runs)
    return str(error.value)


def accepted(*bounds, runs=()):
    verdict.refuse_unknown(Policy(bounds), runs)
    return True


def test_a_name_that_means_nothing_is_refused_with_its_place_and_what_it_may_mean():
    good = Bound("stereoset_en", "ss")
    assert refused(good, Bound("stereoset_eb", "ss")).startswith(
        "line 2: there is no task 'stereoset_eb'. Did you mean stereoset_e"
    )
    assert refused(Bound("qqq", "ss")) == "line 1: there is no task 'qqq'. ('lm-eval-bias ls')"
    assert refused(good, Bound("stereoset_en", "sss")).startswith(
        "line 2: stereoset_en has no score 'sss'. Did you mean ss"
    )
    assert refused(Bound("stereoset_en", "qqq")) == "line 1: stereoset_en has no score 'qqq'."
    assert refused(Bound("occugender", "ss"))  # another benchmark's
    assert accepted(good, Bound("occugender", "stereotype_gap"), Bound("stereoset_*", "ss"))


def test_what_a_run_alone_has_exists_as_well():
    own = task("my_set", "my_score", benchmark="stereoset")
    runs = [BOTH, run(own)]
    for name in ("my_set", "my_*"):
        for score in ("my_score", "my_*", "ss"):
            assert accepted(Bound(name, score), runs=runs)
    assert refused(Bound("my_set", "my_score"), runs=[BOTH]).startswith("line 1: there is no task 'my_set'")
    assert refused(Bound("my_sett", "ss"), runs=runs) == (
        "line 1: there is no task 'my_sett'. Did you mean my_set? ('lm-eval-bias ls')"
    )
    assert refused(Bound("my_set", "my_scores"), runs=runs) == (
        "line 1: my_set has no score 'my_scores'. Did you mean my_score?"
    )
    # a score of one task is none of another's
    assert refused(Bound("stereoset_en", "my_score"), runs=runs).startswith("line 1: stereoset_en has no score")


def test_a_pattern_over_two_benchmarks_means_the_scores_of_both():
    for score in ("ss", "stereotype_gap"):
        assert accepted(Bound("*", score))
    assert refused(Bound("*", "qqq")).startswith("line 1: * has no score 'qqq'.")


@pytest.mark.parametrize(
    ("score", "known"),
    [("gender/ss", True), ("ss/gender", True), ("gender/x*", False), ("gender", False), ("gender/sss", False)],
)
def test_breakdowns_are_named_by_what_the_data_hold(score, known):
    bound = Bound("stereoset_en", score)
    assert accepted(bound) if known else "has no score" in refused(bound)


def test_a_breakdown_of_another_group_than_those_that_were_run_may_exist():
    runs = [run(task("my_set", "all/chi2", benchmark="stereoset"))]
    assert accepted(Bound("my_set", "gender/chi2"), runs=runs)
    assert refused(Bound("my_set", "gender/chi3"), runs=runs).startswith("line 1: my_set has no score 'gender/chi3'")
