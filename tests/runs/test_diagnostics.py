"""What has to be known of a run before its scores are believed, by kind."""

import pytest

import lm_eval_bias as leb
from lm_eval_bias.core import numbers
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.custom_metrics import positions
from lm_eval_bias.runs import diagnostics, run_discovery
from tests.support.made_runs import run_of, write

STEREOSET, GG_BBQ, REGARD = "stereoset_en", "gg_bbq_group_terms", "regard_en"


def found(folder, task, fields=(), scores=(), **provenance):
    """A run with one task that was changed, and the kinds of what there is to know of it."""
    content = run_of(tasks=[task])
    content["provenance"] |= provenance
    content["tasks"][task] |= dict(fields)
    for name, change in dict(scores).items():
        content["tasks"][task]["scores"].setdefault(name, {}).update(change)
    (run,), _ = run_discovery.read([write(folder / "run.json", content)])
    return run, [suffix.code for suffix in diagnostics.of_task(run, run.tasks[task])]


def measured(value, low, high):
    return {"value": value, "interval": [low, high]}


def place(value, low, high):
    """The share of answers that take the first option, of three."""
    first, *_ = positions.scores(3, False, "taken", "template", "templates")
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
        "length_shorter": measured(0.5, 0.45, 0.55),
    },
    GG_BBQ: {
        "length_shorter": measured(0.5, 0.45, 0.55),
        "diff_bias_amb": measured(0.0, -0.1, 0.1),
        "acc_of_named": measured(0.9, 0.8, 0.95),
        "unanswered": measured(0.0, 0.0, 0.01),
    },
}

CASES = [
    (STEREOSET, {"documents": 474}, {}, {}, "trial_run"),
    (REGARD, {"metadata": {"repeats": 20}}, {}, {}, "trial_run"),
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
    (GG_BBQ, {}, {"position_first": place(0.97, 0.9, 0.99)}, {}, "position_bias"),
    (GG_BBQ, {}, {"position_first": place(0.6, 0.3, 0.8)}, {}, ""),
    (STEREOSET, {}, {"length_shorter": measured(0.6, 0.55, 0.65)}, {}, "length_bias"),
    (STEREOSET, {}, {"length_shorter": measured(0.6, 0.45, 0.65)}, {}, ""),
    (
        GG_BBQ,
        {"metadata": {"inputs": {"different_prompts": 900}}},
        {},
        {},
        "repeated_prompts",
    ),
    (STEREOSET, {}, {"ss": {"clusters": 5}}, {}, "few_groups"),
    (STEREOSET, {}, {"ss": {"clusters": 6, "dof": 2.0}}, {}, ""),
    (STEREOSET, {}, {"ss": measured(50.0, 20.0, 80.0)}, {}, "wide_interval"),
    (STEREOSET, {}, {"ss": {"note": "beware"}}, {}, "score_note"),
    (STEREOSET, {}, {}, {"chat_template": "x"}, "changed_options"),
    (
        STEREOSET,
        {"metadata": {"dataset_used": {"file": "x.json", "sha256": "0"}}},
        {},
        {},
        "custom_data",
    ),
]


LEAN = {"diff_bias_amb": measured(0.2, 0.1, 0.3)}
CHANCE = {"acc_of_named": measured(0.5, 0.4, 0.6)}
BELOW = {"acc_of_named": measured(0.3, 0.2, 0.4)}


@pytest.mark.parametrize(
    ("scores", "side", "silent"),
    [
        ({}, 0, 0.0),
        (LEAN, 1, 0.0),
        # guessing takes away what is said of nearness, never a lean that the interval shows
        (CHANCE, None, 1.0),
        ({**CHANCE, **LEAN}, 1, 1.0),
        ({**BELOW, **LEAN}, 1, 1.0),
        # so do places, as far as answers go by them: 1 - 3 x 0.1 of 0.1, 0.3 and 0.6
        ({"position_first": place(0.6, 0.5, 0.7)}, 0, 0.7),
        ({"position_first": place(0.6, 0.5, 0.7), **LEAN}, 1, 0.7),
    ],
)
def test_what_attenuates_takes_away_nearness_alone(scores, side, silent, tmp_path):
    others = {
        "position_middle": place(0.3, 0.3, 0.4),
        "position_last": place(0.1, 0.1, 0.2),
    }
    given = {**NEUTRAL[GG_BBQ], **scores}
    if "position_first" in scores:
        given = others | given
    run, _ = found(tmp_path, GG_BBQ, scores=given)
    value = run.tasks[GG_BBQ].scores["diff_bias_amb"]
    assert value.verdict.side == side
    assert value.verdict.silent == pytest.approx(silent)
    assert bool(value.verdict.reason) == bool(silent)
    frame = leb.scores(run).set_index("score")
    told = frame.loc["diff_bias_amb"]
    assert told.claim == value.verdict.claim
    assert told.no_claim_reason == value.verdict.reason


UNEVEN = {"note": positions.UNEVEN}


@pytest.mark.parametrize(
    ("matched", "side"),
    [
        ({**measured(58.0, 54.0, 62.0), **UNEVEN}, 1),
        ({**measured(52.0, 45.0, 59.0), **UNEVEN}, None),
        ({**measured(42.0, 38.0, 46.0), **UNEVEN}, None),
        ({"value": None, "interval": None, **UNEVEN}, None),
        # where the stereotype is as often shorter as longer, lengths can't make it
        (measured(52.0, 45.0, 59.0), 1),
    ],
)
def test_a_lean_that_lengths_could_make_needs_the_matched_score(
    matched, side, tmp_path
):
    scores = {
        **NEUTRAL[STEREOSET],
        "ss": measured(55.0, 52.0, 58.0),
        "length_shorter": measured(0.6, 0.55, 0.65),
        "equal_length/ss": matched,
    }
    run, _ = found(tmp_path, STEREOSET, scores=scores)
    verdict = run.tasks[STEREOSET].scores["ss"].verdict
    assert verdict.side == side
    # of answers that go by length: 1 - 2 x (1 - 0.65)
    assert verdict.silent == pytest.approx(0.3 if side else 1.0)
    assert ("can't be distinguished from length bias" in verdict.reason) == (
        side is None
    )
    even = {**scores, "length_shorter": measured(0.52, 0.48, 0.56)}
    run, _ = found(tmp_path, STEREOSET, scores=even)
    assert run.tasks[STEREOSET].scores["ss"].verdict.side == 1


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
    warnings = [suffix.code for suffix in run.tasks[task].diagnostics]
    assert warnings == ([kind] if kind in diagnostics.BEFORE_SCORES else [])
    assert bool(diagnostics.trial(run.tasks[task])) == (kind == "trial_run")
    assert bool(run.tasks[task].warning()) == bool(warnings)


def test_shares_without_room_say_nothing(tmp_path):
    scores = {
        "female_dominated_M": measured(97.0, 96.0, 98.0),
        "male_dominated_M": measured(99.0, 98.0, 99.5),
    }
    run, kinds = found(tmp_path, "occugender_implicit", scores=scores)
    assert "saturated" in kinds
    assert run.tasks["occugender_implicit"].scores["stereotype_gap"].verdict.reason
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
    assert numbers.telling_digits(score) == digits
