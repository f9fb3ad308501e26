"""Intervals of rank: worked cases and a slow version; ``simulations`` measures how often they hold."""

import math

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.boards.rank_intervals import Point, intervals, p_values
from lm_eval_bias.custom_metrics.clusters import share_of, tabulate

ALONE = np.full((5, 2, 2), math.nan)


def text(points, neutral=None, better=None):
    return [str(rank) for rank in intervals(points, neutral, better)]


@pytest.mark.parametrize(
    ("points", "rule", "ranks"),
    [
        ([(0.9, 0.01), (0.1, 0.01), (0.5, 0.01)], {"better": True}, "1 3 2"),
        ([(0.9, 0.01), (0.1, 0.01), (0.5, 0.01)], {"better": False}, "3 1 2"),
        # distances 8, 2, 8 (other side), 30
        ([(58, 0.5), (52, 0.5), (42, 0.5), (20, 0.5)], {"neutral": 50}, "2–3 1 2–3 4"),
        # a difference alone, or a sum alone, orders nothing: far apart but equally far from 50; the same place
        ([(44, 0.5), (56, 0.5)], {"neutral": 50}, "1–2 1–2"),
        ([(56.0, 0.5), (56.1, 0.5)], {"neutral": 50}, "1–2 1–2"),
        # t = 2.26: few degrees of freedom widen the intervals
        ([(0.0, 1.0), (3.2, 1.0)], {"better": True}, "2 1"),
        ([(0.0, 1.0, 3), (3.2, 1.0, 3)], {"better": True}, "1–2 1–2"),
        ([(1.0, 0.1)], {"better": True}, "1"),
        # half of the answers can't show a bias: the others have to be twice as near
        ([(0.2, 0.001, math.inf, None, 0.5), (0.3, 0.001)], {"neutral": 0}, "1–2 1–2"),
        ([(0.14, 0.001, math.inf, None, 0.5), (0.3, 0.001)], {"neutral": 0}, "1 2"),
        ([(0.2, 0.001), (0.3, 0.001, math.inf, None, 0.5)], {"neutral": 0}, "1 2"),
    ],
)
def test_worked_cases(points, rule, ranks):
    found = intervals(
        [Point(*point) for point in points], rule.get("neutral"), rule.get("better")
    )
    assert (" ".join(map(str, found)), {rank.of for rank in found} - {len(points)}) == (
        ranks,
        set(),
    )


def test_differences_with_an_error_of_their_own_take_its_place():
    points = [Point(3.0, 1.0), Point(2.0, 1.0)]
    told = np.array([1.0, 0.0455, 5.0, 0.8, math.inf])
    pairs = ALONE.copy()
    pairs[:, 0, 1] = told
    pairs[:, 1, 0] = told * [-1, 1, 1, 1, 1]
    small, large, beside = 0.02275, 0.97725, 2 * stats.norm.sf(0.25)
    rules = {
        (None, True): (small, large),
        (None, False): (large, small),
        (1.0, None): (1.0, 0.0455),
    }
    for rule, expected in {
        **rules,
        (2.4, None): (1.0, beside),
        (2.6, None): (beside, 1.0),
    }.items():
        p = p_values(points, *rule, pairs)
        assert (p[0, 1], p[1, 0]) == pytest.approx(expected)


def test_p_values_by_hand():
    # t = 1 against a model that is known exactly: Welch's degrees of freedom are 1, the tail is 1/2 - atan(1)/pi = 1/4
    p = p_values([Point(0.0, 1.0, 1), Point(1.0, 1e-9)], None, True, ALONE)
    assert p == pytest.approx(np.array([[1, 3 / 4], [1 / 4, 1]]), abs=1e-8)
    assert p_values([Point(0.0, 1.0), Point(1.0, 1e-9)], None, True, ALONE)[
        1, 0
    ] == pytest.approx(0.158655254, abs=1e-8)
    # distances 0.2 and 0.5 from 50 on the same side: the further one is never better
    p = p_values([Point(50.2, 1.0), Point(50.5, 1.0)], 50.0, None, ALONE)
    assert p == pytest.approx(
        np.array([[1, 2 * stats.norm.sf(0.3 / math.sqrt(2))], [1, 1]]), abs=1e-12
    )


def answered(values, paired=True):
    """A model with these values, one a cluster."""
    form = tabulate(range(len(values)), [(1.0, value) for value in values], share_of)
    stderr = np.std(values, ddof=1) / math.sqrt(len(values))
    return Point(
        float(np.mean(values)), stderr, len(values) - 1, form if paired else None
    )


def test_pairs_with_answers_are_told_from_those_without():
    rng = np.random.default_rng(6)
    common = rng.standard_normal(40)
    first, second = (
        answered(common + 0.1 * rng.standard_normal(40) + mean) for mean in (0, 0.2)
    )
    apart = [Point(p.value, p.stderr, p.dof) for p in (first, second)]
    assert text([first, second], better=True) == ["2", "1"]
    assert text([first, second], better=False) == ["1", "2"]
    assert text(apart, better=True) == ["1–2", "1–2"]
    far = Point(9.0, 0.01)
    mixed = intervals([first, second, far], None, True)
    assert [(str(rank), rank.apart) for rank in mixed] == [("3", 1), ("2", 1), ("1", 2)]
    other = answered(np.append(common, 0.0))  # on other items
    assert [r.apart for r in intervals([first, other], 0.0, None)] == [1, 1]
    same = intervals([first, first], 0.0, None)  # the same answers, which have no error
    assert [(r.low, r.high, r.apart) for r in same] == [(1, 2, 0)] * 2
    constant = answered(common + 1.0)  # nothing varied in the difference
    assert [r.apart for r in intervals([answered(common), constant], None, True)] == [
        1,
        1,
    ]
