"""What a difference says in words, which scores are compared, and by how much p-values are corrected."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.comparing import power
from lm_eval_bias.comparing.findings import (
    Choice,
    Finding,
    compare_pairs,
)
from lm_eval_bias.comparing.pairing import beside_the_model
from lm_eval_bias.core.benchmark import UnknownBenchmark
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.custom_metrics.differences import Difference
from lm_eval_bias.custom_metrics.score import Score
from tests.support.toy import pair, score, side, spread_over

NAN = math.nan


EDGE = stats.norm.ppf(0.975)
UNCERTAIN = "higher with other; which one is further from neutral is uncertain"


def finding(
    adjusted=0.01,
    neutral=0.0,
    better=None,
    note="",
    value=0.5,
    total=1.0,
    error=0.1,
    dof=math.inf,
    reason="",
    primary=False,
):
    scale = Score(
        "s",
        low=0,
        high=1,
        neutral=neutral,
        contribution=lambda row: None,
        higher_is_better=better,
    )
    difference = Difference(value, 0.1, dof, 0.01, total, error, reason, "t")
    found = Finding(
        "task", "base", "other", scale, 0.0, 0.0, difference, adjusted, True, 9, UnknownBenchmark("x"), note,
        primary=primary,
    )  # fmt: skip
    return replace(found, further=max(found.p_further(), adjusted))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"value": 0.5, "neutral": None}, "higher with other"),
        ({"value": 0.5, "better": True}, "better with other"),
        ({"value": 0.5, "better": False}, "better with base"),
        # 50 is neutral: 5 off and 20 off, on opposite sides: 45 and 70, 55 and 30, 30 and 55, 70 and 45
        (
            {"value": 25.0, "total": 115.0, "error": 1.0, "neutral": 50.0},
            "further from neutral with other",
        ),
        (
            {"value": 25.0, "total": 85.0, "error": 1.0, "neutral": 50.0},
            "further from neutral with base",
        ),
        # told outside the 95% interval of the sum alone; with 2 degrees of freedom it reaches 4.30 errors
        ({"total": EDGE + 0.01, "error": 1.0}, "further from neutral with other"),
        ({"total": EDGE - 0.01, "error": 1.0}, UNCERTAIN),
        ({"total": 4.2, "error": 1.0, "dof": 2.0}, UNCERTAIN),
        ({"total": 4.4, "error": 1.0, "dof": 2.0}, "further from neutral with other"),
        ({"total": 9.0, "error": NAN}, UNCERTAIN),
        # a difference is told at the level, and what cannot be tested has its reason
        ({"adjusted": 0.05}, "further from neutral with other"),
        ({"adjusted": 0.0501}, "no significant difference"),
        ({"adjusted": 1.0, "reason": "why"}, "no significant difference: why"),
        (
            {"adjusted": NAN, "reason": "only one cluster", "note": "unpaired"},
            "only one cluster",
        ),
        ({"adjusted": NAN, "note": "unpaired: seeds"}, "unpaired: seeds"),
    ],
)
def test_what_is_said(given, said):
    found, outcomes = finding(**given), {
        "better with other": "better", "better with base": "worse",
        "further from neutral with other": "worse", "further from neutral with base": "better",
    }  # fmt: skip
    assert found.verdict == said
    assert found.outcome == outcomes.get(said, "not shown")


def test_scores_of_one_side_alone_are_named(toy, tmp_path):
    toy.main = ("mean",)
    sides = [
        side(name, tmp_path, BASE, scores=[score(), score(one)])
        for name, one in (("one", "a/mean"), ("two", "b/mean"))
    ]
    (_,), left_out = compare_pairs([pair(*sides)], Choice())
    assert [str(one) for one in left_out] == [
        "toy: two and one: only one has a/mean",
        "toy: two and one: only two has b/mean",
    ]
    assert compare_pairs([pair(*sides)], Choice(scores=["mean"]))[1] == []


# By 8 traits: +1, +1, +1, +1, +1, +1, +1, -1 beside 0: the mean is 0.75.
BASE = spread_over(values=(0.0,))
OTHER = {**spread_over(values=(1.0,)), "h0": -1.0}


@pytest.fixture
def two(toy, tmp_path):
    return pair(side("one", tmp_path, BASE), side("two", tmp_path, OTHER))


def test_values_difference_and_test_of_two_runs(two):
    ((found,), _) = compare_pairs(
        [two], Choice()
    )  # "gone", the other main score, is not among the benchmark's
    assert (found.subject, found.base, found.other, found.score.name) == (
        "toy",
        "one",
        "two",
        "mean",
    )
    assert (found.base_value, found.other_value, found.difference.value) == (
        0.0,
        0.75,
        0.75,
    )
    assert (found.paired, found.items, found.level) == (True, 8, 0.05)
    assert found.note == beside_the_model(two)
    # one item in each cluster: a plain t test
    assert found.difference.p == pytest.approx(
        stats.ttest_1samp(list(OTHER.values()), 0.0).pvalue
    )
    assert found.adjusted == found.difference.p
    assert found.significant == (found.difference.p <= 0.05)


def test_one_score_some_scores_and_scores_that_are_not_there(two, toy):
    def names(**given):
        return [found.score.name for found in compare_pairs([two], Choice(**given))[0]]

    assert names() == ["mean"]
    assert names(scores=["b/mean", "mean"]) == ["b/mean", "mean"]
    with pytest.raises(BiasError, match="spread can't be compared item by item"):
        names(scores=["mean", "spread"])
    with pytest.raises(BiasError, match="--scores meen: .*Did you mean mean"):
        names(scores=["meen", "x"])
    with pytest.raises(BiasError, match="no score"):
        compare_pairs([], Choice())
    toy.main = ()  # then all that can be compared are
    assert names() == ["mean", *(f"{trait}/mean" for trait in "abcdefgh")]


def test_tests_are_counted_for_the_level_and_each_is_tested_at_it(two, tmp_path):
    nothing = pair(two.base, side("third", tmp_path, {**OTHER, "a0": NAN}))
    every = [two, nothing, pair(two.base, side("fourth", tmp_path, OTHER))]
    found, _ = compare_pairs(every, Choice())
    p, undefined_p, same_p = (f.difference.p for f in found)
    assert math.isnan(undefined_p)
    assert (found[1].base_value, found[1].other_value) == pytest.approx(
        (0.0, NAN), nan_ok=True
    )
    assert found[1].verdict == "third: the model gave nan for 1 of 8 items"
    assert [f.level for f in found] == [0.05 / 2] * 3
    assert p == same_p
    assert [f.adjusted for f in found] == pytest.approx(
        [2 * p, NAN, 2 * p], nan_ok=True
    )
    everything, _ = compare_pairs(
        [two], Choice(scores=["mean", *(f"{trait}/mean" for trait in "abcdefgh")])
    )
    assert [f.level for f in everything] == [pytest.approx(0.05 / 9)] * 9


def test_what_cannot_be_paired_is_refused_unless_it_may_be_unpaired(toy, tmp_path):
    versions = [{"version": f"{n}", "documents": 30 + n, "scores": [score(value=n, stderr=0.3 + n / 10)]}
             for n in (0, 1)]  # fmt: skip
    two = pair(
        *(
            side(name, tmp_path, BASE, **given)
            for name, given in zip(("one", "two"), versions, strict=True)
        )
    )
    with pytest.raises(
        BiasError, match=r"toy: one and two .* version 0 and 1; --unpaired"
    ):
        compare_pairs([two], Choice())
    ((found,), _) = compare_pairs([two], Choice(unpaired=True))
    assert (found.base_value, found.other_value, found.paired, found.items) == (
        0,
        1,
        False,
        7,
    )
    assert found.note.startswith("unpaired: version 0 and 1; ")
    assert found.note.endswith(
        "; one: trial run, 30 of 8 items; two: trial run, 31 of 8 items"
    )
    assert found.difference.value == 1.0
    assert found.difference.stderr == pytest.approx(0.5)  # of 0.3 and 0.4
    assert found.difference.p == pytest.approx(2 * stats.norm.sf(2.0))


def test_single_items_that_a_translation_lacks_are_said(toy, tmp_path):
    ten, eleven = spread_over("abcdefghij"), spread_over("abcdefghijk", values=(0.25,))
    every = [
        "mean",
        *(f"{trait}/mean" for trait in "abcdefghij"),
    ]  # breakdowns of the items that both have
    for base, other in ((ten, eleven), (eleven, ten)):
        two = pair(
            side("en", tmp_path, base), side("de", tmp_path, other, language="de")
        )
        found, _ = compare_pairs([two], Choice(by="language", scores=every))
        assert [one.score.name for one in found] == every
        assert (found[0].paired, found[0].items) == (True, 10)
        assert found[0].note.startswith("1 unmatched items left out")
        with pytest.raises(BiasError, match="k/mean"):
            compare_pairs([two], Choice(by="language", scores=["k/mean"]))
    few = pair(
        side("en", tmp_path, ten),
        side("de", tmp_path, spread_over("abcdklmnop"), language="de"),
    )
    with pytest.raises(BiasError, match="10 and 10, 4 of them the same"):
        compare_pairs([few], Choice(by="language"))


@pytest.mark.parametrize("better", [True, None])
@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_what_can_be_found_is_found_in_four_of_five(better, margin):
    """Draws of a difference, and of its sum, whose truth is what the power analysis says."""
    one = finding(value=0.02, total=0.02, better=better, neutral=0.0)
    start = math.inf if better else 0.0

    def detectable(margin, room=1.0):
        return power.smallest_worsening(one.difference, 0.05, start, margin, room)

    found = detectable(margin)
    rng = np.random.default_rng(3)
    reach = EDGE * 0.1
    off = found + 0.1 * rng.standard_normal((2, 40_000)) - margin
    is_found = (off > reach)[: 1 if better else 2].all(axis=0)
    assert 0.79 < is_found.mean() < 0.81
    assert math.isnan(detectable(5.0))


def test_a_score_that_one_result_file_lacks_is_not_tested(toy, tmp_path):
    two = pair(side("one", tmp_path, scores=[score(value=0.2)]), side("two", tmp_path))
    ((found,), _) = compare_pairs([two], Choice(unpaired=True))
    assert found.verdict == "mean is not in both result files"
    assert (found.base_value, math.isnan(found.other_value)) == (0.2, True)
    assert all(map(math.isnan, (found.difference.value, found.difference.p)))
