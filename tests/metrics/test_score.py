"""What every score is: estimates, their intervals, parts of the records, and the description that reports carry."""

import json
import math
from dataclasses import replace

import pytest

from lm_eval_bias.custom_metrics.score import (
    NOTHING_VARIED,
    Estimate,
    Score,
    ScoreSpec,
    Undefined,
    t_factor,
    undefined,
)
from tests.support.oracles import reason_of


def test_intervals_reach_as_far_as_students_t():
    # quantiles of printed tables: normal 1.960 and 2.576; t of 1 and 5 degrees of freedom 12.706, 2.571 and 4.032
    assert t_factor(math.inf) == pytest.approx(1.959964, abs=1e-6)
    assert t_factor(math.inf, 0.99) == pytest.approx(2.575829, abs=1e-6)
    assert t_factor(5) == pytest.approx(2.570582, abs=1e-6)
    assert t_factor(5, 0.99) == pytest.approx(4.032143, abs=1e-6)
    assert (
        t_factor(1) == t_factor(0.3) == pytest.approx(12.706205, abs=1e-6)
    )  # fewer than one isn't evidence
    assert t_factor(1.5) < t_factor(1)
    estimate = Estimate(10.0, 2.0, 9, dof=5)
    assert estimate.ends() == pytest.approx(
        (10 - 2 * 2.570582, 10 + 2 * 2.570582), abs=1e-5
    )


def test_an_error_of_0_is_none_and_says_why():
    without = Estimate(0.5, 0.0, 9)
    assert math.isnan(without.stderr)
    assert (without.value, without.n, without.reason, without.ends()) == (
        0.5,
        9,
        NOTHING_VARIED,
        None,
    )
    # a reason that stands there stays, and an interval of its own needs none
    assert Estimate(0.5, 0.0, 9, "few").reason == "few"
    own = Estimate(0.5, 0.0, 9, interval=(0.3, 0.7))
    assert math.isnan(own.stderr)
    assert (own.reason, own.ends()) == ("", (0.3, 0.7))
    assert Estimate(0.5, 0.1, 9).reason == ""
    # an interval of its own goes before the standard error
    assert Estimate(0.5, 0.1, 9, interval=(0.4, 0.7)).ends() == (0.4, 0.7)
    assert (
        Estimate(math.nan, 0.1, 9).ends() is Estimate(0.5, math.nan, 9).ends() is None
    )


def mean(records):
    if not records:
        raise Undefined("nothing")
    return Estimate(sum(r["v"] for r in records) / len(records), 0.5, len(records))


WHOLE = Score(
    "mean", summary="mean of all", high=4.0, neutral=1.0, chance=2.0, direction="+ more", favours=("more", "less"),
    unit="difference", source="a paper", higher_is_better=False, statistic=mean, contribution=lambda r: r["v"],
    design=lambda records: f"{len(records)} records",
)  # fmt: skip
RECORDS = [
    {"v": 1.0, "group": "a", "language": "en"},
    {"v": 2.0, "group": "b", "language": "en"},
    {"v": 4.0, "group": "b", "language": "de"},
]


def test_a_part_of_the_records():
    part = WHOLE.within("mean_b", "mean of b", {"group": "b"})
    assert (part.name, part.summary, part.high, part.neutral) == (
        "mean_b",
        "mean of b",
        4.0,
        1.0,
    )
    assert part.compute(RECORDS) == Estimate(3.0, 0.5, 2)
    assert [part.contribution(r) for r in RECORDS] == [None, 2.0, 4.0]
    assert part.design(RECORDS) == "2 records"
    both = WHOLE.within("mean_b_en", "", {"group": "b", "language": "en"})
    assert both.compute(RECORDS).value == 2.0
    assert [both.contribution(r) for r in RECORDS] == [None, 2.0, None]


def test_an_empty_part_says_why():
    where = {"group": "c"}
    assert WHOLE.within("c", "", where).compute(RECORDS).reason == "nothing"
    said = WHOLE.within("c", "", where, "no prompts of c")
    assert (
        said.compute(RECORDS).reason
        == reason_of(said.design, RECORDS)
        == "no prompts of c"
    )
    assert undefined("nothing", 3).n == 3
    assert said.compute([*RECORDS, {"v": 3.0, "group": "c"}]) == Estimate(3.0, 0.5, 1)
    assert said.design([{"v": 3.0, "group": "c"}]) == "1 records"
    # a part of what can't be resampled can't either
    assert replace(WHOLE, design=None).within("b", "", {"group": "b"}).design is None


def test_what_reports_carry():
    assert WHOLE.describe() == {
        "name": "mean", "summary": "mean of all", "label": "", "range": [None, 4.0], "neutral": 1.0,
        "chance": 2.0, "floor": None,
        "of_answers": False,
        "direction": "+ more", "favours": ["more", "less"], "pole": "", "unit": "difference", "source": "a paper",
        "higher_is_better": False,
    }  # fmt: skip
    meaning = ScoreSpec.described("mean", json.loads(json.dumps(WHOLE.describe())))
    assert meaning.describe() == WHOLE.describe()
    assert ScoreSpec.described("mean", {}) == ScoreSpec("mean")
