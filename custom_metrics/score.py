"""What a score is: its meaning, range, neutral value and direction as data, beside the function that computes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeVar

Record = Mapping[str, Any]  # what code that knows no benchmark sees of a record; each paper's module has its own type
R = TypeVar("R", bound=Record)


NOTHING_VARIED = "nothing varied between the groups of items: no standard error"
ROUNDING = 1e-12  # errors and differences that are smaller, relative to the values, are rounding


class Design(Protocol):
    """The form of a score that is compared between runs: sums over clusters, or cells of items x templates."""

    @property
    def value(self) -> float: ...  # noqa: D102


@dataclass(frozen=True)
class Estimate:
    """A score's value with its uncertainty.

    Attributes:
        value: The score, ``nan`` where it cannot be computed.
        stderr: Its standard error in the same unit, ``nan`` where it cannot be computed. It is never 0: that nothing
            varied in the data is no certainty, so an error of 0 becomes ``nan``.
        n: Number of records that entered it.
        reason: Why ``value`` or ``stderr`` is ``nan``, or what to beware of; empty if neither applies.
        dof: Degrees of freedom of ``stderr``: how many independent pieces of evidence it rests on.
        interval: The 95% interval where it is not Student's t times ``stderr`` (Wilson, bootstrap); else ``None``.
        fixed_interval: The 95% interval for the items as given, where they are few and chosen and :meth:`ends` is for
            items like them; ``None`` where there are no two such intervals.
    """

    value: float
    stderr: float
    n: int
    reason: str = ""
    dof: float = math.inf
    interval: tuple[float, float] | None = None
    fixed_interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Take an error of 0 for none."""
        if self.stderr == 0:
            object.__setattr__(self, "stderr", math.nan)
            if self.interval is None and not self.reason:
                object.__setattr__(self, "reason", NOTHING_VARIED)

    def ends(self) -> tuple[float, float] | None:
        """The 95% interval, whatever it rests on; ``None`` where there is none.

        >>> Estimate(0.5, math.nan, 1).ends(), Estimate(0.5, 0.1, 9, interval=(0.4, 0.7)).ends()
        (None, (0.4, 0.7))
        """
        if self.interval is not None or math.isnan(self.value) or math.isnan(self.stderr):
            return self.interval
        reach = t_factor(self.dof) * self.stderr
        return self.value - reach, self.value + reach


def t_factor(dof: float, level: float = 0.95) -> float:
    """How many standard errors the interval of that level reaches to either side; normal for infinite ``dof``."""
    from scipy import special

    tail = (1 + level) / 2
    return float(special.ndtri(tail) if math.isinf(dof) else special.stdtrit(max(dof, 1.0), tail))


def finite(value: float | None) -> float | None:
    """The number, or ``None`` where it is none, as JSON wants it.

    >>> finite(0.5), finite(math.nan)
    (0.5, None)
    """
    return value if value is not None and math.isfinite(value) else None


def joined(*reasons: str) -> str:
    """Reasons and cautions as one text, those that are empty left out.

    >>> joined("few items", "", "no value")
    'few items; no value'
    """
    return "; ".join(filter(None, reasons))


def undefined(reason: str, n: int = 0) -> Estimate:
    """An estimate that cannot be computed.

    >>> undefined("no items").value
    nan
    """
    return Estimate(math.nan, math.nan, n, reason)


@dataclass(frozen=True)
class Score(Generic[R]):
    """A named score of a benchmark with records of type ``R``.

    Attributes:
        name: Name in the harness's table and in result files.
        summary: What it measures, in one line.
        low: Smallest possible value, ``-inf`` if unbounded.
        high: Largest possible value, ``inf`` if unbounded.
        neutral: The value that means "no bias" (or the best value of an accuracy); ``None`` where none exists.
        direction: What values on either side of ``neutral`` mean.
        unit: ``percent`` (0..100), ``proportion`` (0..1), ``difference`` (-1..1), ``correlation`` or ``percent (SE)``.
        source: Paper and equation or table.
        compute: Records to :class:`Estimate`.
        sample: A record's own contribution for the sample log, ``None`` where it has none.
        higher_is_better: ``True`` or ``False`` only where that is true over the whole range.
        has_stderr: ``False`` for scores that are themselves measures of uncertainty or spread.
        headline: ``False`` for a cell of a breakdown, which reads like another score and is left out of listings.
        largest: How far answers of some model families push it above ``high``; ``None`` where none can.
        table: Records to the form that is compared (:mod:`lm_eval_bias.custom_metrics.differences`), or why there is
            none, as text; ``None`` where the score has no such form and can't be compared between runs.
    """

    name: str
    summary: str
    low: float
    high: float
    neutral: float | None
    direction: str
    unit: str
    source: str
    compute: Callable[[Sequence[R]], Estimate]
    sample: Callable[[R], float | None]
    higher_is_better: bool | None = None
    has_stderr: bool = True
    headline: bool = True
    largest: float | None = None
    table: Callable[[Sequence[R]], Design | str] | None = None

    def within(self, name: str, summary: str, where: Mapping[str, object], absent: str = "") -> Score[R]:
        """The same score over a part of the records.

        Args:
            name: Its name.
            summary: What it measures.
            where: The part's fields with their values.
            absent: Why there is no value where the part is empty; empty: what the score says of no records.
        """
        values_of, values = itemgetter(*where), itemgetter(*where)(where)
        form = self.table

        def part(records: Sequence[R]) -> list[R]:
            return [record for record in records if values_of(record) == values]

        def compute(records: Sequence[R]) -> Estimate:
            subset = part(records)
            return undefined(absent) if absent and not subset else self.compute(subset)

        def table(records: Sequence[R]) -> Design | str:
            subset = part(records)
            return form(subset) if form and (subset or not absent) else absent

        return replace(
            self,
            name=name,
            summary=summary,
            compute=compute,
            sample=lambda record: self.sample(record) if values_of(record) == values else None,
            table=form and table,
        )

    def describe(self) -> dict[str, object]:
        """The score's range, neutral value and direction as plain data (what reports and ``--json`` carry)."""
        return {
            "name": self.name,
            "summary": self.summary,
            "range": [finite(self.low), finite(self.high)],
            "neutral": self.neutral,
            "direction": self.direction,
            "unit": self.unit,
            "source": self.source,
            "higher_is_better": self.higher_is_better,
        }
