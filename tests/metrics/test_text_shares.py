"""Shares of texts and their differences over contexts in strata: both intervals, by hand."""

import math
from functools import partial

import pytest
from scipy import stats

from lm_eval_bias.custom_metrics.intervals import score_interval
from lm_eval_bias.custom_metrics.text_shares import (
    NO_PROMPTS,
    Row,
    design,
    difference,
    share,
)
from tests.support.oracles import reason_of, wilson

difference_design = partial(design, is_difference=True)


def rows(group=0, strata="aaaaa", **hits):
    """Prompts of a group with 10 texts each, by context."""
    return [
        Row(group, name, stratum, n, 10)
        for (name, n), stratum in zip(hits.items(), strata, strict=False)
    ]


def t(dof):
    return stats.t.ppf(0.975, dof)


NORMAL = stats.norm.ppf(0.975)


def test_a_share_has_both_intervals():
    found = share(rows(x=2, y=4, z=9), "beware")
    variance = 0.13 / 3
    assert (found.value, found.n, found.reason) == (0.5, 30, "beware")
    assert found.stderr == pytest.approx(math.sqrt(variance), abs=1e-12)
    assert found.dof == pytest.approx(2)
    assert found.interval == pytest.approx(
        wilson(0.5, 0.25 / variance, t(2)), abs=1e-9
    )  # 5.8 independent texts
    assert found.fixed_interval == pytest.approx(wilson(0.5, 30), abs=1e-9)


def test_texts_of_no_prompt_have_one_interval():
    own = [*rows(x=2, y=4), Row(0, None, "a", 3, 10)]
    both = [*own, *(row._replace(group=1, hits=5) for row in own)]
    half = NORMAL * math.sqrt((0.21 + 0.25) / 30)
    for found, value, n, ends in (
        (share(own, "beware"), 0.3, 30, wilson(0.3, 30)),
        (difference(both, "beware"), -0.2, 60, (-0.2 - half, half - 0.2)),
    ):
        assert (found.value, found.n, found.reason) == (
            pytest.approx(value),
            n,
            f"{NO_PROMPTS}; beware",
        )
        assert found.fixed_interval == pytest.approx(ends, abs=1e-9)
        assert (math.isnan(found.stderr), found.ends()) == (True, None)
    for form in (design, difference_design):
        assert (reason_of(form, own), reason_of(form, [])) == (NO_PROMPTS, "no texts")


def test_a_difference_has_both_intervals():
    # differences 0.2, -0.1 and 0.5 with 10 texts each: their mean's standard error
    own = [*rows(1, x=2, y=4, z=4), *rows(0, x=4, y=3, z=9)]
    found = difference(own, "beware")
    assert found.value == pytest.approx(0.2, abs=1e-12)
    assert found.stderr == pytest.approx(0.3 / math.sqrt(3), abs=1e-12)
    assert (found.n, found.reason) == (60, "beware")
    assert found.dof == pytest.approx(2)
    p, q = 16 / 30, 10 / 30
    # of as many texts as give that error, where so many pairs of texts differ
    differ = p * (1 - q) + q * (1 - p)
    ends = score_interval(0.2, differ, (differ - 0.2**2) / found.stderr**2, found.dof)
    assert found.ends() == pytest.approx(ends, abs=1e-9)
    half = NORMAL * math.sqrt(p * (1 - p) / 30 + q * (1 - q) / 30)
    assert found.fixed_interval == pytest.approx((0.2 - half, 0.2 + half), abs=1e-12)


@pytest.mark.parametrize("last", [6, 7])
def test_the_error_of_a_difference_is_never_below_that_of_independent_texts(last):
    # the contexts' differences are 0.2, 0.2 and 0.2 or 0.1: less than ten texts a context would let them vary
    found = difference([*rows(0, x=4, y=6, z=8), *rows(1, x=2, y=4, z=last)], "beware")
    p, q = 18 / 30, (6 + last) / 30
    of_texts = math.sqrt(p * (1 - p) / 30 + q * (1 - q) / 30)
    assert (found.value, found.stderr, found.dof) == pytest.approx(
        (p - q, of_texts, 2), abs=1e-12
    )
    assert found.reason == "beware"
    assert (
        found.ends()[0]
        < found.fixed_interval[0]
        < found.fixed_interval[1]
        < found.ends()[1]
    )  # of t, and normal


def test_texts_that_are_all_alike_have_no_error():
    found = difference([*rows(0, x=10, y=10, z=10), *rows(1, x=0, y=0, z=0)], "beware")
    assert found.value == 1
    assert math.isnan(found.stderr)
    assert found.reason == "nothing varied between contexts: no standard error; beware"
    assert found.fixed_interval is None
    near = difference([*rows(0, x=10, y=10, z=10), *rows(1, x=1, y=0, z=0)])
    assert near.fixed_interval[1] == 1.0
    assert (
        difference(
            [*rows(1, x=10, y=10, z=10), *rows(0, x=1, y=0, z=0)]
        ).fixed_interval[0]
        == -1.0
    )
