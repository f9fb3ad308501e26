"""A mean of the items' own values as a finished score: what most benchmarks need, in one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from lm_eval_bias.custom_metrics.designs import Clusters, share_of, tabulate
from lm_eval_bias.custom_metrics.jackknife import clustered_estimate
from lm_eval_bias.custom_metrics.score import Estimate, Record, Score, undefined


def clustered_mean(
    name: str,
    *,
    value: Callable[[Record], float],
    cluster: Callable[[Record], object],
    summary: str,
    low: float,
    high: float,
    neutral: float | None,
    direction: str,
    unit: str,
    source: str = "",
    add: Callable[[Iterable[float]], float] = math.fsum,
    higher_is_better: bool | None = None,
) -> Score:
    """The mean of a value over all items, whose items are independent between clusters only.

    Formula: sum of the items' values / number of items. Undefined: no items, or a value that is no number -> ``nan``
    with the reason. Denominator: all items. Standard error: jackknife over clusters (CR3), Student's t with the
    effective number of clusters; ``nan`` with fewer than two clusters. A mean from 0 to ``high`` gets Wilson's interval
    (:func:`~lm_eval_bias.custom_metrics.jackknife.clustered_estimate`). The score can be compared between runs.

    Args:
        name: Its name in tables and result files.
        value: An item's value, in the score's unit.
        cluster: What the item shares with those that are no independent evidence: a template, a group of people, ...
        summary: What it measures, in one line.
        low: Smallest possible value.
        high: Largest possible value.
        neutral: The value that means "no bias"; ``None`` where none exists.
        direction: What values on either side of ``neutral`` mean.
        unit: See :class:`~lm_eval_bias.custom_metrics.score.Score`.
        source: Paper and equation or table.
        add: What sums up; the default doesn't round.
        higher_is_better: ``True`` or ``False`` only where that is true over the whole range.

    >>> score = clustered_mean(
    ...     "share", value=lambda r: r["x"], cluster=lambda r: r["group"], summary="", low=0.0, high=1.0, neutral=0.5,
    ...     direction="", unit="proportion",
    ... )
    >>> estimate = score.compute([{"x": 1.0, "group": "a"}, {"x": 0.0, "group": "b"}])
    >>> estimate.value, estimate.stderr, estimate.dof
    (0.5, 0.5, 1.0)
    """

    def problem(records: Sequence[Record]) -> str:
        if not records:
            return "no items"
        n_nan = sum(not math.isfinite(value(record)) for record in records)
        return f"the model gave nan for {n_nan} of {len(records)} items" if n_nan else ""

    def compute(records: Sequence[Record]) -> Estimate:
        if reason := problem(records):
            return undefined(reason, len(records))
        mean = add(float(value(record)) for record in records) / len(records)
        return clustered_estimate(tabulated(records), mean, whole=high if low == 0 and math.isfinite(high) else None)

    def tabulated(records: Sequence[Record]) -> Clusters:
        columns = [[1.0] * len(records), [float(value(record)) for record in records]]
        return tabulate([cluster(record) for record in records], columns, share_of)

    def table(records: Sequence[Record]) -> Clusters | str:
        return problem(records) or tabulated(records)

    return Score(
        name=name,
        summary=summary,
        low=low,
        high=high,
        neutral=neutral,
        direction=direction,
        unit=unit,
        source=source,
        compute=compute,
        sample=value,
        table=table,
        higher_is_better=higher_is_better,
    )
