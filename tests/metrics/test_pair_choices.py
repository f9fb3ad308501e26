"""Scores of written choices between two options, by hand."""

import math

import pytest

from lm_eval_bias.custom_metrics import pair_choices
from lm_eval_bias.custom_metrics.pair_choices import BIASED, COUNTER, NONE, UNKNOWN
from tests.support.oracles import jackknife, reason_of

THREE = ["biased", "counter", "unknown"]


def answer(taken, sentence="s", group="", shown=THREE, item="i"):
    return {
        "taken": taken,
        "sentence": sentence,
        "shown": shown,
        "item": item,
        **({"group": group} if group else {}),
    }


def scores_of(records):
    return {
        score.name: score.compute(records) for score in pair_choices.scores(records)
    }


def test_whoever_always_names_one_group_is_neutral():
    """Nine stereotypes of men and seven of women: always "a man" is along nine of them."""
    always = [answer(BIASED, f"m{n}", "male") for n in range(9)]
    always += [answer(COUNTER, f"f{n}", "female") for n in range(7)]
    assert scores_of(always)["choice_bias"].value == 0.0
    along = [answer(BIASED, f"m{n}", "male") for n in range(9)]
    along += [answer(BIASED, f"f{n}", "female") for n in range(3)]
    along += [answer(UNKNOWN, f"f{n}", "female") for n in range(3, 7)]
    found = scores_of(along)
    assert found["choice_bias"].value == pytest.approx((1 + 3 / 7) / 2, abs=1e-12)
    assert found["unknown"].value == pytest.approx(4 / 16, abs=1e-12)


def test_without_groups_it_is_the_mean_of_all_items():
    records = [answer(BIASED, "a"), answer(COUNTER, "a"), answer(BIASED, "b")]
    records += [answer(NONE, "c")]
    found = scores_of(records)
    assert found["choice_bias"].value == pytest.approx(1 / 4, abs=1e-12)
    (bias, *_) = pair_choices.scores(records)
    assert found["choice_bias"].stderr == pytest.approx(
        jackknife(bias.compute, records, "sentence"), rel=1e-9
    )
    assert found["unanswered"].value == 1 / 4


def test_intervals_at_and_near_an_end():
    """Of 21 sentences: nobody takes a side, or all but one take the same."""
    silent = [answer(UNKNOWN, f"s{n}", ("male", "female")[n % 2]) for n in range(21)]
    ends = scores_of(silent)["choice_bias"].ends()
    assert ends == pytest.approx((-0.155, 0.155), abs=0.001)
    one = [answer((BIASED, COUNTER)[n == 0], f"s{n}") for n in range(21)]
    low, high = scores_of(one)["choice_bias"].ends()
    assert 0.5 < low < 20 / 21 - 1 / 21 < high <= 1


TWO = ["biased", "counter"]


@pytest.mark.parametrize(
    ("answers", "consistent"),
    [
        ("AA", 0.0),  # the letter, whatever stands there
        ("AB", 1.0),  # the same option
        ("BA", 1.0),
    ],
)
def test_consistent_answers_take_the_same_option_in_both_orders(answers, consistent):
    records = []
    for pair in ("p", "q"):
        for letter, shown in zip(answers, (TWO, TWO[::-1]), strict=True):
            taken = shown["AB".index(letter)]
            records.append(answer(taken, pair, shown=shown, item=pair))
    found = scores_of(records)
    assert found["consistent"].value == consistent
    assert "unknown" in found
    assert (found["position_a"].value, found["position_b"].value) == (
        answers.count("A") / 2,
        answers.count("B") / 2,
    )


def test_reasons_for_no_value():
    lone = [answer(BIASED, "p", shown=TWO), answer(NONE, "p", shown=TWO)]
    by_name = {score.name: score for score in pair_choices.scores(lone)}
    assert (
        reason_of(by_name["consistent"].design, lone)
        == "no pair was answered in both orders"
    )
    silent = [answer(NONE, f"s{n}") for n in range(3)]
    found = scores_of(silent)
    assert math.isnan(found["choice_bias"].value)
    assert found["choice_bias"].reason == "no answer takes an option"
    assert found["unanswered"].value == 1.0
