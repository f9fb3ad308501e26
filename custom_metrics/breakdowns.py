"""Scores of parts of the items: where a part lies within one cluster, and intervals that hold for all parts at once."""

from __future__ import annotations

import math

from scipy import special

from lm_eval_bias.custom_metrics.clusters import Clusters, share_of, tabulate
from lm_eval_bias.custom_metrics.crossed import Cells
from lm_eval_bias.custom_metrics.intervals import scaled
from lm_eval_bias.custom_metrics.score import (
    Bounds,
    Design,
    Estimate,
    Record,
    Score,
    ScoreSpec,
    Undefined,
    joined,
    t_factor,
)


def _of_one_cluster(design: Design) -> Design | None:
    """Fall back to item-level variance if there is a single cluster, row or column; else ``None``."""
    if isinstance(design, Clusters) and len(design.names) == 1 < len(design.places):
        return tabulate(
            range(len(design.places)),
            design.columns,
            design.of,
            whole=design.whole,
            bounds=design.bounds,
            exact=design.exact,
            note=joined(
                f"items of one of the {design.kind} count as independent", design.note
            ),
            kind="items",
        )
    if isinstance(design, Cells) and min(design.cells.shape) == 1:
        is_template = len(design.templates) == 1
        values = design.scaled.ravel().tolist()
        low, high = design.bounds or (None, None)
        return tabulate(
            design.items if is_template else design.templates,
            [(1.0, value) for value in values],
            share_of,
            design.strata if is_template else (),
            whole=high if low == 0 else None,
            bounds=design.bounds if low != 0 else None,
            kind="items" if is_template else "templates",
        )
    return None


def of_part(score: Score, records: list[Record]) -> Estimate:
    """Estimate a score over a part of the items.

    Where the part lies within one cluster (a target term's items, an occupation in all templates), the error is that of
    its items, or of its templates or occupations alone: the part is given, and no sample of others.
    """
    estimate = score.compute(records)
    if estimate.ends() or estimate.fixed_interval:
        return estimate
    if score.design is None or math.isnan(estimate.value):
        return estimate
    try:
        design = _of_one_cluster(score.design(records))
    except Undefined:
        return estimate
    return design.estimate() if design else estimate


def simultaneous_level(parts: int) -> float:
    """Return the level of simultaneous 95% intervals for so many parts (Šidák's).

    It is exact for independent parts, and holds for any whose errors are jointly normal.
    Source: Šidák (1967), Rectangular confidence regions for the means of multivariate normal distributions.

    >>> round(simultaneous_level(1), 3), round(simultaneous_level(79), 5)
    (0.95, 0.99935)
    """
    return float(0.95 ** (1 / max(parts, 1)))


def widened(estimate: Estimate, meaning: ScoreSpec, level: float) -> Bounds | None:
    """Widen a 95% interval to a higher level, within the range; ``None`` without an interval.

    Student's and Fisher's reach as much further, on their scales, as the quantiles say. Wilson's is symmetric in the
    logit, where its half width is ``2 arsinh(z / (2 sqrt(n p q)))``; at an end of the range the odds of its other end
    are ``z^2 / n``. So it becomes what its formula would give.

    >>> share = ScoreSpec("share", low=0.0, high=1.0)
    >>> [round(end, 3) for end in widened(Estimate(0.5, 0.1, 25, interval=(0.318, 0.682)), share, 0.99)]
    [0.272, 0.728]
    """
    ends = estimate.ends()
    dof = estimate.dof
    is_symmetric = estimate.interval is None
    if ends is None:
        ends = estimate.fixed_interval
        dof = math.inf
        is_symmetric = meaning.low != 0
    if ends is None:
        return None
    factor = t_factor(dof, level) / t_factor(dof)
    low = meaning.low
    span = meaning.high - meaning.low
    if is_symmetric:
        below, above = (
            estimate.value + factor * (end - estimate.value) for end in ends
        )
        return max(low, below), min(meaning.high, above)
    place = (estimate.value - low) / span
    is_z = meaning.unit == "correlation"
    below, above = (_further((end - low) / span, place, factor, is_z) for end in ends)
    return scaled((below, above), (low, meaning.high))


def _further(end: float, place: float, factor: float, is_z: bool) -> float:
    """Move an end of an interval within 0 to 1 away from the value, on the logit scale."""
    if end in (0.0, 1.0, place):
        return end
    if place in (0.0, 1.0):
        logit = special.logit(end) + math.copysign(2 * math.log(factor), 0.5 - place)
    else:
        middle = special.logit(place)
        half = special.logit(end) - middle
        wider = factor * half if is_z else 2 * math.asinh(factor * math.sinh(half / 2))
        logit = middle + wider
    return float(special.expit(logit))
