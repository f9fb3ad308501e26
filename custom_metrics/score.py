"""What a score is: its meaning, range, neutral value and direction as data, beside the function that computes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cache
from importlib import resources
from operator import itemgetter
from typing import Any, Protocol

import yaml

# a record; each paper's module says what its own hold
Record = Mapping[str, Any]
Answers = Sequence[Any]  # of a document: one a request, filtered
# records, or the documents that they are made of: benchmarks tell by these which scores there are
Documents = Sequence[Record]
Bounds = tuple[float, float]
# a record's own part in a score; ``None`` where it has none
Contribution = Callable[[Any], float | None]
NOTHING_VARIED = "nothing varied between the groups of items: no standard error"
ROUNDING = 1e-12  # errors and differences that are smaller, relative to the values, are rounding
OUTSIDE = 1e-6  # by which a score may leave its range, or its interval
LARGEST = 1e100  # of whose square, too, one can speak


class Undefined(Exception):
    """Raised if a score is undefined or can't be compared; its text is the reason."""


class ImpossibleEstimate(Undefined):
    """Raised for an impossible value, error or interval; its text names it."""


@dataclass(frozen=True)
class Estimate:
    """A score's value with its uncertainty.

    Attributes:
        value: The score, ``nan`` where it cannot be computed.
        stderr: Its standard error in the same unit, ``nan`` where it cannot be computed. It is never 0: that nothing
            varied in the data is no certainty, so an error of 0 becomes ``nan``.
        n: Number of records that it rests on, or would rest on where it has no value; ``None`` where a file doesn't
            say.
        reason: Why ``value`` or ``stderr`` is ``nan``, or what to beware of; empty if neither applies.
        dof: Degrees of freedom of ``stderr``: how many independent pieces of evidence it rests on.
        interval: The 95% interval where it is not Student's t times ``stderr`` (Wilson, bootstrap); else ``None``.
        fixed_interval: The 95% interval for the items as given, where they are few and chosen and :meth:`ends` is for
            items like them; ``None`` where there are no two such intervals.
        no_claim_reason: Why nobody may claim a direction from it; empty if one may.
        clusters: How many independent groups of items it rests on; ``None`` where that isn't known.
        statistics: What error, interval and test were made by: names of ``statistics.yaml``.
    """

    value: float
    stderr: float
    n: int | None
    reason: str = ""
    dof: float = math.inf
    interval: Bounds | None = None
    fixed_interval: Bounds | None = None
    no_claim_reason: str = ""
    clusters: int | None = None
    statistics: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Replace an error of 0 by nan."""
        if self.stderr == 0:
            object.__setattr__(self, "stderr", math.nan)
            if self.interval is None and not self.reason:
                object.__setattr__(self, "reason", NOTHING_VARIED)

    def ends(self) -> Bounds | None:
        """Return the 95% interval, given or from the standard error; ``None`` without one.

        >>> Estimate(0.5, math.nan, 1).ends(), Estimate(0.5, 0.1, 9, interval=(0.4, 0.7)).ends()
        (None, (0.4, 0.7))
        """
        return self.interval or interval_of(self.value, self.stderr, self.dof)


def t_factor(dof: float, level: float = 0.95) -> float:
    """Return the t quantile of an interval; the normal one for infinite ``dof``."""
    from scipy import special

    tail = (1 + level) / 2
    return float(
        special.ndtri(tail) if math.isinf(dof) else special.stdtrit(max(dof, 1.0), tail)
    )


def check_estimate(estimate: Any, low: float, high: float) -> None:
    """Refuse an estimate that is impossible for a score from ``low`` to ``high``.

    >>> check_estimate(Estimate(1.5, 0.1, 9), 0.0, 1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ImpossibleEstimate: it is 1.5, outside of its range of 0 to 1

    Raises:
        ImpossibleEstimate: Its value is out of range or infinite, its error below 0, or an interval turned round.
    """
    value = estimate.value
    stderr = estimate.stderr
    if abs(value) > LARGEST or abs(stderr) > LARGEST or stderr < 0:
        text = f"it is {value:g} with the error {stderr:g}"
        raise ImpossibleEstimate(
            f"{text}: both must be finite, and the error not below 0"
        )
    if value < low - OUTSIDE or value > high + OUTSIDE:
        text = f"it is {value:g}, outside of its range of {low:g} to {high:g}"
        raise ImpossibleEstimate(text)
    for ends in filter(None, (estimate.interval, estimate.fixed_interval)):
        if not ends[0] <= ends[1]:
            text = f"it has an interval from {ends[0]:g} to {ends[1]:g}: the lower end comes first"
            raise ImpossibleEstimate(text)


def interval_of(
    value: float,
    stderr: float,
    dof: float,
    low: float = -math.inf,
    high: float = math.inf,
) -> Bounds | None:
    """Compute the 95% interval ``value ± t * stderr``, clipped to the score's range; ``None`` without an error.

    >>> interval_of(0.5, 0.1, math.inf, 0.0, 0.6)
    (0.3040036015459946, 0.6)
    """
    if math.isnan(value) or math.isnan(stderr):
        return None
    margin = t_factor(dof) * stderr
    return max(low, value - margin), min(high, value + margin)


def stderr_of(ends: Bounds, dof: float) -> float:
    """Return the standard error whose Student's t interval is as wide as this one."""
    return (ends[1] - ends[0]) / 2 / t_factor(dof)


def finite(value: float | None) -> float | None:
    """Return a finite number, or ``None``, for JSON.

    >>> finite(0.5), finite(math.nan)
    (0.5, None)
    """
    return value if value is not None and math.isfinite(value) else None


def joined(*reasons: str) -> str:
    """Join non-empty reasons and diagnostics to a text.

    >>> joined("few items", "", "no value")
    'few items; no value'
    """
    return "; ".join(filter(None, reasons))


def require(items: Sequence[object], n_nan: int = 0, noun: str = "items") -> None:
    """Raise Undefined without items, or if the model gave nan for some."""
    if not items:
        raise Undefined(f"no {noun}")
    if n_nan:
        raise Undefined(f"the model gave nan for {n_nan} of {len(items)} {noun}")


def undefined(reason: str, n: int = 0) -> Estimate:
    """Make an undefined estimate with its reason.

    >>> undefined("no items").value
    nan
    """
    return Estimate(math.nan, math.nan, n, reason)


@cache
def _meanings() -> Record:
    """Read ``meanings.yaml`` (cached): the scores' meanings by module and score or kind."""
    text = resources.files(__package__).joinpath("meanings.yaml").read_text("utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    papers: Record = yaml.load(text, Loader=loader)  # noqa: S506 (a SafeLoader)
    return papers


def meanings(paper: str) -> Record:
    """Return the meanings of a module's scores, by score or kind."""
    return _meanings()[paper]


def meaning(paper: str, kind: str, **gaps: str) -> dict[str, Any]:
    """Return a score's fields from ``meanings.yaml``, with the placeholders in its texts filled.

    >>> meaning("positions", "share", option="A")["label"]
    'answers A'
    """
    described: dict[str, Any] = {}
    for field, value in meanings(paper)[kind].items():
        if field == "formula":  # whose braces are LaTeX's
            described[field] = value if isinstance(value, str) else value[gaps["where"]]
        elif isinstance(value, str):
            described[field] = value.format(**gaps)
        elif isinstance(value, list):
            described[field] = tuple(text.format(**gaps) for text in value)
        else:
            described[field] = value
    return described


def with_floor(scores: Sequence[Score], name: str, floor: float) -> list[Score]:
    """Return the scores with a ``floor`` on the named one, which is the ability check."""
    return [
        replace(score, floor=floor if score.name == name else None) for score in scores
    ]


class Design(Protocol):
    """The design of a score: a function of sums over clusters, or of cells of items x templates.

    Two runs on the same items are compared by their designs (:mod:`lm_eval_bias.custom_metrics.differences`).
    """

    @property
    def value(self) -> float:
        """The score."""

    def estimate(self) -> Estimate:
        """Estimate the score with its uncertainty."""

    def variance_at(self, value: float) -> float:
        """Return the items' variance at a value of the score, up to a constant factor."""


@dataclass(frozen=True)
class ScoreSpec:
    """The meaning of a score: range, neutral value, unit, direction and labels.

    Attributes:
        name: Name in the harness's table and in result files.
        summary: What it measures, in one line.
        label: What people call it, in a few words; see :attr:`title`.
        low: Smallest possible value, ``-inf`` if unbounded.
        high: Largest possible value, ``inf`` if unbounded.
        neutral: The value that means "no bias" (or the best value of an accuracy); ``None`` where none exists.
        chance: The value that guessing gives, of an ability; ``None`` where that isn't known.
        floor: What a model that hasn't understood the items gets: where a run gets no more, its other scores say
            little. ``None`` of scores that don't tell it.
        of_answers: Whether the documents without an answer are left out of it: then they don't lower it.
        direction: What values on either side of ``neutral`` mean, for readers.
        favours: What an interval above, and one below, the neutral value says, in a few words that follow a model's
            name: ``("favours the old", "favours the young")``.
        pole: What a score of bias points to above its neutral value, and away from below it: ``stereotypes``.
        unit: ``percent`` (0..100), ``proportion`` (0..1), ``difference`` (-1..1), ``correlation``, ``count``, ``nats``,
            ``ratio`` or ``percent (SE)``.
        source: Paper and equation or table.
        higher_is_better: ``True`` or ``False`` only where that is true over the whole range.
    """

    name: str
    _: KW_ONLY
    summary: str = ""
    label: str = ""
    low: float = -math.inf
    high: float = math.inf
    neutral: float | None = None
    chance: float | None = None
    floor: float | None = None
    of_answers: bool = False
    direction: str = ""
    favours: tuple[str, str] | None = None
    pole: str = ""
    unit: str = ""
    source: str = ""
    higher_is_better: bool | None = None

    @property
    def title(self) -> str:
        """The score's name for people: its label, or its name in words.

        >>> ScoreSpec("acc/one_half").title
        'acc, one half'
        """
        return self.label or self.name.replace("_", " ").replace("/", ", ")

    @classmethod
    def described(cls, name: str, data: Mapping[str, Any]) -> ScoreSpec:
        """Read a meaning from plain data, as :meth:`describe` returns it."""
        content = {
            field: data[field]
            for field in MEANING
            if field != "name" and data.get(field) is not None
        }
        if "favours" in content:
            content["favours"] = tuple(content["favours"])
        low, high = data.get("range") or (None, None)
        content["low"] = -math.inf if low is None else low
        content["high"] = math.inf if high is None else high
        return ScoreSpec(name, **content)

    def describe(self) -> dict[str, object]:
        """Convert the meaning to plain data for JSON."""
        content: dict[str, object] = {}
        for field in fields(ScoreSpec):
            value = getattr(self, field.name)
            if field.name == "low":
                content["range"] = [finite(self.low), finite(self.high)]
            elif field.name != "high":
                content[field.name] = list(value) if isinstance(value, tuple) else value
        return content


MEANING = tuple(field.name for field in fields(ScoreSpec))


@dataclass(frozen=True)
class Score(ScoreSpec):
    """A score of a benchmark: its meaning, and how it is computed from records.

    Attributes:
        contribution: A record's own part for the sample log, ``None`` where it has none.
        design: Records to the :class:`Design` that the score's estimate and comparisons rest on; ``None`` where it has
            none, and can't be compared between runs.
        statistic: Records to :class:`Estimate`, where that is more than what the design says, or there is none.
        has_stderr: ``False`` for scores that are themselves measures of uncertainty or spread.
        headline: ``False`` for a cell of a breakdown, which reads like another score and is left out of listings.
        derived: Whether it is a function of other main scores: pages show it, ``compare`` takes it when asked.
        largest: How far answers of some model families push it above ``high``; ``None`` where none can.
        formula: A phrase with LaTeX between dollar signs, for Markdown as well; empty if the summary says it.
    """

    _: KW_ONLY
    contribution: Contribution
    design: Callable[[Any], Design] | None = None
    statistic: Callable[[Any], Estimate] | None = None
    has_stderr: bool = True
    headline: bool = True
    derived: bool = False
    largest: float | None = None
    formula: str = ""

    def compute(self, records: Documents) -> Estimate:
        """Estimate the score from records; ``nan`` with the reason where it is undefined."""
        try:
            return self.estimated(records)
        except Undefined as error:
            return undefined(str(error), len(records))

    def estimated(self, records: Documents) -> Estimate:
        """Estimate the score from records.

        Raises:
            Undefined: It has no value; an ImpossibleEstimate where it has one that it can't have.
        """
        if self.statistic is not None:
            estimate = self.statistic(records)
        else:
            assert self.design is not None
            estimate = self.design(records).estimate()
        try:
            if not isinstance(estimate, Estimate):
                raise ImpossibleEstimate(f"it is {estimate!r}, not an Estimate")
            high = max(self.high, self.largest or self.high)
            check_estimate(estimate, self.low, high)
        except ImpossibleEstimate as error:
            raise ImpossibleEstimate(f"{self.name}: {error}") from error
        return estimate

    def over(self, view: Callable[[Any], Sequence[Any]], **changes: Any) -> Score:
        """Return the score over transformed records.

        Args:
            view: May raise :class:`Undefined`, where it leaves nothing to score.
            changes: Fields that differ.
        """
        statistic = self.statistic
        design = self.design
        return replace(
            self,
            statistic=statistic and (lambda records: statistic(view(records))),
            design=design and (lambda records: design(view(records))),
            **changes,
        )

    def within(
        self,
        name: str,
        summary: str,
        where: Mapping[str, object],
        absent: str = "",
        label: str = "",
    ) -> Score:
        """Return the score over a part of the records.

        Args:
            name: Its name.
            summary: What it measures.
            where: The part's fields with their values.
            absent: Why there is no value where the part is empty; empty: what the score says of no records.
            label: What people call it; by default as the whole.
        """
        values_of = itemgetter(*where)
        values = values_of(where)

        def part(records: Documents) -> list[Record]:
            chosen = [record for record in records if values_of(record) == values]
            if absent and not chosen:
                raise Undefined(absent)
            return chosen

        def contribution(record: Record) -> float | None:
            return self.contribution(record) if values_of(record) == values else None

        return self.over(
            part,
            name=name,
            summary=summary,
            label=label or self.label,
            contribution=contribution,
        )
