"""Scores as metrics of the harness: a value per document, aggregated to a value and a standard error.

The harness gets the main scores alone (:func:`in_table`); the others stand in the task's ``metric_list``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from lm_eval_bias.core import Data
from lm_eval_bias.core.errors import fault, kind_of
from lm_eval_bias.core.numbers import plain
from lm_eval_bias.custom_metrics.score import (
    Estimate,
    ImpossibleEstimate,
    Record,
    Score,
    Undefined,
    finite,
    undefined,
)

Result = float | str  # a number, or UNDEFINED
# of an estimate, where it has them
_DETAILS = (
    "interval",
    "fixed_interval",
    "no_claim_reason",
    "clusters",
    "statistics",
)
UNDEFINED = "N/A"  # in the harness's results, as it writes what has no value itself


class Recorded(NamedTuple):
    """The record of a document.

    Attributes:
        place: Of the document in its task: the harness puts one rank's documents behind another's.
        record: The record.
        failure: Why there is none; empty if there is one.
    """

    place: int
    record: Record
    failure: str = ""


class Carrier(float):
    """A document's contribution to a score, which carries its record between ranks."""

    recorded: Recorded


class BareCarrier(str):
    """A missing contribution that carries a record; ``nan`` would be invalid JSON in the harness's logs."""

    recorded: Recorded


def carrying(contribution: float | None, recorded: Recorded) -> Carrier | BareCarrier:
    """Attach a record to a document's contribution."""
    carrier: Carrier | BareCarrier
    if contribution is None:
        carrier = BareCarrier(UNDEFINED)
    else:
        carrier = Carrier(contribution)
    carrier.recorded = recorded
    return carrier


def in_results(number: float) -> Result:
    """Return a number for the harness's results; :data:`UNDEFINED` for nan.

    >>> in_results(0.5), in_results(float("nan"))
    (0.5, 'N/A')
    """
    return number if math.isfinite(number) else UNDEFINED


def in_table(scores: Sequence[Score], main: Sequence[str]) -> list[Score]:
    """Choose the scores for the harness's tables and logs: the main ones, else all headline scores."""
    chosen = [score for score in scores if score.name in main]
    return chosen or [score for score in scores if score.headline] or list(scores)


class Aggregation:
    """A task's aggregation functions for the harness; all scores are estimated when it calls the first.

    Attributes:
        records: Of this rank's documents, until they are estimated.
        documents: How many the task has, where its benchmark is another package's: then a main score without a value,
            or with one that it can't have, is a fault. Of ours it is the model's: 0.
        directions: Whether more of a metric is better; ``None`` for metrics without a better end.
        functions: By metric, what makes its number of the values of all documents.
    """

    def __init__(
        self, task: str, scores: Sequence[Score], table: Sequence[Score], entries: Data
    ) -> None:
        """Make the functions.

        Args:
            task: The task's name.
            scores: All its scores.
            table: Those that are metrics.
            entries: What the result file says of each score, by name; they get reason, intervals and degrees of
                freedom, and value and standard error of those that aren't metrics.
        """
        self.records: list[Recorded] = []
        self.directions: dict[str, bool | None] = {}
        self.functions: dict[str, Callable[[Sequence[object]], Result]] = {}
        self.documents = 0
        self._task = task
        self._scores = scores
        self._entries = entries
        self._estimates: dict[str, Estimate] = {}
        for score in table:
            self.functions[score.name] = partial(self._number, score.name, "value")
            self.directions[score.name] = score.higher_is_better
            if score.has_stderr:  # what the harness shows in its Stderr column
                error = f"{score.name}_stderr"
                self.functions[error] = partial(self._number, score.name, "stderr")

    def _number(self, score: str, which: str, values: Sequence[object]) -> Result:
        """Return a score or its standard error; :data:`UNDEFINED` without one."""
        return in_results(getattr(self.estimates(values)[score], which))

    def estimates(self, values: Sequence[object] = ()) -> dict[str, Estimate]:
        """Estimate all scores of the records collected since the last call.

        Args:
            values: Of a metric, of all ranks one behind another; their carriers stand for this rank's records.
        """
        carried = [each.recorded for each in values if hasattr(each, "recorded")]
        records = carried or self.records
        if records and (self.records or not self._estimates):
            records.sort(key=operator.attrgetter("place"))
            self._estimates = {
                score.name: self._estimate(score, records) for score in self._scores
            }
            self.records = []
            self._refuse_none(len(records))
        return self._estimates

    def _refuse_none(self, count: int) -> None:
        """Record a fault if no main score has a value although all documents were asked."""
        main = [self._estimates[name] for name in self.directions]
        if count >= self.documents > 0 and all(math.isnan(each.value) for each in main):
            fault(f"{self._task}: no main score has a value: {main[0].reason}")

    def _estimate(self, score: Score, recorded: Sequence[Recorded]) -> Estimate:
        """Estimate a score and complete its entry; undefined if a record is missing or the score raises."""
        failed = [each.failure for each in recorded if each.failure]
        records = [each.record for each in recorded]
        if failed:
            more = f", and {len(failed) - 1} more documents" if failed[1:] else ""
            estimate = undefined(f"{failed[0]}{more}", len(records))
        else:
            try:
                estimate = score.estimated(records)
            except Undefined as error:
                estimate = undefined(str(error), len(records))
                if self.documents and isinstance(error, ImpossibleEstimate):
                    fault(f"{self._task}: {error}")
            except Exception as error:
                # other people's code must not lose the run's answers
                text = f"the score {score.name} failed ({kind_of(error)})"
                fault(f"{self._task}: {text}")
                estimate = undefined(text, len(records))
        entry = self._entries[score.name]
        entry |= {"n": estimate.n, "dof": finite(estimate.dof)}
        if score.name not in self.functions:
            entry |= plain({"value": estimate.value, "stderr": estimate.stderr})
        details = {name: getattr(estimate, name) for name in _DETAILS}
        details["note"] = estimate.reason
        entry |= {name: plain(fact) for name, fact in details.items() if fact}
        return estimate
