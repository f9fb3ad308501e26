"""What the harness's task class keeps of a run's documents."""

import pickle
import warnings

import pytest

from lm_eval_bias.core import errors
from lm_eval_bias.custom_metrics.score import Estimate, Score
from lm_eval_bias.harness.score_aggregation import (
    Aggregation,
    Recorded,
    carrying,
    in_table,
)


def compute(records):
    return Estimate(1 / (len(records) - 1), 0.5, len(records))


def score(name="s", **more):
    options = {"statistic": compute, "contribution": lambda record: 1.0, **more}
    return Score(name, low=0, high=1, **options)


def aggregation(*scores, table=None):
    entries = {one.name: {} for one in scores}
    return Aggregation("t", scores, scores if table is None else table, entries)


FAILED = [Recorded(n, {}, f"document {n}: record failed") for n in range(2)]
SOUND = [Recorded(n, {"item": n}) for n in range(3, 6)]


@pytest.mark.parametrize("between_ranks", [False, True])
@pytest.mark.parametrize(
    ("records", "value", "reason"),
    [
        (SOUND, 0.5, None),
        ([*SOUND, FAILED[0]], "N/A", "document 0: record failed"),
        (
            [*SOUND, *FAILED],
            "N/A",
            "document 0: record failed, and 1 more documents",
        ),
        (
            SOUND[:1],
            "N/A",
            "the score s failed (ZeroDivisionError: division by zero)",
        ),
    ],
)
def test_a_document_without_a_record_and_a_score_that_fails_have_no_value_but_a_reason(
    records, value, reason, between_ranks
):
    total = aggregation(score())
    total.records = list(records)
    values = []
    if between_ranks:  # this rank has the first document alone
        total.records = records[:1]
        values = [carrying(None, record) for record in records]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert total.functions["s"](values) == value
    assert total.functions["s_stderr"]([]) == (0.5 if reason is None else "N/A")
    assert total._entries["s"].get("note") == reason
    assert bool(errors.FAULTS) is ("ZeroDivisionError" in (reason or ""))
    errors.FAULTS.clear()


def test_scores_outside_of_the_table_stand_in_their_entries():
    total = aggregation(score(), score("own"), table=[score()])
    total.records = list(SOUND)
    assert (total.functions["s"]([]), set(total.functions)) == (0.5, {"s", "s_stderr"})
    assert total._entries["own"] == {"n": 3, "dof": None, "value": 0.5, "stderr": 0.5}
    assert total._entries["s"] == {"n": 3, "dof": None}


def test_the_table_has_the_main_scores_or_all_that_are_no_cells():
    scores = [score(), score("own"), score("own/men", headline=False)]
    for main, names in ((["own"], "own"), ([], "s own"), (["none"], "s own")):
        assert [one.name for one in in_table(scores, main)] == names.split()


@pytest.mark.parametrize("contribution", [0.5, None])
def test_a_carried_record_can_be_pickled(contribution):
    carrier = carrying(contribution, SOUND[0])
    again = pickle.loads(pickle.dumps(carrier))  # noqa: S301
    assert (again, again.recorded) == (contribution or "N/A", SOUND[0])


def test_documents_of_all_ranks_are_in_the_order_of_the_task():
    seen = []
    total = aggregation(
        score(statistic=lambda records: seen.extend(records) or compute(records))
    )
    total.functions["s"]([carrying(1.0, record) for record in reversed(SOUND)])
    assert [record["item"] for record in seen] == [3, 4, 5]
