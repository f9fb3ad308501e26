"""A score as a metric of the harness: one value per document, aggregated to a value and a standard error."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_bias.core import Data
from lm_eval_bias.core.errors import fault, kind_of
from lm_eval_bias.custom_metrics.score import Estimate, Record, Score, undefined


class CarriedRecord(float):
    """A document's contribution to the first score, which carries the document's record to the aggregation.

    It can be pickled, so that the harness can gather it from several ranks, and knows the place of its document, since
    the harness puts one rank's documents behind another's. For a document that can't be scored it has the reason.
    """

    record: Record
    place: int
    failure: str

    def __new__(
        cls,
        contribution: float | None,
        record: Any = None,
        place: int = 0,
        failure: str = "",
    ) -> CarriedRecord:
        """Make a float with a record; ``nan`` where there is no contribution."""
        value = math.nan if contribution is None else contribution
        carrier = super().__new__(cls, value)
        carrier.record, carrier.place, carrier.failure = record, place, failure
        return carrier


@dataclass
class Aggregation:
    """A score's value and standard error over all documents, as two functions for the harness.

    The harness gives each function the values of its metric; the records come with the first metric of all.

    Attributes:
        score: The score.
        carriers: The records, in a list that a task's scores share.
        task: The task's name.
        entry: The score's entry in the result file, which gets its reason, intervals and degrees of freedom.
    """

    score: Score
    carriers: list[CarriedRecord]
    task: str
    entry: Data
    _stderr: float = math.nan

    def _computed(self) -> Estimate:
        """Estimate the score; ``nan`` where a document has no record, or the score fails on the records."""
        failed = [carrier.failure for carrier in self.carriers if carrier.failure]
        if failed:
            more = f", and {len(failed) - 1} more documents" if failed[1:] else ""
            return undefined(f"{failed[0]}{more}", len(self.carriers))
        records = [carrier.record for carrier in self.carriers]
        try:
            return self.score.compute(records)
        except Exception as error:
            # other people's code must not lose the run's answers
            text = f"the score {self.score.name} failed ({kind_of(error)})"
            fault(f"{self.task}: {text}")
            return undefined(text, len(records))

    def value(self, values: Sequence[Any]) -> float:
        """Return the score."""
        carriers = [value for value in values if isinstance(value, CarriedRecord)]
        if carriers:  # of all ranks, one behind another
            self.carriers[:] = sorted(carriers, key=operator.attrgetter("place"))
        estimate = self._computed()
        self._stderr = estimate.stderr
        self.entry["n"] = estimate.n
        self.entry["dof"] = estimate.dof if math.isfinite(estimate.dof) else None
        for name in ("interval", "fixed_interval"):
            ends = getattr(estimate, name)
            if ends is not None:
                self.entry[name] = list(ends)
        if estimate.reason:
            self.entry["note"] = estimate.reason
        for name in ("unsaid", "clusters", "stays"):
            if told := getattr(estimate, name):
                self.entry[name] = told
        return estimate.value

    def stderr(self, values: Sequence[Any]) -> float:
        """Return the standard error of the value; the harness asks for the value first."""
        return self._stderr
