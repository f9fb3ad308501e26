"""What a gate makes of bounds and runs: names, ends, what is asked beside bounds, and what is refused."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.verdicts import Attenuates, Diagnostic
from lm_eval_bias.data import sources
from lm_eval_bias.gate import verdict
from lm_eval_bias.gate.policy_file import Bound, Policy
from lm_eval_bias.runs import diagnostics, harness_results
from tests.support.toy import run_of

SS = Value("ss", 56.0, 1.0, (54.0, 58.0), low=0.0, high=100.0, neutral=50.0)
ACC = Value("acc_amb", 0.5, 0.05, (0.4, 0.6), low=0.0, high=1.0, neutral=1.0)
UNANSWERED = Value("unanswered", 0.05, low=0.0, high=1.0, neutral=0.0)
GENERATED, ASKED, SECOND = (
    "gg_bbq_group_terms_gen",
    "occugender_explicit",
    "occugender_implicit",
)
PART = {"inputs": {"documents": "0" * 64, "scored": "1" * 64}}


def bare(name, *scores, benchmark="occugender"):
    return TaskRun(
        name,
        registry.get(benchmark),
        "en",
        "1",
        9,
        9,
        {},
        {score: Value(score, 0.5) for score in scores},
    )


def task(name=ASKED, scores=(ACC,), metadata=None, **changes):
    entry = catalog.entries()[name]
    known = {
        "inputs": {"documents": "0" * 64, "files": sources.hashes(entry.data)},
        **(metadata or {}),
    }
    made = TaskRun(
        name, entry.definition, "de", str(entry.metadata["version"]), entry.items, entry.items, known,
        {score.name: score for score in scores},
    )  # fmt: skip
    return replace(made, **changes)


def run(*tasks, **provenance):
    facts = {
        "model_args": {"pretrained": "model"},
        "weights": {"pretrained commit": "1" * 40},
        **provenance,
    }
    return replace(run_of("model", *tasks, **facts), path=Path("run.json"))


BOTH = run(
    bare(ASKED, "stereotype_gap", "male"),
    bare(SECOND, "stereotype_gap"),
    bare("stereoset_en", "ss", "lms", benchmark="stereoset"),
)


@pytest.mark.parametrize(("name", "score", "tasks", "missing"), [
    (SECOND, "stereotype_gap", [SECOND], []),
    ("occugender_*", "male", [ASKED, SECOND], []),  # a pattern means any of its tasks
    ("occugender_*", "diverse", [ASKED, SECOND], [f"{ASKED}, {SECOND}"]),
    ("OCCUGENDER_explicit", "male", [], ["OCCUGENDER_explicit"]),  # names have a case
    ("occugender", "stereotype_gap", [ASKED, SECOND], []),
    ("occugender", "male", [ASKED, SECOND], [SECOND]),  # a group means each of its tasks
    ("stereoset_en", "SS", ["stereoset_en"], ["stereoset_en"]),
    ("regard_*", "gap", [], ["regard_*"]),
])  # fmt: skip
def test_tasks_that_a_bound_is_about_and_what_was_not_measured(
    name, score, tasks, missing
):
    bound = Bound(name, score)
    assert [one.task for one in verdict.tasks(BOTH, bound)] == tasks
    assert verdict.unmeasured(BOTH, bound) == missing


def judged(value=SS, **options):
    return verdict.judge(Bound(ASKED, "*", place="p", **options), ASKED, value)


@pytest.mark.parametrize(("options", "excess"), [
    # the interval is 54...58; what is negative lies below
    ({"high": 57.0}, 1.0),
    ({"low": 54.0}, 0),
    ({"low": 54.5}, -0.5),
    ({"low": 56.0, "high": 56.0}, -2.0),  # as far out on both sides
    ({"distance": 8.0}, 0),
    ({"distance": 6.0}, 2.0),
    ({"low": 57.0, "on": "point"}, -1.0),
    ({"distance": 6.0, "on": "point"}, 0),
    # evidence: violated only where the whole interval lies outside
    ({"high": 54.0, "on": "evidence"}, 0),
    ({"high": 53.0, "on": "evidence"}, 1.0),
    ({"distance": 3.0, "on": "evidence"}, 1.0),
])  # fmt: skip
def test_bounds(options, excess):
    found = judged(**options)
    assert (found.task, found.score, found.value, found.interval) == (
        ASKED,
        "ss",
        56.0,
        (54.0, 58.0),
    )
    assert found.passes is (excess == 0)
    assert found.side == ("" if not excess else "above" if excess > 0 else "below")
    assert (
        math.isnan(found.excess)
        if not excess
        else found.excess == pytest.approx(abs(excess), abs=1e-12)
    )


@pytest.mark.parametrize("on", ["interval", "point", "evidence"])
def test_what_could_not_be_computed_is_a_violation_with_its_reason(on):
    none = Value("coverage", math.nan, note="no prompts", low=0.0, high=1.0)
    found = judged(none, high=0.9, on=on)
    assert (found.passes, found.problem) == (False, "no value (no prompts)")
    noted = judged(replace(SS, interval=None, note="incomplete"), high=90.0, on=on)
    assert (noted.passes, noted.problem) == (
        (True, "") if on == "point" else (False, "no interval (incomplete)")
    )
    for ends in ((math.nan, math.nan), (54.0, math.nan)):
        assert judged(replace(SS, interval=ends), high=90.0, on=on).passes == (
            on == "point"
        )


def test_an_error_of_0_is_no_certainty():
    # as an older version wrote it: nothing varied, so the score passed every bound that its value met
    for ends in (None, [50.0, 50.0]):
        value = harness_results.value_of(
            "ss", 50.0, 0.0, {"range": [0, 100], "neutral": 50, "interval": ends}
        )
        for on in ("interval", "evidence"):
            assert judged(value, distance=1.0, on=on).problem.startswith("no interval")
    wide = harness_results.value_of(
        "ss", 0.0, 0.0, {"range": [0, 100], "interval": [0.0, 1.5]}
    )
    assert (wide.interval, wide.note, math.isnan(wide.stderr)) == ((0.0, 1.5), "", True)


def test_bounds_that_could_never_be_violated_or_never_be_met_are_refused():
    never_violated = {"high": 100.0}, {"distance": 50.0}, {"low": -0.5, "high": 120.0}
    for options in (*never_violated, {"low": 101.0}, {"distance": 5.0, "low": 60.0}):
        with pytest.raises(BiasError, match="^p: ss goes from 0 to 100"):
            judged(**options)
    for value, options in (
        (100.0, {"low": 100.0}),
        (0.0, {"high": 0.0}),
        (50.0, {"distance": 0.0}),
    ):
        assert judged(
            replace(SS, value=value, interval=(value, value)), **options
        ).passes
    with pytest.raises(BiasError, match="p: ss has no neutral value"):
        judged(replace(SS, neutral=None), distance=0.1)


def checked(*tasks, provenance=None, bounds=None, **options):
    about = bounds or [Bound(one.task, "acc_amb", low=0.1, high=0.9) for one in tasks]
    return verdict.check(
        run(*tasks, **(provenance or {})), Policy(tuple(about), **options)
    )


def beside_bounds(*tasks, **options):
    return [
        found for found in checked(*tasks, **options) if isinstance(found.required, str)
    ]


@pytest.mark.parametrize(("share", "options", "passes"), [
    (0.1, {}, True),
    (0.101, {}, False),
    (0.11, {"unanswered": 0.2}, True),
    (0.5, {"allow": ("unanswered",)}, True),
    (math.nan, {}, False),
    (None, {}, False),
])  # fmt: skip
def test_enough_documents_have_to_be_answered(share, options, passes):
    scores = () if share is None else (replace(UNANSWERED, value=share),)
    (found,) = beside_bounds(task(GENERATED, (ACC, *scores)), **options)
    assert (found.task, found.score, found.passes) == (GENERATED, "unanswered", passes)
    assert found.value == pytest.approx(
        math.nan if share is None else share, nan_ok=True
    )
    told = f"{100 * share:.3g}%" if share is not None and share >= 0 else "doesn't say"
    enough = share is not None and share <= options.get("unanswered", 0.1)
    assert found.problem == "" if enough else told in found.problem
    assert f"{100 * options.get('unanswered', 0.1):g}%" in found.required
    assert (
        beside_bounds(task()) == []
    )  # where a model always answers there is nothing to ask


def test_a_part_of_the_items_may_be_run_where_the_policy_says_so():
    part = task(metadata={"words": 3, **PART}, documents=500)
    limited = {"provenance": {"limit": 500}}
    assert [found.score for found in beside_bounds(part, **limited)] == [
        "words",
        "limit",
    ]
    assert beside_bounds(task(metadata=PART, documents=500), allow=("trial_run",)) == []
    # tasks that no bound names may be as they like
    whole, bounds = task(), [Bound(ASKED, "acc_amb", low=0.1)]
    assert all(
        one.passes for one in checked(whole, task(SECOND, documents=1), bounds=bounds)
    )


def bias(*found, ends=(-0.05, 0.05)):
    return Value(
        "gap", 0.0, interval=ends, low=-1.0, high=1.0, neutral=0.0, diagnostics=found
    )


@pytest.mark.parametrize(
    ("share", "ends", "passes"),
    [
        (0.0, (-0.05, 0.05), True),
        # the other half of the answers would show twice as much
        (0.5, (-0.05, 0.05), True),
        (0.5, (-0.05, 0.15), False),
        (1.0, (-0.05, 0.05), False),
        (1.0, (0.02, 0.05), False),
    ],
)
def test_answers_that_show_no_bias_do_not_count_for_a_bound(share, ends, passes):
    found = Diagnostic("position_bias", "A in 60%", effects={"gap": Attenuates(share)})
    bound = Bound(ASKED, "gap", distance=0.2)
    finding = verdict.judge(bound, ASKED, bias(found, ends=ends))
    assert finding.passes == passes
    if share == 1:
        assert finding.problem == "can't be shown: A in 60%"
    asked = run(task(scores=[bias(found, ends=(-0.05, 0.05))]))
    (allowed,) = diagnostics.without(asked, ["position_bias"]).tasks.values()
    assert verdict.judge(bound, ASKED, allowed.scores["gap"]).passes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "no task has another version: scores should be the same"),
        ({"version": "0.9"}, f"other versions of {ASKED}: the changelog says"),
    ],
)
def test_a_run_of_another_release_is_named_with_what_has_changed_since(changes, said):
    old = run(task(**changes), **{"lm-eval-bias": "0.0.1"})
    first, *_ = verdict.recomputed(old, Policy(()))
    assert (first.score, first.passes) == ("version", True)
    assert "made by lm-eval-bias 0.0.1" in first.problem
    assert said in first.problem
