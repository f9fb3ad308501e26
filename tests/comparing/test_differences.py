"""What a difference says in words, which scores are compared, and by how much p-values are corrected."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.comparing.findings import Choice, Finding, adjust, find
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.custom_metrics.clusters import Clusters, share_of
from lm_eval_bias.custom_metrics.differences import Difference
from lm_eval_bias.custom_metrics.score import Score, undefined
from tests.support.toy import pair, score, side, spread_over

NAN = math.nan


def difference(value=0.5, sum_value=1.0, sum_stderr=0.1, dof=math.inf, reason=""):
    return Difference(value, 0.1, dof, 0.01, sum_value, sum_stderr, reason, "t")


def found(adjusted=0.01, neutral=0.0, higher_is_better=None, note="", **of):
    scale = Score("s", "", 0, 1, neutral, "", "", "", lambda rows: undefined(""), lambda row: None, higher_is_better)
    return Finding("task", "base", "other", scale, 0.0, 0.0, difference(**of), adjusted, True, 9, note)


def says(**of):
    return found(**of).verdict


@pytest.mark.parametrize("value", [0.5, -0.5])
@pytest.mark.parametrize(("better", "said"), [(True, "better"), (False, "better"), (None, "higher")])
def test_who_is_better_or_higher(value, better, said):
    who = "other" if (value > 0) is not (better is False) else "base"
    assert says(value=value, higher_is_better=better, neutral=None) == f"{said} with {who}"


@pytest.mark.parametrize(
    ("base", "other", "further"),
    [(45.0, 70.0, "other"), (55.0, 30.0, "other"), (30.0, 55.0, "base"), (70.0, 45.0, "base")],
)
def test_which_of_two_values_is_further_from_a_neutral_value(base, other, further):
    # 50 is neutral: 5 off and 20 off, on opposite sides
    said = says(value=other - base, sum_value=other + base, sum_stderr=1.0, neutral=50.0)
    assert said == f"further from neutral with {further}"


def test_further_from_neutral_is_told_outside_the_95_percent_interval_of_the_sum_alone():
    edge = stats.norm.ppf(0.975)
    for total, sure in ((edge + 0.01, True), (edge - 0.01, False), (-edge - 0.01, True), (-edge + 0.01, False)):
        assert ("is uncertain" not in says(sum_value=total, sum_stderr=1.0)) == sure
        # half the error, half the distance
        assert ("is uncertain" not in says(sum_value=total / 2, sum_stderr=0.5)) == sure
    assert (
        says(sum_value=edge - 0.01, sum_stderr=1.0)
        == "higher with other; which one is further from neutral is uncertain"
    )
    assert says(value=-0.5, sum_value=0.0).startswith("higher with base; ")
    # Student's t with 2 degrees of freedom reaches 4.30 errors
    assert "is uncertain" in says(sum_value=4.2, sum_stderr=1.0, dof=2.0)
    assert "is uncertain" not in says(sum_value=4.4, sum_stderr=1.0, dof=2.0)
    assert "is uncertain" in says(sum_value=9.0, sum_stderr=NAN)


def test_at_the_level_a_difference_is_told_and_what_cannot_be_tested_has_its_reason():
    assert says(adjusted=0.05) == "further from neutral with other"
    assert says(adjusted=0.0501) == "no significant difference"
    assert says(adjusted=1.0, reason="why") == "no significant difference: why"
    assert says(adjusted=NAN, reason="only one cluster", note="unpaired") == "only one cluster"
    assert says(adjusted=NAN, note="unpaired: seeds") == "unpaired: seeds"
    assert says(adjusted=NAN)


def test_corrections_count_no_p_value_that_is_no_test():
    p = [0.04, NAN, 0.01, 0.03, NAN]
    assert adjust(p, "none")[2:4] == [0.01, 0.03]
    assert adjust(p, "holm") == pytest.approx([0.06, NAN, 0.03, 0.06, NAN], nan_ok=True)
    # three tests: 0.04, 0.01 x 3, and 0.03 x 3 / 2 made monotone to 0.04
    assert adjust(p, "bh") == pytest.approx([0.04, NAN, 0.03, 0.04, NAN], nan_ok=True)
    for correction in ("none", "bh", "holm"):
        assert adjust([], correction) == []
        assert adjust([NAN, NAN], correction) == pytest.approx([NAN, NAN], nan_ok=True)
        assert p[0] == 0.04  # what was given stays as it was


# By 8 traits: +1, +1, +1, +1, +1, +1, +1, -1 beside 0: the mean is 0.75.
BASE = spread_over(values=(0.0,))
OTHER = {**spread_over(values=(1.0,)), "h0": -1.0}


@pytest.fixture
def two(toy, tmp_path):
    return pair(side("one", tmp_path, BASE), side("two", tmp_path, OTHER))


def test_values_difference_and_test_of_two_runs(two):
    ((found,), _) = find([two], Choice())  # "gone", the other main score, is not among the benchmark's
    assert (found.subject, found.base, found.other, found.score.name) == ("toy", "one", "two", "mean")
    assert (found.base_value, found.other_value, found.difference.value) == (0.0, 0.75, 0.75)
    assert (found.paired, found.items) == (True, 8)
    # one item in each cluster: a plain t test
    assert found.difference.p == pytest.approx(stats.ttest_1samp(list(OTHER.values()), 0.0).pvalue)
    assert found.adjusted == found.difference.p
    assert found.level == 0.05
    assert found.significant == (found.difference.p <= 0.05)


def test_one_score_some_scores_and_scores_that_are_not_there(two):
    def names(**given):
        return [found.score.name for found in find([two], Choice(**given))[0]]

    assert names() == ["mean"]
    assert names(scores=["b/mean", "mean"]) == ["b/mean", "mean"]
    with pytest.raises(BiasError, match="spread can't be compared item by item"):
        find([two], Choice(scores=["mean", "spread"]))
    with pytest.raises(BiasError, match="--scores meen: .*Did you mean mean"):
        find([two], Choice(scores=["meen", "x"]))
    with pytest.raises(BiasError):
        find([], Choice())


def test_without_main_scores_all_that_can_be_compared_are(two, toy):
    toy.main = ()
    assert [found.score.name for found in find([two], Choice())[0]] == ["mean", *(f"{t}/mean" for t in "abcdefgh")]


def test_tests_are_counted_for_the_level_and_each_is_tested_at_it(two, toy, tmp_path):
    nothing = pair(two.base, side("third", tmp_path, {**OTHER, "a0": NAN}))
    found, _ = find([two, nothing, pair(two.base, side("fourth", tmp_path, OTHER))], Choice())
    p, undefined_p, same_p = (f.difference.p for f in found)
    assert math.isnan(undefined_p)
    assert found[1].verdict == "third: the model gave nan for 1 of 8 items"
    assert [f.level for f in found] == [0.025] * 3  # two tests
    assert p == same_p
    assert [f.adjusted for f in found] == pytest.approx([2 * p, NAN, 2 * p], nan_ok=True)
    free, _ = find([two, nothing, pair(two.base, side("fifth", tmp_path, OTHER))], Choice(correction="none"))
    assert [f.level for f in free] == [0.05] * 3
    assert free[0].adjusted == free[0].difference.p == p
    everything, _ = find([two], Choice(scores=["mean", *(f"{trait}/mean" for trait in "abcdefgh")]))
    assert [f.level for f in everything] == [pytest.approx(0.05 / 9)] * 9


def test_where_nothing_can_be_tested_the_level_is_that_of_one_test(toy, tmp_path):
    nothing = pair(side("one", tmp_path, {**BASE, "a0": NAN}), side("two", tmp_path, OTHER))
    ((found,), _) = find([nothing], Choice())
    assert (found.level, found.verdict) == (0.05, "one: the model gave nan for 1 of 8 items")
    assert math.isnan(found.base_value)
    assert found.other_value == 0.75
    nothing_told = Difference(*[NAN] * 6, "one: the model gave nan for 1 of 8 items")
    assert vars(found.difference) == pytest.approx(vars(nothing_told), nan_ok=True)
    assert not found.significant
    neither = pair(nothing.base, side("two", tmp_path, {**OTHER, "b0": NAN, "c0": NAN}))
    ((found,), _) = find([neither], Choice())
    assert found.verdict.startswith("one: ")
    assert math.isnan(found.other_value)


def test_designs_that_do_not_match_are_not_tested(two, toy):
    def table(records):
        names = sorted(record["trait"] for record in records)
        if records[0]["value"]:
            names[0] = "other"
        totals = [[1.0, record["value"]] for record in records]
        return Clusters(names, np.ones(8), np.array(totals), share_of)

    scores = [replace(toy.scores()[0], table=table)]
    toy.scores = lambda docs=(), detailed=False: scores
    ((found,), _) = find([two], Choice())
    assert found.verdict == "the clusters differ"
    assert (found.base_value, found.other_value) == (0.0, 0.75)


def test_what_cannot_be_paired_is_refused_unless_it_may_be_unpaired(toy, tmp_path):
    seeds = [{"provenance": {"seeds": [n]}, "documents": 30 + n, "scores": [score(value=n, stderr=0.3 + n / 10)]}
             for n in (0, 1)]  # fmt: skip
    two = pair(*(side(name, tmp_path, BASE, **given) for name, given in zip(("one", "two"), seeds, strict=True)))
    with pytest.raises(BiasError, match=r"toy: one and two .* seeds \[0\] and \[1\]; --unpaired"):
        find([two], Choice())
    ((found,), _) = find([two], Choice(unpaired=True))
    assert (found.base_value, found.other_value, found.paired, found.items) == (0, 1, False, 30)
    assert found.note.startswith("unpaired: seeds [0] and [1]; ")
    assert found.note.endswith("; one: trial run, 30 of 8 items; two: trial run, 31 of 8 items")
    assert found.difference.value == 1.0
    assert found.difference.stderr == pytest.approx(0.5)  # of 0.3 and 0.4
    assert found.difference.p == pytest.approx(2 * stats.norm.sf(2.0))


def test_unpaired_intervals_know_few_degrees_of_freedom(toy, tmp_path):
    sides = [
        side("one", tmp_path, scores=[score(value=0.0, stderr=0.3, dof=4.0)]),
        side("two", tmp_path, scores=[score(value=1.0, stderr=0.4, dof=9.0)]),
    ]
    ((found,), _) = find([pair(*sides)], Choice(unpaired=True, scores=["mean"]))
    # Welch: (0.09 + 0.16)^2 / (0.09^2 / 4 + 0.16^2 / 9)
    dof = 0.0625 / (0.0081 / 4 + 0.0256 / 9)
    assert found.difference.dof == pytest.approx(dof)
    assert found.difference.p == pytest.approx(2 * stats.t.sf(2.0, dof))


@pytest.mark.parametrize("without", ["base", "other", "both"])
def test_without_a_log_runs_are_compared_by_their_results_alone(without, toy, tmp_path):
    values = [score(value=0.0), score(value=1.0)]
    sides = [
        side(name, tmp_path, None if without in (name, "both") else BASE, scores=[value])
        for name, value in zip(("base", "other"), values, strict=True)
    ]
    with pytest.raises(BiasError, match="base and other can't be compared item by item: no sample logs; "):
        find([pair(*sides)], Choice())
    ((found,), _) = find([pair(*sides)], Choice(unpaired=True))
    assert (found.difference.value, found.paired, found.items) == (1.0, False, 8)
    assert found.note.startswith("unpaired: no sample logs; ")
    # which breakdowns there are is told by whichever log there is
    if without != "both":
        ((found,), _) = find([pair(*sides)], Choice(unpaired=True, scores=["a/mean"]))
        assert found.score.name == "a/mean"


def test_a_score_that_one_result_file_lacks_is_not_tested(toy, tmp_path):
    sides = [side("one", tmp_path, scores=[score(value=0.2)]), side("two", tmp_path)]
    for base, other, values in ((*sides, (0.2, NAN)), (*sides[::-1], (NAN, 0.2))):
        ((found,), _) = find([pair(base, other)], Choice(unpaired=True))
        assert found.verdict == "mean is not in both result files"
        assert (found.base_value, found.other_value) == pytest.approx(values, nan_ok=True)
        assert math.isnan(found.difference.p)


def test_single_items_that_a_translation_lacks_are_said(toy, tmp_path):
    ten, eleven = spread_over("abcdefghij"), spread_over("abcdefghijk", values=(0.25,))
    for base, other in ((ten, eleven), (eleven, ten)):
        two = pair(side("en", tmp_path, base), side("de", tmp_path, other, language="de"))
        ((found,), _) = find([two], Choice(by="language"))
        assert (found.paired, found.items) == (True, 10)
        assert found.note.startswith("1 unmatched items left out")


def test_breakdowns_are_those_of_the_items_that_both_have_as_the_base_names_them(toy, tmp_path):
    ten = spread_over("abcdefghij")
    more = pair(side("en", tmp_path, {**ten, "k0": 0.5}), side("de", tmp_path, ten))
    every = ["mean", *(f"{trait}/mean" for trait in "abcdefghij")]
    names = [found.score.name for found in find([more], Choice(by="language", scores=every))[0]]
    assert names == ["mean", *(f"{trait}/mean" for trait in "abcdefghij")]
    named = pair(side("one", tmp_path, ten, {"trait": "x"}), side("two", tmp_path, ten, {"trait": "y"}))
    chosen = Choice(by="language", scores=["mean", "x/mean"])
    assert [found.score.name for found in find([named], chosen)[0]] == ["mean", "x/mean"]


def test_without_another_word_runs_are_compared(toy, tmp_path):
    asked = [{"metadata": {"inputs": {"documents": digit * 64}}} for digit in "12"]
    two = pair(*(side(name, tmp_path, BASE, **given) for name, given in zip(("one", "two"), asked, strict=True)))
    with pytest.raises(BiasError, match="other prompts for the same documents"):
        find([two], Choice())  # which two instructions may well have
    assert len(find([two], Choice(by="tone"))[0]) == 1


def test_many_runs_are_not_held_in_memory(two, toy, tmp_path):
    third = side("three", tmp_path, OTHER)
    pairs = [two, pair(two.base, third)]
    find(pairs, Choice())
    assert "records" not in vars(two.other)
    assert "records" not in vars(third)
    assert not any("records" in vars(one) for one in pairs)
    assert "records" in vars(two.base)  # which the next is compared with


def test_the_rest_of_what_differs_stands_in_the_note(toy, tmp_path):
    known = {"metadata": {"inputs": {"documents": "1" * 64}}}
    sides = [side(name, tmp_path, BASE, provenance={"dtype": name}, **known) for name in ("one", "two")]
    ((found,), _) = find([pair(*sides)], Choice())
    assert found.note == "the runs differ in dtype (one, two)"
    assert found.verdict == "no significant difference: the models' answers are the same in every cluster"
