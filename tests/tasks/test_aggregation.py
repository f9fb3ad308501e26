"""What the harness's task class keeps of a run's documents."""

import gc
import math
import pickle
import warnings

import pytest

from lm_eval_bias.core import errors
from lm_eval_bias.custom_metrics.score import Estimate, Score
from lm_eval_bias.harness.score_aggregation import Aggregation, Notes, Scored


def test_a_scored_number_has_its_record_and_nothing_else():
    made = pickle.loads(pickle.dumps(Scored(0.5, {"item": "vet"})))  # noqa: S301
    assert (made, made + 1, made.record) == (0.5, 1.5, {"item": "vet"})
    assert not hasattr(made, "__dict__")


@pytest.mark.parametrize("has_stderr", [True, False])
def test_a_score_is_computed_once_and_lets_go_of_its_records(has_stderr):
    computed = []

    def compute(records):
        computed.append(len(records))
        return Estimate(1.0, 0.5, len(records))

    score = Score("s", "", 0, 1, None, "", "", "", compute, lambda record: 1.0, has_stderr=has_stderr)
    aggregation = Aggregation(score, Notes("t", 1), {})
    values = [Scored(1.0, {"item": n}) for n in range(5)]
    assert aggregation.value(values) == 1.0
    if has_stderr:
        assert aggregation.stderr(values) == 0.5
    assert computed == [5]
    assert not [one for one in gc.get_referrers(values[0].record) if isinstance(one, list)]


def test_a_document_without_a_record_and_a_score_that_fails_are_nan_with_a_reason():
    def compute(records):
        return Estimate(1 / (len(records) - 1), 0.5, len(records))

    score = Score("s", "", 0, 1, None, "", "", "", compute, lambda record: 1.0)
    failed = [Scored(math.nan, f"document {n}: record failed", n) for n in range(2)]
    sound = [Scored(1.0, {"item": n}, n) for n in range(3, 6)]
    for values, value, reason in (
        (sound, 0.5, None),
        ([*sound, failed[0]], math.nan, "document 0: record failed"),
        ([*sound, *failed], math.nan, "document 0: record failed, and 1 more documents"),
        (sound[:1], math.nan, "the score s failed (ZeroDivisionError: division by zero)"),
    ):
        entry = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert Aggregation(score, Notes("t", 1), entry).value(values) == pytest.approx(value, nan_ok=True)
        assert entry.get("note") == reason
    assert len(errors.FAULTS) == 1
    errors.FAULTS.clear()
