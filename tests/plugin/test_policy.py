"""Policies: what holds, what is violated and by how much, and what is refused with its place."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.numbers import significant
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.data import sources
from lm_eval_bias.gate import policy_file, verdict
from lm_eval_bias.gate.policy_file import Bound, Policy
from lm_eval_bias.report import policy_outputs
from lm_eval_bias.runs import harness_results
from lm_eval_bias.runs import run_file as record

SS = Value("ss", 56.0, 1.0, (54.0, 58.0), low=0.0, high=100.0, neutral=50.0)
GAP = Value("stereotype_gap", 0.1, 0.05, (0.0, 0.2), low=-1.0, high=1.0, neutral=0.0)
COVERAGE = Value("coverage", math.nan, note="no prompts", low=0.0, high=1.0)


INPUTS = {"inputs": {"documents": "0" * 64, "files": sources.hashes("stereoset_en")}}


def task(name="stereoset_en", benchmark="stereoset", scores=(SS,), **changes):
    made = TaskRun(name, benchmark, "en", "1", 4229, 4229, INPUTS, {value.name: value for value in scores})
    return replace(made, **changes)


def run(*tasks, **provenance):
    return Run("model", Path("run.json"), provenance, "command", {one.task: one for one in tasks or (task(),)})


def one(bound, value=SS):
    return verdict.judge(replace(bound, place="p"), "t", value)


def bound(**options):
    return Bound("stereoset_en", "ss", **options)


@pytest.mark.parametrize("on", ["interval", "evidence"])
@pytest.mark.parametrize("ends", [None, [50.0, 50.0]])
def test_an_error_of_0_is_no_certainty(on, ends):
    # as an older version wrote it: nothing varied, so the score passed every bound that its value met
    meaning = {"range": [0, 100], "neutral": 50, "interval": ends}
    finding = one(bound(distance=1.0, on=on), harness_results.value_of("ss", 50.0, 0.0, meaning))
    assert not finding.holds
    assert "no interval (nothing varied between the groups of items: no standard error)" in policy_outputs.says(finding)


def test_an_error_of_0_beside_an_interval_leaves_the_interval():
    value = harness_results.value_of("ss", 0.0, 0.0, {"range": [0, 100], "interval": [0.0, 1.5]})
    assert (value.interval, value.note) == ((0.0, 1.5), "")
    assert math.isnan(value.stderr)
    assert not one(bound(high=1.0), value).holds
    assert one(bound(high=2.0), value).holds


@pytest.mark.parametrize(
    ("options", "holds", "excess"),
    [
        # the interval is 54...58
        ({"high": 58.0}, True, None),
        ({"high": 57.0}, False, 1.0),
        ({"low": 54.0}, True, None),
        ({"low": 54.5}, False, 0.5),
        ({"low": 50.0, "high": 57.9}, False, 0.1),
        ({"distance": 8.0}, True, None),
        ({"distance": 6.0}, False, 2.0),
        ({"distance": 9.0, "high": 57.0}, False, 1.0),
        ({"high": 56.0, "on": "point"}, True, None),
        ({"high": 55.0, "on": "point"}, False, 1.0),
        ({"low": 57.0, "on": "point"}, False, 1.0),
        ({"distance": 6.0, "on": "point"}, True, None),
        # evidence: violated only where the whole interval lies outside
        ({"high": 54.0, "on": "evidence"}, True, None),
        ({"high": 53.0, "on": "evidence"}, False, 1.0),
        ({"low": 58.0, "on": "evidence"}, True, None),
        ({"low": 60.0, "on": "evidence"}, False, 2.0),
        ({"distance": 3.0, "on": "evidence"}, False, 1.0),
        ({"distance": 4.0, "on": "evidence"}, True, None),
    ],
)
def test_bounds(options, holds, excess):
    found = one(bound(**options))
    assert found.holds == holds
    assert (policy_outputs.says(found) == "") == holds
    if excess is not None:
        assert found.excess == pytest.approx(excess, abs=1e-12)
        assert significant(excess) in policy_outputs.says(found)


@pytest.mark.parametrize("on", policy_file.ON)
def test_what_could_not_be_computed_is_a_violation_with_its_reason(on):
    found = one(Bound("t", "coverage", high=0.9, on=on), COVERAGE)
    assert not found.holds
    assert "no value (no prompts)" in policy_outputs.says(found)
    bare = replace(SS, interval=None, note="no standard error: the product is incomplete")
    found = one(bound(high=90.0, on=on), bare)
    assert found.holds == (on == "point")
    assert on == "point" or "no interval (no standard error: the product is incomplete)" in policy_outputs.says(found)
    broken = replace(SS, interval=(math.nan, math.nan))
    assert one(bound(high=90.0, on=on), broken).holds == (on == "point")
    half = replace(SS, interval=(54.0, math.nan))
    assert one(bound(high=90.0, on=on), half).holds == (on == "point")


@pytest.mark.parametrize(
    ("options", "value", "says"),
    [
        ({"high": 100.0}, SS, "could never be violated"),
        ({"distance": 50.0}, SS, "could never be violated"),
        ({"low": -0.5, "high": 120.0}, SS, "could never be violated"),
        ({"low": 101.0}, SS, "could never be met"),
        ({"distance": 5.0, "low": 60.0}, SS, "could never be met"),
        ({"distance": 0.1}, replace(GAP, neutral=None), "has no neutral value"),
    ],
)
def test_bounds_that_cannot_be_meant_so_are_refused(options, value, says):
    with pytest.raises(BiasError, match=says):
        one(bound(**options), value)


def policy(*bounds, **options):
    return Policy(tuple(bounds), **options)


def violated(given, *bounds, **options):
    return [
        (f.task, f.score, policy_outputs.says(f))
        for f in verdict.check(given, policy(*bounds, **options))
        if not f.holds
    ]


def test_a_task_with_a_remark_is_the_task():
    remarked = run(task("stereoset_en (bfloat16)"))
    assert violated(remarked, bound(high=90.0)) == []
    assert violated(remarked, bound(high=57.0))[0][0] == "stereoset_en (bfloat16)"


def test_share_of_the_items():
    half = task(documents=2114, metadata={"inputs": {**INPUTS["inputs"], "scored": "1" * 64}})
    assert half.share == pytest.approx(2114 / 4229)
    limit = bound(high=90.0)
    assert violated(run(half), limit, share=0.4) == []
    assert violated(run(half), limit, share=0.5)[0][:2] == ("stereoset_en", "items")
    assert "2,114 of 4,229 items, 50%" in violated(run(half), limit, share=1.0)[0][2]
    assert "is unknown" in violated(run(task(items=0)), limit, share=0.1)[0][2]
    # tasks that no bound names may be as they like
    assert violated(run(task(), task("occugender_explicit", "occugender", (GAP,), documents=1)), limit, share=1.0) == []


def test_fewer_samples_of_a_prompt_are_a_smaller_share():
    made = task("regard_en", "regard", documents=20, items=20, metadata={"repeats": 25})
    texts = replace(made, usual_repeats=100)
    assert texts.share == 0.25
    assert replace(texts, metadata={}).share == 1.0
    assert replace(texts, metadata={"repeats": 200}).share == 1.0


def written(tmp_path, text):
    path = tmp_path / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_policy_file(tmp_path):
    text = (
        "min_documents_share: 0.5\nbounds:\n"
        "  - task: stereoset_en\n    score: ss\n    max: 010\n    on: evidence\n    why: because\n"
        "  - {task: a, score: b, min: -1e-3, max_distance_from_neutral: 2}\n"
    )
    found = policy_file.read(written(tmp_path, text))
    assert found.share == 0.5
    first, second = found.bounds
    # YAML 1.1 would take "on" for true and "010" for eight
    assert (first.on, first.high, first.low, first.why) == ("evidence", 10.0, -math.inf, "because")
    assert (second.on, second.low, second.distance) == ("interval", -0.001, 2.0)
    assert first.place.endswith("policy.yaml line 3")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- a\n", "line 1: "),
        ("bounds: []\n", "line 1 (bounds)"),
        ("bounds:\n  - task: a\n    max: 1\n", "line 2 (bounds/0): 'score' is a required property"),
        *(
            (f"bounds:\n  - task: a\n    score: b\n    max: {value}\n", "(bounds/0/max): ")
            for value in ("much", ".nan", ".inf", "1:30")
        ),
        ("bounds:\n  - {task: a, score: b, max: 1, on: values}\n", "'values' is not one of ['interval'"),
        ("bounds:\n  - {task: a, score: b, max_distance_from_neutral: -1}\n", "less than the minimum"),
        ("min_documents_share: 50\nbounds: [{task: a, score: b, max: 1}]\n", "greater than the maximum of 1"),
        ("? [a]\n: 1\n", "found unhashable key"),
        ("bounds: !!python/object:os.system {}\n", "not valid YAML"),
    ],
)
def test_bad_policies_are_refused_with_their_place(text, says, tmp_path):
    with pytest.raises(BiasError) as error:
        policy_file.read(written(tmp_path, text))
    assert says in str(error.value)
    assert "policy.yaml" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_example_is_a_policy_whose_names_exist(tmp_path, capsys):
    assert main(["check", "--example"]) == 0
    text = capsys.readouterr().out
    found = policy_file.read(written(tmp_path, text))
    assert {bound.on for bound in found.bounds} == set(policy_file.ON)
    verdict.refuse_unknown(found, [])


@pytest.fixture
def run_file(tmp_path):
    path = tmp_path / "runs" / "one.json"
    path.parent.mkdir()
    needed = dict.fromkeys(("date", "lm-eval-bias", "lm_eval"), "1") | {"dtype": "float32", "seeds": [0]}
    path.write_text(json.dumps(record.as_data(run(task(scores=(SS, COVERAGE)), **needed))), encoding="utf-8")
    return path


def test_exit_status_and_text(run_file, tmp_path, capsys):
    good = written(tmp_path, "bounds: [{task: stereoset_en, score: ss, max: 60}]\n")
    assert main(["check", str(run_file), "--policy", str(good)]) == 0
    assert "all 1 hold" in capsys.readouterr().out
    bad = written(tmp_path, "bounds: [{task: stereoset_en, score: ss, max: 57, why: a promise}]\n")
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**json.loads(run_file.read_text()), "model": "another"}))
    assert main(["check", str(run_file), str(other), "--policy", str(bad)]) == 1
    out = capsys.readouterr().out
    assert out.count("1 of 1 violated") == 2
    assert "56.0 [54.0, 58.0]" in out or "56 [54, 58]" in out
    assert "at most 57" in out
    assert "reaches 1 above" in out
    assert "a promise" in out


def test_one_bad_run_among_good_ones_is_a_violation(run_file, tmp_path, capsys):
    limit = written(tmp_path, "bounds: [{task: stereoset_en, score: ss, max: 60}]\n")
    (run_file.parent / "results_2.json").write_text("{")
    assert main(["check", str(run_file.parent), "--policy", str(limit)]) == 1
    said = capsys.readouterr()
    assert "all 1 hold" in said.out
    assert "results_2.json: truncated or damaged" in said.err


def test_json(run_file, tmp_path, capsys):
    text = "bounds: [{task: stereoset_en, score: ss, max: 57}, {task: stereoset_de, score: ss, max: 57}]\n"
    assert main(["check", str(run_file), "--policy", str(written(tmp_path, text)), "--json"]) == 1
    data = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    first, second = data["runs"][0]["findings"]
    assert (data["holds"], data["runs"][0]["holds"], first["holds"]) == (False, False, False)
    assert (first["value"], first["interval"], first["excess"]) == (56.0, [54.0, 58.0], 1.0)
    assert (second["says"], second["value"], second["task"]) == ("not measured", None, "stereoset_de")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "needs RUN and --policy"),
        (["run.json"], "needs RUN and --policy"),
        (["gone.json", "--policy", "POLICY"], "gone.json: no such file or folder"),
        (["RUN", "--policy", "gone.yaml"], "gone.yaml cannot be read"),
    ],
)
def test_bad_usage(arguments, says, run_file, tmp_path, capsys):
    limit = written(tmp_path, "bounds: [{task: stereoset_en, score: ss, max: 60}]\n")
    known = {"RUN": str(run_file), "POLICY": str(limit)}
    assert main(["check", *(known.get(argument, argument) for argument in arguments)]) == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert says in err[-1]
    assert len(err) == 1
