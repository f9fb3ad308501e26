"""Intervals of rank: worked cases and a slow version; ``simulations`` measures how often they hold."""

import math

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.boards.rank_intervals import Point, intervals, p_values

ALONE = np.full((5, 2, 2), math.nan)


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
