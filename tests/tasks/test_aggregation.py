"""What the harness's task class keeps of a run's documents."""

from __future__ import annotations

import gc
import pickle

import pytest

from lm_eval_bias.custom_metrics.score import Estimate, Score
from lm_eval_bias.harness.score_aggregation import Aggregation, Notes, Scored


def test_a_scored_number_has_its_record_and_nothing_else():
    made = Scored(0.5, {"item": "vet"})
    assert made + 1 == 1.5
    assert not hasattr(made, "__dict__")
    again = pickle.loads(pickle.dumps(made))  # noqa: S301
    assert (again, again.record) == (0.5, {"item": "vet"})


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
    held = [one for one in gc.get_referrers(values[0].record) if isinstance(one, list)]
    assert held == []
