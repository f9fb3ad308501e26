"""StereoSet as a choice: values, what they say of rankings, and a model that only knows letters."""

import itertools
import math

import pytest

from lm_eval_bias.custom_metrics import stereoset, stereoset_choices
from lm_eval_bias.custom_metrics.stereoset_choices import (
    ANTI,
    NONE,
    REFUSED,
    STEREOTYPE,
    UNRELATED,
)
from tests.support.oracles import reason_of

SHOWN = (STEREOTYPE, ANTI, UNRELATED)
ORDERS = list(itertools.permutations(SHOWN))


def by_name():
    """The scores over all items."""
    return {
        score.name: score
        for score in stereoset_choices.scores()
        if "/" not in score.name
    }


def items(text, terms="ab"):
    """Records from letters: Stereotype, Anti, Unrelated, None, Refused; terms and orders in turn."""
    taken = dict(zip("SAUNR", (*SHOWN, NONE, REFUSED), strict=True))
    return [
        {"test": "intra", "bias_type": "gender", "term": terms[i % len(terms)], "taken": taken[letter],
         "shown": ORDERS[i % 6], "lengths": dict(zip(SHOWN, (5, 6, 5), strict=True))}
        for i, letter in enumerate(text)
    ]  # fmt: skip


def values(records):
    return {name: score.compute(records).value for name, score in by_name().items()}


def test_by_hand():
    # 12 items: 5 stereotypes, 2 anti-stereotypes, 2 unrelated, 2 without a choice, 1 refusal
    records = items("SSSSSAAUUNNR")
    got = values(records)
    assert got["choice_lms"] == pytest.approx(100 * 7 / 12, abs=1e-12)
    assert got["choice_ss"] == pytest.approx(100 * (5 + 5 / 2) / 12, abs=1e-12)
    assert got["choice_ss_meaningful"] == pytest.approx(100 * 5 / 7, abs=1e-12)
    assert got["choice_icat"] == pytest.approx(200 * 2 / 12, abs=1e-12)
    nadeem = stereoset.icat_of(got["choice_lms"], got["choice_ss_meaningful"])
    assert got["choice_icat"] == pytest.approx(nadeem, abs=1e-9)
    assert got["unanswered"] == pytest.approx(3 / 12, abs=1e-12)
    assert got["refused"] == pytest.approx(1 / 12, abs=1e-12)
    positions = [r["shown"].index(r["taken"]) for r in records if r["taken"] in SHOWN]
    for number, name in enumerate("abc"):
        assert got[f"position_{name}"] == pytest.approx(
            positions.count(number) / 9, abs=1e-12
        )


def test_nothing_is_told_of_bias_where_nothing_meaningful_was_taken():
    scores, silent = by_name(), items("NR")
    for name in ("choice_ss", "choice_ss_meaningful", "choice_icat"):
        found = scores[name].compute(items("UNRU"))
        assert found.n == 4
        assert "chosen in none of 4 items" in found.reason
        assert found.reason == reason_of(scores[name].design, items("UNRU"))
    assert scores["choice_lms"].compute(items("UNRU")).value == 0
    for name, reason in (
        ("choice_lms", "a candidate was chosen in none of 2 items"),
        ("position_a", "none of 2 answers takes such an option"),
    ):
        assert scores[name].compute(silent).reason == reason
    alone = scores["choice_ss_meaningful"].compute(
        items("SAUU", terms="aabb")
    )  # without a there is no such choice
    assert "no value without one of the target terms" in alone.reason


TURNED = (ANTI, STEREOTYPE, UNRELATED)


@pytest.mark.parametrize(
    ("positions", "effect"),
    [
        ([SHOWN], 50),
        (
            [*[SHOWN] * 3, TURNED],
            25,
        ),  # a: 3 stereotypes of 4, b: 1 of 4, c: the unrelated candidate alone
        (ORDERS, 0),
        (
            [SHOWN, TURNED],
            0,
        ),  # two letters have each as often as the other, and the third has neither
        ([*[SHOWN] * 51, *[TURNED] * 49], 1),
        ([*[SHOWN] * 52, *[TURNED] * 48], 2),
        ([], math.nan),
    ],
)
def test_what_always_taking_a_letter_gets_by_hand(positions, effect):
    records = [
        {**r, "shown": shown}
        for r, shown in zip(items("SA" * 50), positions, strict=False)
    ]
    assert stereoset_choices.position_effect(records) == pytest.approx(
        effect, abs=0, nan_ok=True
    )
    # 51 of 100 stereotypes at a letter are no more than 1 away from 50
    assert ("positions" in by_name()["choice_ss"].compute(records).reason) is (
        effect > 1
    )
