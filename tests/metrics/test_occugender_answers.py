"""OccuGender's scores from counts of answers."""

import itertools
import math

import numpy as np
import pytest

from lm_eval_bias.custom_metrics import occugender_answers
from lm_eval_bias.custom_metrics.occugender_answers import prompt_record
from tests.support.oracles import reason_of


def named():
    return {score.name: score for score in occugender_answers.scores()}


def prompt(item, template, m, f, d, lost=0, refused=0, share=None):
    share = (80.0 if item.startswith("w") else 20.0) if share is None else share
    group = "female" if share > 50 else "male"
    drawn = m + f + d + lost + refused
    return prompt_record(
        item,
        template,
        share,
        group,
        counts={"M": m, "F": f, "D": d},
        refused=refused,
        drawn=drawn,
    )


def random_prompts(seed, lost=5, items=5, templates=4):
    rng = np.random.default_rng(seed)
    made = []
    for (kind, i), t in itertools.product(
        itertools.product("wm", range(items)), range(templates)
    ):
        unread = int(rng.integers(0, lost + 1))
        m, f, d = rng.multinomial(10 - unread, rng.dirichlet([1, 1, 1])).tolist()
        made.append(
            prompt(
                f"{kind}{i}",
                f"t{t}",
                m,
                f,
                d,
                unread,
                share=(70 if kind == "w" else 10) + 3.0 * i,
            )
        )
    return made


def test_shares_are_ratios_of_sums_by_hand():
    # women-dominated: 2 + 0 + 1 + 3 = 6 of 2 + 4 + 5 + 3 = 14 read; men-dominated: 4 of 8
    records = [
        prompt("w0", "s", 0, 2, 0, lost=8), prompt("w0", "t", 4, 0, 0, lost=6), prompt("w1", "s", 3, 1, 1, lost=5),
        prompt("w1", "t", 0, 3, 0, refused=7), prompt("m0", "s", 1, 1, 0, lost=8), prompt("m0", "t", 1, 1, 0, lost=8),
        prompt("m1", "s", 1, 1, 0, lost=8), prompt("m1", "t", 1, 1, 0, lost=8),
    ]  # fmt: skip
    value = {name: score.compute(records).value for name, score in named().items()}
    assert value["female_dominated_F"] == pytest.approx(100 * 6 / 14, abs=1e-12)
    assert value["female_dominated_M"] == pytest.approx(100 * 7 / 14, abs=1e-12)
    assert value["female_dominated_gap"] == pytest.approx(-1 / 14, abs=1e-12)
    assert value["male_dominated_gap"] == 0
    assert value["stereotype_gap"] == pytest.approx(
        -1 / 28, abs=1e-12
    )  # both groups have two items
    assert value["unanswered"] == pytest.approx(1 - 22 / 80, abs=1e-12)
    assert value["refused"] == pytest.approx(7 / 80, abs=1e-12)
    assert [
        named()[name].contribution(records[3]) for name in ("unanswered", "refused")
    ] == pytest.approx([0.7, 0.7])
    for name in ("unanswered", "stereotype_gap", "labour_pearson"):
        assert reason_of(named()[name].design, []).endswith("prompts")
    assert named()["labour_pearson"].compute([]).reason == "no prompts"


def test_occupations_of_equal_share_have_equal_ranks():
    # 6 of 10 each, laid out in ways whose influences don't sum to 0 in floats
    records = [
        prompt(f"{'wm'[i % 2]}{i}", f"t{t}", n - f, f, 0, 10 - n, share=10.0 + 7 * i)
        for i, layout in enumerate(
            [[(3, 7), (3, 3)], [(6, 10), (0, 0)], [(1, 3), (5, 7)], [(9, 10), (9, 10)]]
        )
        for t, (f, n) in enumerate(layout)
    ]
    # ranks of the shares of women: 2, 2, 2, 4; of the statistics 1, 2, 3, 4: covariance 3, variances 3 and 5
    assert named()["labour_spearman"].compute(records).value == pytest.approx(
        3 / math.sqrt(3 * 5), abs=1e-12
    )


def test_a_group_of_which_nothing_was_read_is_named():
    made = random_prompts(4)
    records = [
        r if r["group"] == "female" else prompt(r["item"], r["template"], 0, 0, 0, 10)
        for r in made
    ]
    assert math.isfinite(named()["female_dominated_F"].design(records).value)
    men = "no answer about items of the group male could be read"
    correlated = "no answer about m0, m1, m2 and 2 more could be read"
    for name, reason in {
        "male_dominated_M": men,
        "stereotype_gap": men,
        "labour_pearson": correlated,
    }.items():
        estimate = named()[name].compute(records)
        assert math.isnan(estimate.value)
        assert (estimate.reason, estimate.n) == (reason, len(made))
        assert (
            name == "labour_pearson"
            or reason_of(named()[name].design, records) == reason
        )
