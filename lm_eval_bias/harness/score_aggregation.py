"""A score as a metric of the harness: one value per document, aggregated to a value and a standard error."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from lm_eval_bias.core.errors import fault, kind_of
from lm_eval_bias.custom_metrics.score import Estimate, Record, Score, undefined


class CarriedRecord(float):
    """A document's contribution to the first score, which carries the document's record to the aggregation.

    It can be pickled, so that the harness can gather it from several ranks, and knows the place of its document, since
    the harness puts one rank's documents behind another's. For a document that can't be scored it has the reason.
    """

    __slots__ = ("record", "place", "failure")
    record: Record
    place: int
    failure: str

    def __new__(
        cls,
        contribution: float | None,
        record: Record,
        place: int = 0,
        failure: str = "",
    ) -> CarriedRecord:
        """Make a float with a record; ``nan`` where there is no contribution."""
        value = math.nan if contribution is None else contribution
        carrier = super().__new__(cls, value)
        carrier.record, carrier.place, carrier.failure = record, place, failure
        return carrier

    def __reduce__(self) -> tuple[Any, ...]:
        return CarriedRecord, (float(self), self.record, self.place, self.failure)


class TaskRecords:
    """The records of all documents of a task, which its scores share."""

    def __init__(self) -> None:
        """Start without records."""
        self.sound: list[Record] = []
        self.failed: list[str] = []

    def take(self, values: Sequence[Any]) -> None:
        """Take the records from the values of the metric that carries them, in the documents' order."""
        carriers = [value for value in values if isinstance(value, CarriedRecord)]
        carriers.sort(key=operator.attrgetter("place"))
        if carriers:
            self.sound = [value.record for value in carriers if not value.failure]
            self.failed = [value.failure for value in carriers if value.failure]


class Aggregation:
    """A score's value and standard error over all documents, as two functions for the harness.

    The harness gives each function the values of its metric; the records come with the first metric of all.
    """

    def __init__(
        self, score: Score, records: TaskRecords, task: str, entry: dict[str, Any]
    ) -> None:
        """Aggregate ``score``; add its reason, intervals and degrees of freedom to its entry in the result file."""
        self._score = score
        self._records = records
        self._task = task
        self._entry = entry
        self._stderr = math.nan

    def _computed(self) -> Estimate:
        """Estimate the score; ``nan`` where a document has no record, or the score fails on the records."""
        sound, failed = self._records.sound, self._records.failed
        if failed:
            more = f", and {len(failed) - 1} more documents" if failed[1:] else ""
            return undefined(f"{failed[0]}{more}", len(sound) + len(failed))
        try:
            return self._score.compute(sound)
        except Exception as error:
            # other people's code must not lose the run's answers
            text = f"the score {self._score.name} failed ({kind_of(error)})"
            fault(f"{self._task}: {text}")
            return undefined(text, len(sound))

    def value(self, values: Sequence[Any]) -> float:
        """Return the score."""
        self._records.take(values)
        estimate = self._computed()
        self._stderr = estimate.stderr
        self._entry["n"] = estimate.n
        self._entry["dof"] = estimate.dof if math.isfinite(estimate.dof) else None
        for name in ("interval", "fixed_interval"):
            ends = getattr(estimate, name)
            if ends is not None:
                self._entry[name] = list(ends)
        if estimate.reason:
            self._entry["note"] = estimate.reason
        return estimate.value

    def stderr(self, values: Sequence[Any]) -> float:
        """Return the standard error of the value; the harness asks for the value first."""
        return self._stderr
