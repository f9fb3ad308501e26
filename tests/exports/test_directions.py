"""A direction only where there is one: a neutral value in the middle is a distance, and what was measured stays."""

import math

import pytest

from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.exports.directed_scores import NO_DIRECTION, Omitted, directed

TASK = TaskRun("stereoset_en", "stereoset", "en", "1.0", 10, 10, {}, {})


def a_value(**fields):
    return Value(**{"name": "ss", "value": 40.0, "low": 0.0, "high": 100.0, "neutral": 50.0, **fields})


@pytest.mark.parametrize(
    ("fields", "number", "ends", "high"),
    [
        ({"value": 57.0, "interval": (54.0, 60.0)}, 7.0, (4.0, 10.0), 50.0),
        ({"value": 43.0, "interval": (40.0, 46.0)}, 7.0, (4.0, 10.0), 50.0),  # the mirror image, and the same distance
        ({"value": 51.0, "interval": (48.0, 54.0)}, 1.0, (0.0, 4.0), 50.0),  # it may be 0
        ({"value": 49.0, "interval": (44.0, 54.0)}, 1.0, (0.0, 6.0), 50.0),
        ({"value": 50.0}, 0.0, None, 50.0),
        ({"value": 0.5, "high": 1.0, "neutral": 0.25}, 0.25, None, 0.75),  # a range that is not even
        ({"value": 3.0, "low": -math.inf, "high": math.inf, "neutral": 0.0}, 3.0, None, math.inf),
    ],
)
def test_distances(fields, number, ends, high):
    one = directed(TASK, a_value(stderr=1.5, **fields))
    assert (one.name, one.number, one.interval, one.value.value) == ("ss_distance", number, ends, fields["value"])
    assert (one.low, one.high, one.lower_is_better, one.is_distance) == (0.0, high, True, True)


@pytest.mark.parametrize("better", [True, False])
def test_a_direction_that_the_score_has(better):
    one = directed(TASK, a_value(higher_is_better=better, neutral=100.0, interval=(30.0, 50.0)))
    assert (one.name, one.number, one.interval, one.low, one.high) == ("ss", 40.0, (30.0, 50.0), 0.0, 100.0)
    assert (one.lower_is_better, one.is_distance) == (not better, False)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        *(({"neutral": neutral}, NO_DIRECTION) for neutral in (None, 0.0, 100.0)),
        ({"value": math.nan, "note": "no items", "higher_is_better": True}, "no value: no items"),
    ],
)
def test_what_has_no_direction_or_value_is_left_out(fields, reason):
    one = directed(TASK, a_value(**fields))
    assert isinstance(one, Omitted)
    assert one.reason == reason
