"""What a gate asks of a run beside its bounds, and all that a finding tells: on runs that no model had to make."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_bias.core import catalog
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.data import sources
from lm_eval_bias.gate import verdict
from lm_eval_bias.gate.policy_file import Bound, Policy
from lm_eval_bias.gate.verdict import GateFinding

ACC = Value("acc_amb", 0.5, 0.05, (0.4, 0.6), low=0.0, high=1.0, neutral=1.0)
UNANSWERED = Value("unanswered", 0.05, low=0.0, high=1.0, neutral=0.0)
GENERATED, ASKED, SECOND = "gg_bbq_group_terms_gen", "occugender_explicit", "occugender_implicit"


def task(name=ASKED, scores=(ACC,), metadata=None, **changes):
    entry = catalog.entries()[name]
    known = {"inputs": {"documents": "0" * 64, "files": sources.hashes(entry.data)}, **(metadata or {})}
    made = TaskRun(
        name, entry.benchmark, "de", str(entry.metadata["version"]), entry.items, entry.items, known,
        {score.name: score for score in scores},
    )  # fmt: skip
    return replace(made, **changes)


def generated(*scores, **changes):
    return task(GENERATED, (ACC, *scores), **changes)


def checked(*tasks, provenance=None, bounds=None, **options):
    run = Run("model", Path("run.json"), provenance or {}, "", {one.task: one for one in tasks})
    about = bounds or [Bound(one.base, "acc_amb", low=0.1, high=0.9) for one in tasks]
    return verdict.check(run, Policy(tuple(about), **options))


def beside_bounds(*tasks, **options):
    return [found for found in checked(*tasks, **options) if isinstance(found.required, str)]


@pytest.mark.parametrize(
    ("share", "largest", "holds"), [(0.05, 0.1, True), (0.1, 0.1, True), (0.11, 0.1, False), (0.11, 0.2, True)]
)
def test_enough_documents_have_to_be_answered(share, largest, holds):
    (found,) = beside_bounds(generated(replace(UNANSWERED, value=share)), unanswered=largest)
    assert found == GateFinding(
        GENERATED, "unanswered", holds, f"at most {100 * largest:g}% of the documents unanswered",
        "" if holds else f"{100 * share:g}% of them weren't answered", share,
    )  # fmt: skip
    assert found.holds is holds


@pytest.mark.parametrize("scores", [(), (replace(UNANSWERED, value=math.nan),)])
def test_a_run_that_does_not_tell_what_was_answered_is_violated(scores):
    (found,) = beside_bounds(generated(*scores))
    assert (found.task, found.score, found.problem) == (GENERATED, "unanswered", "the run doesn't say")
    assert found.holds is False
    assert math.isnan(found.value)


def test_the_default_of_a_policy_is_a_tenth():
    assert beside_bounds(generated(replace(UNANSWERED, value=0.1)))[0].holds
    assert not beside_bounds(generated(replace(UNANSWERED, value=0.101)))[0].holds
    assert beside_bounds(task()) == []  # where a model always answers there is nothing to ask


def test_a_departure_is_violated_or_allowed_by_its_name_or_value():
    other = task(metadata={"words": 3})
    (found,) = beside_bounds(other)
    assert found == GateFinding(
        ASKED,
        "words",
        False,
        "the unchanged task",
        'it is 3; to allow it, add to the policy: allow: ["words=3"]',
        found.value,
    )
    assert found.holds is False
    assert math.isnan(found.value)
    for allowed in ("words", "words=3"):
        (found,) = beside_bounds(other, allow=("limit", allowed))
        assert (found.holds, found.required, found.problem) == (True, "allowed: words=3", "")
    for others in ((), ("words=4",), ("limit", "wording")):
        assert not beside_bounds(other, allow=others)[0].holds


def test_a_least_share_settles_which_part_may_be_run_and_nothing_else():
    inputs = {"documents": "0" * 64, "scored": "1" * 64}
    part = task(metadata={"words": 3, "inputs": inputs}, documents=500)
    limited = {"provenance": {"limit": 500}}
    assert [found.score for found in beside_bounds(part, **limited)] == ["words", "limit"]
    found = beside_bounds(part, share=0.5, **limited)
    assert [(one.score, one.holds) for one in found] == [("words", False), ("items", True)]
    assert found[1] == GateFinding(ASKED, "items", True, "at least 50% of the items", "", found[1].value)
    (_, missed) = beside_bounds(part, share=0.6, **limited)
    assert missed.holds is False
    assert missed.problem == "500 of 1,000 items, 50% of what a full run asks"
    assert missed.required == "at least 60% of the items"


def test_after_the_part_other_departures_are_told_as_well(monkeypatch):
    parts = [verdict.ChangedOption(name, "1") for name in ("limit", "samples", "suite", "words")]
    monkeypatch.setattr(verdict.settings, "changed_options", lambda run, task: iter(parts))
    assert [found.score for found in beside_bounds(task(), share=0.1)] == ["words", "items"]
    assert [found.score for found in beside_bounds(task())] == ["limit", "samples", "suite", "words"]


def test_what_leaves_no_verdict_is_violated_or_allowed_by_name():
    low = Value("coverage", 0.04, low=0.0, high=1.0)
    guessing, little = {"model": "bias-chance"}, task(scores=(ACC, low))
    (chance, coverage) = beside_bounds(little, provenance=guessing)
    assert (chance.score, chance.holds, chance.required) == ("chance_level", False, "better than by guessing")
    said = 'chance level: bias-chance answers at random; to allow it, add to the policy: allow: ["chance_level"]'
    assert chance.problem == said
    assert (coverage.score, coverage.holds) == ("low_coverage", False)
    allowed = beside_bounds(little, provenance=guessing, allow=("chance_level", "low_coverage"))
    assert [(one.holds, one.problem) for one in allowed] == [(True, "")] * 2
    (silent,) = beside_bounds(generated(replace(UNANSWERED, value=0.5)), allow=("unanswered",))
    assert (silent.holds, silent.problem) == (True, "50% of them weren't answered")
    part = task(metadata={"inputs": {"documents": "0" * 64, "scored": "1" * 64}}, documents=500)
    assert beside_bounds(part, allow=("trial_run",)) == []


def test_another_code_of_the_benchmark_is_told_and_no_violation():
    inputs = task().metadata["inputs"]
    (told,) = beside_bounds(task(metadata={"inputs": {**inputs, "package_code": "1" * 64}}))
    assert (told.score, told.holds, told.required) == ("package_code", True, "for information")
    assert told.problem.startswith(f"made by other code ({'1' * 12}, here ")
    here = verdict.run_inputs.code_hash(verdict.registry.get("occugender"))
    assert beside_bounds(task(metadata={"inputs": {**inputs, "package_code": here}})) == []


def test_a_share_of_items_whose_number_is_not_known_is_violated():
    (missed,) = beside_bounds(task(items=0), share=0.1)
    assert (missed.holds, missed.problem) == (False, "its number of items is unknown")


def test_every_task_with_a_bound_is_looked_at_once():
    first, second = task(metadata={"words": 3}), task(SECOND, metadata={"words": 4})
    for options, per_task in (({}, ["words"]), ({"share": 1.0}, ["words", "items"])):
        found = beside_bounds(first, second, **options)
        assert [(one.task, one.score) for one in found] == [(name, s) for name in (ASKED, SECOND) for s in per_task]
    twice = [Bound(ASKED, "acc_amb", low=0.1), Bound("occugender_e*", "acc*", high=0.9)]
    assert len(beside_bounds(first, bounds=twice)) == 1
    assert beside_bounds(first, second, bounds=[Bound(SECOND, "acc_amb", low=0.1)])[0].task == SECOND


def test_what_was_not_measured_is_a_violation_with_what_the_bound_is_for():
    noted = task(scores=(replace(ACC, note="few items"),))
    bounds = [Bound(ASKED, "acc_amb", low=0.1, why="a promise"), Bound(ASKED, "gone", low=0.1, why="another")]
    kept, missing = checked(noted, bounds=bounds)
    assert (kept.holds, kept.why, kept.task, kept.score) == (True, "a promise", ASKED, "acc_amb")
    assert missing == GateFinding(ASKED, "gone", False, f"{ASKED}: gone", "not measured", missing.value, why="another")
    assert missing.holds is False


def judged(**options):
    return verdict.judge(Bound(ASKED, "acc*", place="p", **options), ASKED, ACC)


def test_a_finding_holds_the_ends_that_its_bound_allows():
    found = judged(distance=0.3, high=0.95)
    assert (found.task, found.score, found.value, found.interval) == (ASKED, "acc_amb", 0.5, (0.4, 0.6))
    assert (found.required.low, found.required.high) == (0.7, 0.95)
    middle = verdict.judge(Bound(ASKED, "acc*", distance=0.3), ASKED, replace(ACC, neutral=0.5))
    assert (middle.required.low, middle.required.high) == (0.2, 0.8)
    assert (judged(low=0.2).required.low, judged(low=0.2).required.high) == (0.2, math.inf)


@pytest.mark.parametrize(
    ("limit", "side", "excess"),
    [
        ({"low": 0.45}, "below", 0.05),
        ({"high": 0.45}, "above", 0.15),
        ({"low": 0.45, "high": 0.45}, "above", 0.15),
        ({"low": 0.55, "high": 0.55}, "below", 0.15),
        ({"low": 0.5, "high": 0.5}, "below", 0.1),  # as far out on both sides
    ],
)
def test_on_which_side_and_by_how_much_a_bound_is_violated(limit, side, excess):
    found = judged(**limit)
    assert (found.side, found.excess) == (side, pytest.approx(excess, abs=1e-12))


def test_a_bound_at_the_end_of_a_scores_range_can_be_met():
    sure = replace(ACC, value=1.0, interval=(1.0, 1.0))
    assert verdict.judge(Bound("t", "s", low=1.0), "t", sure).holds  # an accuracy of 1
    none = replace(ACC, value=0.0, interval=(0.0, 0.0))
    assert verdict.judge(Bound("t", "s", high=0.0), "t", none).holds
    # exactly the neutral value
    even = replace(ACC, value=0.5, interval=(0.5, 0.5), neutral=0.5)
    assert verdict.judge(Bound("t", "s", distance=0.0), "t", even).holds


def test_a_refused_bound_is_told_with_its_place_and_the_scores_range():
    with pytest.raises(verdict.BiasError) as error:
        judged(low=1.01)
    assert str(error.value) == "p: acc_amb goes from 0 to 1: this bound could never be met"
    with pytest.raises(verdict.BiasError) as error:
        judged(high=1.0)
    assert str(error.value) == "p: acc_amb goes from 0 to 1: this bound could never be violated"


def test_the_share_of_a_task_that_is_not_in_the_catalog():
    own = task(documents=25, items=100, task="own_set", metadata={"repeats": 1})
    assert own.share == 0.25
    assert replace(own, documents=120).share == 1.0  # more than all is all


def test_each_task_is_held_against_its_sample_log_and_a_few_differences_are_told(monkeypatch):
    lines = {ASKED: [], SECOND: ["a", "b", "c"], GENERATED: ["a", "b", "c", "d", "e"]}
    run = Run("model", Path("run.json"), {}, "", {name: task(name) for name in lines})
    monkeypatch.setattr(verdict.rescoring, "recompute", lambda one: one.task)
    monkeypatch.setattr(verdict.soundness, "differences", lambda scores, name: lines[name])
    required = "the same scores as its sample log"
    assert verdict.recomputed(run) == [
        GateFinding(ASKED, "samples", True, required, ""),
        GateFinding(SECOND, "samples", False, required, "a; b; c"),
        GateFinding(GENERATED, "samples", False, required, "a; b; c; and 2 more"),
    ]
