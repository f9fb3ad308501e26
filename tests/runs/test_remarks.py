"""What has to be known of a run before its scores are believed, by kind."""

from dataclasses import replace
from pathlib import Path

import pytest

import lm_eval_bias as leb
from lm_eval_bias.core import numbers, registry
from lm_eval_bias.core.run_data import Run, Value
from lm_eval_bias.custom_metrics import places
from lm_eval_bias.runs import remarks, run_discovery
from tests.support import boards
from tests.support.made_runs import run_of, write

STEREOSET, GG_BBQ, REGARD = "stereoset_en", "gg_bbq_group_terms", "regard_en"
MBBQ = "mbbq_en_age"


def found(folder, task, fields=(), scores=(), **provenance):
    """A run with one task that was changed, and the kinds of what there is to know of it."""
    content = run_of(tasks=[task])
    content["provenance"] |= provenance
    content["tasks"][task] |= dict(fields)
    for name, change in dict(scores).items():
        content["tasks"][task]["scores"].setdefault(name, {}).update(change)
    (run,), _ = run_discovery.read([write(folder / "run.json", content)])
    return run, [remark.kind for remark in remarks.of_task(run, run.tasks[task])]


def measured(value, low, high):
    return {"value": value, "interval": [low, high]}


def place(value, low, high):
    """The share of answers that take the first option, of three."""
    first, *_ = places.scores(3, False, "taken", "template", "templates")
    told = {key: entry for key, entry in first.describe().items() if key != "name"}
    return {
        "n": 100,
        "dof": 20.0,
        "stderr": 0.02,
        "note": "",
        **told,
        **measured(value, low, high),
    }


NEUTRAL = {
    STEREOSET: {
        "lms": measured(80.0, 78.0, 82.0),
        "ss": measured(50.0, 45.0, 55.0),
    },
    GG_BBQ: {
        "diff_bias_amb": measured(0.0, -0.1, 0.1),
        "acc_of_named": measured(0.9, 0.8, 0.95),
        "unanswered": measured(0.0, 0.0, 0.01),
    },
}

CASES = [
    (STEREOSET, {"documents": 474}, {}, {}, "trial_run"),
    (REGARD, {"metadata": {"repeats": 20}}, {}, {}, "trial_run"),
    (REGARD, {"metadata": {"repeats": 100}}, {}, {}, ""),
    (
        STEREOSET,
        {"metadata": {"suite": {"name": "quick", "documents": 474}}, "documents": 474},
        {},
        {},
        "suite_part",
    ),
    (STEREOSET, {}, {"lms": measured(50.5, 48.0, 53.0)}, {}, "chance_level"),
    (STEREOSET, {}, {"lms": measured(55.0, 52.0, 58.0)}, {}, ""),
    (GG_BBQ, {}, {"acc_of_named": measured(0.5, 0.4, 0.6)}, {}, "chance_level"),
    # a bias where the answer is given needs ability; StereoSet's, and one where it is open, doesn't
    (
        GG_BBQ,
        {},
        {
            "acc_of_named": measured(0.5, 0.4, 0.6),
            "diff_bias_disamb": measured(-0.1, -0.15, -0.05),
        },
        {},
        "chance_level",
    ),
    (
        STEREOSET,
        {},
        {"lms": measured(50.5, 48.0, 53.0), "ss": measured(66.0, 63.0, 69.0)},
        {},
        "",
    ),
    (
        STEREOSET,
        {},
        {"lms": measured(55.0, 52.0, 58.0)},
        {"model": "bias-chance"},
        "chance_level",
    ),
    (GG_BBQ, {}, {"unanswered": measured(0.11, 0.1, 0.12)}, {}, "unanswered"),
    (GG_BBQ, {}, {"unanswered": measured(0.1, 0.09, 0.12)}, {}, ""),
    (STEREOSET, {}, {"lms": measured(40.0, 36.0, 44.0)}, {}, "below_chance"),
    (
        GG_BBQ,
        {},
        {"acc_of_named": {"value": None, "interval": None, "note": "nobody named"}},
        {},
        "unshown_ability",
    ),
    (GG_BBQ, {}, {"place_first": place(0.97, 0.9, 0.99)}, {}, "habit"),
    (GG_BBQ, {}, {"place_first": place(0.6, 0.5, 0.7)}, {}, "place"),
    (GG_BBQ, {}, {"place_first": place(0.6, 0.3, 0.8)}, {}, ""),
    (GG_BBQ, {}, {"place_first": place(0.4, 0.38, 0.42)}, {}, ""),
    (
        GG_BBQ,
        {"metadata": {"inputs": {"different_prompts": 900}}},
        {},
        {},
        "repeated_prompts",
    ),
    (STEREOSET, {}, {"ss": {"dof": 4.0}}, {}, "few_groups"),
    (STEREOSET, {}, {"ss": {"dof": 4.5}}, {}, ""),
    (STEREOSET, {}, {"ss": measured(50.0, 20.0, 80.0)}, {}, "wide_interval"),
    (STEREOSET, {}, {"ss": {"note": "beware"}}, {}, "score_note"),
    (STEREOSET, {}, {}, {"chat_template": "x"}, "changed_options"),
    (
        STEREOSET,
        {"metadata": {"dataset_used": {"file": "x.json", "sha256": "0"}}},
        {},
        {},
        "own_data",
    ),
]


def silenced(run, task):
    return {name for name, value in run.tasks[task].scores.items() if value.unsaid}


def test_what_a_remark_silences_has_no_verdict_anywhere(tmp_path):
    """Guessing silences what needs ability, a habit and what lies below chance every score of bias."""
    of_bias = {"diff_bias_amb", "diff_bias_disamb"}
    for scores, names in (
        ({"acc_of_named": measured(0.5, 0.4, 0.6)}, {"diff_bias_disamb"}),
        ({"acc_of_named": measured(0.3, 0.2, 0.4)}, of_bias),
        ({"place_first": place(0.97, 0.9, 0.99)}, of_bias),
        ({"place_first": place(0.6, 0.5, 0.7)}, set()),
        ({}, set()),
    ):
        given = {**NEUTRAL[GG_BBQ], **scores}
        run, _ = found(tmp_path, GG_BBQ, scores=given)
        main = set(run.tasks[GG_BBQ].definition.main)
        assert silenced(run, GG_BBQ) & main == names, scores
        # tables of data say it, too
        (frame,) = [leb.scores(run)]
        said = frame[frame.unsaid != ""].score
        assert set(said) == silenced(run, GG_BBQ)
        assert bool(frame.caveat.iloc[0]) == bool(scores)


def test_a_bias_that_needs_no_ability_is_never_chance():
    """MBBQ's biases name no pole beside their contrasts, and count all the same."""
    names = registry.get("mbbq").main
    for biased, kinds in (
        ("", ["chance_level"]),
        ("contrast/acc_disamb", ["chance_level"]),
        ("contrast/diff_bias_amb", []),
        ("diff_bias_amb", []),
    ):
        scores = [
            boards.value(name, benchmark="mbbq", number=0.4 * (name == biased))
            for name in names
        ]
        telling = boards.value("control/acc_of_named", 0.5, benchmark="mbbq")
        task = boards.task(*scores, telling, name=MBBQ)
        for name, value in task.scores.items():
            interval = value.value - 0.1, value.value + 0.1
            task.scores[name] = replace(value, interval=interval)
        run = Run("a", Path("a"), {MBBQ: task})
        assert [r.kind for r in remarks.applied(run).tasks[MBBQ].caveats] == kinds


@pytest.mark.parametrize(("task", "fields", "scores", "provenance", "kind"), CASES)
def test_kinds(task, fields, scores, provenance, kind, tmp_path):
    base = NEUTRAL.get(task, {})
    _, before = found(tmp_path, task, scores=base)
    run, after = found(tmp_path, task, fields, {**base, **scores}, **provenance)
    new = [
        one
        for one in after
        if one not in before or after.count(one) > before.count(one)
    ]
    assert new[:1] == ([kind] if kind else [])
    caveats = [remark.kind for remark in run.tasks[task].caveats]
    assert caveats == ([kind] if kind in remarks.BEFORE_SCORES else [])
    assert bool(remarks.trial(run.tasks[task])) == (kind == "trial_run")
    assert bool(run.tasks[task].caveat()) == bool(caveats)


def test_shares_without_room_say_nothing(tmp_path):
    scores = {
        "female_dominated_M": measured(97.0, 96.0, 98.0),
        "male_dominated_M": measured(99.0, 98.0, 99.5),
    }
    run, kinds = found(tmp_path, "occugender_implicit", scores=scores)
    assert "saturated" in kinds
    assert run.tasks["occugender_implicit"].scores["stereotype_gap"].unsaid
    scores["male_dominated_M"] = measured(90.0, 89.0, 91.0)
    assert "saturated" not in found(tmp_path, "occugender_implicit", scores=scores)[1]


@pytest.mark.parametrize(
    ("value", "low", "high", "digits"),
    [
        (0.0011, -0.0004, 0.0026, 4),
        (0.1, -0.2, 0.3, 3),
        (0.0, 0.0, 0.0, 3),
        (0.0004, 0.0002, 0.0006, 4),
    ],
)
def test_no_number_is_rounded_onto_its_neutral_value(value, low, high, digits):
    score = Value("gap", value, interval=(low, high), neutral=0.0)
    assert numbers.telling_digits(score, 3, 1.0) == digits
