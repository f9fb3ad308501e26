"""What the harness's task class keeps of a run's documents."""

import math
import pickle
import warnings

import pytest

from lm_eval_bias.core import errors
from lm_eval_bias.custom_metrics.score import Estimate, Score
from lm_eval_bias.harness.score_aggregation import Aggregation, CarriedRecord


def test_a_document_without_a_record_and_a_score_that_fails_are_nan_with_a_reason():
    def compute(records):
        return Estimate(1 / (len(records) - 1), 0.5, len(records))

    score = Score(
        "s", low=0, high=1, statistic=compute, contribution=lambda record: 1.0
    )
    failed = [
        CarriedRecord(None, {}, n, f"document {n}: record failed") for n in range(2)
    ]
    sound = [CarriedRecord(1.0, {"item": n}, n) for n in range(3, 6)]
    for values, value, reason in (
        (sound, 0.5, None),
        ([*sound, failed[0]], math.nan, "document 0: record failed"),
        (
            [*sound, *failed],
            math.nan,
            "document 0: record failed, and 1 more documents",
        ),
        (
            sound[:1],
            math.nan,
            "the score s failed (ZeroDivisionError: division by zero)",
        ),
    ):
        entry = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = Aggregation(score, [], "t", entry).value(values)
            assert given == pytest.approx(value, nan_ok=True)
        assert entry.get("note") == reason
    assert len(errors.FAULTS) == 1
    errors.FAULTS.clear()


def test_a_carried_record_can_be_pickled():
    carrier = CarriedRecord(0.5, {"item": 1}, 3, "why")
    again = pickle.loads(pickle.dumps(carrier))  # noqa: S301
    assert (again, vars(again)) == (0.5, vars(carrier))
