"""A score as a metric of the harness: one value per document, aggregated to a value and a standard error."""

from __future__ import annotations

import contextlib
import logging
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from lm_eval_bias.core.errors import fault, kind_of
from lm_eval_bias.custom_metrics.score import Estimate, Record, Score, undefined

logger = logging.getLogger("lm_eval.bias.scores")  # a child of the harness's, for its format


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """Keep notes out of the log, for a run that prints all tasks' notes with its results."""
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = False


class CarriedRecord(float):
    """A document's record on its way to the aggregation, on the back of its contribution to the first score.

    It survives pickling, so that the harness can gather it from several ranks, and knows its document's place, since
    the harness puts one rank's documents behind another's. Of a document that can't be scored it has the reason.
    """

    __slots__ = ("record", "place", "failure")
    record: Record
    place: int
    failure: str

    def __new__(cls, contribution: float | None, record: Record, place: int = 0, failure: str = "") -> CarriedRecord:
        """Make a float with a record; ``nan`` where there is no contribution."""
        number = super().__new__(cls, math.nan if contribution is None else contribution)
        number.record, number.place, number.failure = record, place, failure
        return number

    def __reduce__(self) -> tuple[Any, ...]:
        return CarriedRecord, (float(self), self.record, self.place, self.failure)


class TaskRecords:
    """The records of all documents of a task, which its scores share."""

    def __init__(self) -> None:
        """Begin without any."""
        self.sound: list[Record] = []
        self.failed: list[str] = []

    def take(self, values: Sequence[Any]) -> None:
        """Take the records from the values of the metric that carries them, in the documents' order."""
        carried = sorted((v for v in values if isinstance(v, CarriedRecord)), key=operator.attrgetter("place"))
        if not carried:
            return
        self.sound = [value.record for value in carried if not value.failure]
        self.failed = [value.failure for value in carried if value.failure]


class Notes:
    """Collects why scores are ``nan`` and logs each reason once, after the task's last score."""

    def __init__(self, task: str, expected: int) -> None:
        """Notes of the task of that name, which has ``expected`` scores."""
        self.task = task
        self._expected = expected
        self._count = 0
        self._by_reason: dict[tuple[str, str], list[Score]] = {}

    def add(self, score: Score, estimate: Estimate) -> None:
        """Take note of one score's estimate."""
        self._count += 1
        if estimate.reason:
            missing_error = score.has_stderr and math.isnan(estimate.stderr)
            kind = "nan" if math.isnan(estimate.value) else "no standard error" if missing_error else "beware"
            self._by_reason.setdefault((kind, estimate.reason), []).append(score)
        if self._count == self._expected:
            self._log()
            self._count, self._by_reason = 0, {}

    def _log(self) -> None:
        """Log a line per reason, and one line for all that concern only cells of breakdowns."""
        cells = 0
        for (kind, reason), scores in self._by_reason.items():
            if not any(score.headline for score in scores):
                cells += len(scores)
                continue
            names = [score.name for score in scores]
            remainder = f" and {len(names) - 6} more" if len(names) > 6 else ""
            logger.warning("%s: %s: %s%s (%s)", self.task, kind, ", ".join(names[:6]), remainder, reason)
        if cells:
            logger.warning(
                "%s: %d cells of breakdowns have notes, too (see metric_list in the results file)", self.task, cells
            )


class Aggregation:
    """A score's value and standard error over all documents, as two functions for the harness.

    The harness gives each the values of a metric of its own; the records come with the first metric of all.
    """

    def __init__(self, score: Score, records: TaskRecords, notes: Notes, entry: dict[str, Any]) -> None:
        """Aggregate ``score``; leave its reasons in ``notes``, its degrees of freedom in the result file's entry."""
        self._score = score
        self._records = records
        self._notes = notes
        self._entry = entry
        self._known: tuple[object, Estimate] | None = None

    def _estimate(self, values: Sequence[Any]) -> Estimate:
        """Estimate the score once for the same records."""
        self._records.take(values)
        if self._known is None or self._known[0] is not self._records.sound:
            self._known = self._records.sound, self._computed()
        return self._known[1]

    def _computed(self) -> Estimate:
        """Estimate the score; ``nan`` where a document has no record, or the score fails on them."""
        sound, failed = self._records.sound, self._records.failed
        if failed:
            more = f", and {len(failed) - 1} more documents" if failed[1:] else ""
            return undefined(f"{failed[0]}{more}", len(sound) + len(failed))
        try:
            return self._score.compute(sound)
        except Exception as error:  # other people's code must not lose the run's answers
            text = f"the score {self._score.name} failed ({kind_of(error)})"
            fault(f"{self._notes.task}: {text}")
            return undefined(text, len(sound))

    def value(self, values: Sequence[Any]) -> float:
        """Return the score; why it or its standard error is ``nan`` goes to the log."""
        estimate = self._estimate(values)
        self._notes.add(self._score, estimate)
        self._entry["dof"] = estimate.dof if math.isfinite(estimate.dof) else None
        for name in ("interval", "fixed_interval"):
            if (ends := getattr(estimate, name)) is not None:
                self._entry[name] = list(ends)
        if estimate.reason:
            self._entry["note"] = estimate.reason
        return estimate.value

    def stderr(self, values: Sequence[Any]) -> float:
        """Return its standard error."""
        return self._estimate(values).stderr
