"""The difference of one score between two models that answered the same items, or that share nothing.

Two models' scores on the same items share the clusters, so that what makes an item hard for both cancels out of their
difference. The test is Student's t on the standard error of the difference, for every score.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

import numpy as np

from lm_eval_bias.custom_metrics.clusters import Clusters, standard_error
from lm_eval_bias.custom_metrics.crossed import Cells, crossed_stderr
from lm_eval_bias.custom_metrics.intervals import (
    Array,
    agreed,
    fisher_z,
    student_p,
    tails,
)
from lm_eval_bias.custom_metrics.score import (
    NOTHING_VARIED,
    ROUNDING,
    Bounds,
    Design,
    interval_of,
    stderr_of,
)

LEVEL = 0.05
POWER = 0.8
STUDENT = "Student's t"
FEW_CLUSTERS = (
    "too few clusters for a test: they count as no more than 2 clusters of equal size"
)
_SURE = 1e-6  # of a score: a smaller error may be rounding
FEW_TEMPLATES = 4  # with fewer, Satterthwaite's degrees of freedom are too many


@dataclass(frozen=True)
class Difference:
    """The difference of one score between two models, in the score's unit.

    Attributes:
        value: First minus second.
        stderr: Its standard error; ``nan`` where it cannot be computed, never 0.
        dof: Degrees of freedom.
        p: Two-sided p-value of no difference.
        sum_value: First plus second.
        sum_stderr: Standard error of that: which of two signed scores is larger in size shows in sum and difference.
        reason: Why something is ``nan``.
        test: How ``p`` came about.
        ends: The 95% interval where it isn't ``value ± t * stderr``.
        span: The largest possible difference either way: intervals end there.
        clusters: How many independent groups of items it rests on; ``None`` where that isn't known.
        designs: What it is the difference of, first and second; ``None`` where only the values are known.
    """

    value: float
    stderr: float = math.nan
    dof: float = math.nan
    p: float = math.nan
    sum_value: float = math.nan
    sum_stderr: float = math.nan
    reason: str = ""
    test: str = STUDENT
    ends: Bounds | None = None
    span: float = math.inf
    clusters: int | None = None
    designs: tuple[Design, Design] | None = field(
        default=None, compare=False, repr=False
    )

    @property
    def interval(self) -> Bounds | None:
        """The 95% interval of the difference."""
        return self.ends or interval_of(
            self.value, self.stderr, self.dof, -self.span, self.span
        )

    def stderr_at(self, true: float) -> float:
        """Return the standard error at another true difference, from the scores' variance there.

        The base keeps its value, and the other one is so far away from it, on the side where it varies more.
        """
        if self.designs is None:
            return self.stderr
        other, base = self.designs
        kept = base.variance_at(base.value)
        ends = (base.value - true, base.value + true)
        moved = max(map(other.variance_at, ends))
        measured = kept + other.variance_at(other.value)
        return self.stderr * math.sqrt((kept + moved) / measured)


def _agreed(design: Clusters | Cells, difference: Difference, n: int) -> Difference:
    """Give a unanimous difference at an end of its range the interval of one observation per cluster."""
    if design.bounds is None or not math.isnan(difference.stderr):
        return difference
    low, high = design.bounds
    ends = agreed(difference.value, (low - high, high - low), n)
    if ends is None:
        return difference
    dof = n - 1.0
    stderr = stderr_of(ends, dof)
    p = student_p(difference.value, stderr, dof)
    return replace(difference, stderr=stderr, dof=dof, p=p, reason="", ends=ends)


def _clustered(a: Clusters, b: Clusters, value: float, total: float) -> Difference:
    # a cluster counts for both where it holds something of either
    both = a
    if not np.array_equal(a.sizes, b.sizes):
        both = replace(a, sizes=a.sizes + b.sizes)
        b = replace(b, sizes=both.sizes)
    without = both.without - b.without
    stderr, dof, reason = standard_error(value, without, both)
    sum_stderr, _, _ = standard_error(total, both.without + b.without, both)
    p = math.nan
    rounding = ROUNDING * max(1.0, abs(total))
    if math.isnan(value):
        reason = "a model has no value"
    elif len(a.names) > 1 and not (abs(np.append(without, value)) > rounding).any():
        value = 0.0
        p = 1.0
        reason = "the models' answers are the same in every cluster"
    elif not math.isnan(stderr) and dof > 1:
        p = student_p(value, stderr, dof)
    elif not math.isnan(stderr):
        reason = FEW_CLUSTERS
    kept = both.sizes > 0
    count = int(kept.sum())
    difference = Difference(
        value, stderr, dof, p, total, sum_stderr, reason, clusters=count
    )
    if not np.isfinite(without[kept]).all():
        return difference
    return _agreed(a, difference, count)


def _crossed(a: Cells, b: Cells, value: float, total: float) -> Difference:
    if a.lacks:
        return Difference(value, sum_value=total, reason=a.lacks)
    cells = a.scaled - b.scaled
    stderr, dof = crossed_stderr(cells, a.strata)
    sum_stderr = crossed_stderr(a.scaled + b.scaled, a.strata).stderr
    made = partial(Difference, clusters=cells.shape[1])
    if stderr <= ROUNDING * max(1.0, abs(value)):
        p = math.nan
        reason = NOTHING_VARIED
        rounding = ROUNDING * max(1.0, abs(total))
        if abs(value) <= rounding:
            value = 0.0
            p = 1.0
            reason = "the models' answers are the same in every cell"
        if sum_stderr <= rounding:
            sum_stderr = math.nan
        difference = made(value, math.nan, dof, p, total, sum_stderr, reason)
        return _agreed(a, difference, min(cells.shape))
    test = STUDENT
    if a.correlation is not None and b.correlation is not None:
        # the cells are Fisher's z, whose error doesn't depend on how large a correlation is
        test = f"{STUDENT} on Fisher's z"
        z, w = fisher_z(np.array([a.value, b.value])).tolist()
        stderr *= _slope(value, z - w, a.value)
        sum_stderr *= _slope(total, z + w, a.value)
    if cells.shape[1] < FEW_TEMPLATES:
        dof = min(dof, min(cells.shape) - 1)
    p = student_p(value, stderr, dof)
    return made(value, stderr, dof, p, total, sum_stderr, test=test)


def _slope(difference: float, of_z: float, correlation: float) -> float:
    """Return the slope of a correlation over its Fisher's z, between two correlations or at one."""
    return difference / of_z if abs(of_z) > ROUNDING else 1 - correlation**2


def paired(a: Design, b: Design) -> Difference:
    """Compare a score between two models on the same items.

    Standard error: jackknife over clusters within strata, the same for both models; for means over items x templates
    the crossed standard error. Interval and p-value: Student's t with as many degrees of freedom as there are clusters
    of equal worth, less one (crossed: Satterthwaite's); of correlations on the scale of Fisher's z. Clusters that are
    worth no more than 2 equally large ones have no test.

    Raises:
        ValueError: They are not on the same clusters.
    """
    both = a.value - b.value, a.value + b.value
    if isinstance(a, Clusters) and isinstance(b, Clusters):
        if (a.names, list(a.strata)) != (b.names, list(b.strata)):
            raise ValueError("the clusters differ")
        return replace(_clustered(a, b, *both), designs=(a, b))
    if isinstance(a, Cells) and isinstance(b, Cells):
        if (a.items, a.templates, a.strata) != (b.items, b.templates, b.strata):
            raise ValueError("the items, templates or strata differ")
        return replace(_crossed(a, b, *both), designs=(a, b))
    raise ValueError("the layouts differ")


def pairwise(designs: Sequence[Design | None]) -> Array:
    """Compare all pairs of models as :func:`paired` does, vectorised over equal clusters.

    Args:
        designs: A model's each; ``None`` for those that can't be compared.

    Returns:
        Of the row's and the column's model: difference, its p-value, their sum, its standard error, and degrees of
        freedom, shape (5, models, models); ``nan`` where that can't be tested.
    """
    found = np.full((5, len(designs), len(designs)), math.nan)
    layouts = defaultdict(list)
    for place, design in enumerate(designs):
        if isinstance(design, Clusters):
            layout = (*design.names, *design.strata, design.sizes.tobytes())
            layouts[layout].append((place, design))
    for members in layouts.values():
        places, alike = zip(*members, strict=True)
        found[np.ix_(range(5), places, places)] = _together(alike)
    # where hardly anything varies, or the clusters aren't the same
    for i, j in combinations(range(len(designs)), 2):
        a, b = designs[i], designs[j]
        if a is not None and b is not None and np.isnan(found[1, i, j]):
            with suppress(ValueError):  # other items
                d = paired(a, b)
                if d.p <= 1:
                    one = d.value, d.p, d.sum_value, d.sum_stderr, d.dof
                    found[:, i, j] = found[:, j, i] = one
                    found[0, j, i] *= -1
    return found


def _together(designs: Sequence[Clusters]) -> Array:
    """Compute :func:`pairwise` on equal clusters; ``nan`` where an error may be rounding, or without a test."""
    strata, dofs = designs[0].strata_of_kept
    weights = np.transpose([(1 - 1 / part.sum()) * part for part in strata])
    values = np.array([design.value for design in designs])
    off = np.array([one.without[one.sizes > 0] - one.value for one in designs])
    rows = []
    for value, own in zip(values, off, strict=True):
        # as standard_error, of the sums and of the differences
        sums, squares = [(own + sign * off) ** 2 @ weights for sign in (1, -1)]
        sum_stderr, stderr = np.sqrt([sums.sum(axis=1), squares.sum(axis=1)])
        with np.errstate(all="ignore"):
            dof = stderr**4 / (squares**2 / np.maximum(dofs, 1)).sum(axis=1)
            p = 2 * tails(-abs(value - values) / stderr, dof)
        sure = np.minimum(stderr, sum_stderr) > _SURE * (1 + abs(value))
        columns = value - values, p, value + values, sum_stderr, dof
        rows.append(np.where(sure & (dof > 1 + _SURE), columns, math.nan))
    return np.stack(rows, axis=1)


def unpaired(
    first: tuple[float, float, float], second: tuple[float, float, float]
) -> Difference:
    """Compare two independent scores, each given as value, standard error and degrees of freedom.

    Source: Welch (1947); Student's t.
    """
    (a, se_a, dof_a), (b, se_b, dof_b) = first, second
    if not (se_a > 0 and se_b > 0):
        return Difference(a - b, sum_value=a + b, reason="no standard error")
    stderr = math.hypot(se_a, se_b)
    inverse = se_a**4 / dof_a + se_b**4 / dof_b
    dof = stderr**4 / inverse if inverse > 0 else math.inf
    p = student_p(a - b, stderr, dof)
    test = "Welch's t, unpaired"
    return Difference(a - b, stderr, dof, p, a + b, stderr, test=test)
