"""Standard errors for items made by crossing two factors (occupations x templates)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from lm_eval_bias.custom_metrics.intervals import (
    Array,
    fisher,
    scaled,
    score_interval,
    skewed_dof,
    wilson,
    wilson_of,
)
from lm_eval_bias.custom_metrics.score import (
    ROUNDING,
    Bounds,
    Contribution,
    Documents,
    Estimate,
    Record,
    Score,
    Undefined,
    require,
    stderr_of,
)

NO_VALUE = "all its words have probability 0, or the model gave nan"
ENOUGH_TEMPLATES = 3
FEW_TEMPLATES = "only two templates: their spread has one degree of freedom, so the interval is wide; use three or more"


@dataclass(frozen=True)
class Cells:
    """A score as the mean of an items x templates matrix, both of which vary.

    A correlation stands here as the pseudo-values of its Fisher's z: what each cell adds to that.

    Attributes:
        items: Row names, length R.
        templates: Column names, length C.
        cells: Shape (R, C).
        strata: Each row's stratum, length R; empty if the rows are one sample.
        correlation: The score itself where the cells are pseudo-values of its Fisher's z; ``None`` for means.
        scale: What the cells are multiplied by to be in the score's unit.
        bounds: The smallest and largest possible value of a mean, which gets Wilson's interval; ``None`` for others.
    """

    items: list[str]
    templates: list[str]
    cells: Array
    strata: Sequence[str] = ()
    correlation: float | None = None
    scale: float = 1.0
    bounds: Bounds | None = None

    @property
    def value(self) -> float:
        """The score itself."""
        if self.correlation is not None:
            return self.correlation
        return self.scale * float(self.cells.mean())

    @property
    def lacks(self) -> str:
        """The reason why variances can't be estimated; empty if they can."""
        items, templates = self.cells.shape
        needs = "needs at least 2 items and 2 templates, there are"
        return "" if min(items, templates) > 1 else f"{needs} {items} and {templates}"

    @property
    def scaled(self) -> Array:
        """The cells in the score's unit."""
        return self.scale * self.cells

    def variance_at(self, value: float) -> float:
        """Override: return a constant, since shares of probability vary independently of their mean."""
        return 1.0

    def estimate(self) -> Estimate:
        """Estimate the score with the crossed standard error.

        A correlation gets Fisher's interval. A mean with bounds gets Wilson's on the way from one to the other, as
        clustered shares do; where nothing varies, with one observation for each level of the factor with fewer.

        Raises:
            Undefined: A cell is infinite.
        """
        if np.isinf(self.cells).any():
            raise Undefined("the model gave an infinite number for some of the items")
        stderr, dof = crossed_stderr(self.cells, self.strata, True)
        plain = crossed_stderr(self.cells, self.strata).dof
        skewed = ["skewness"] * int(dof < plain)
        reason = ""
        fewest = min(self.cells.shape)
        if self.lacks:
            reason = f"a standard error {self.lacks}"
        elif math.isnan(stderr):
            reason = (
                "no standard error: without one of the items they are too few, or alike"
            )
        elif stderr <= ROUNDING * float(np.abs(self.cells).max()):
            stderr = math.nan
            reason = "nothing varies between the prompts: no standard error"
        elif len(self.templates) < ENOUGH_TEMPLATES:
            # with Satterthwaite's, intervals hold the truth in 88% to 92% of simulated runs
            dof = min(dof, 1.0)
            skewed = ["few_templates"]
            reason = FEW_TEMPLATES
        n = self.cells.size
        made = partial(Estimate, clusters=len(self.templates))
        if self.correlation is not None and not math.isnan(stderr):
            ends = fisher(self.correlation, stderr, dof)
            stderr *= 1 - self.correlation**2
            by = ["two_way_jackknife", *skewed, "fisher"]
            return made(self.correlation, stderr, n, reason, dof, ends, statistics=by)
        stderr *= self.scale
        bounds = self.bounds or (math.nan, math.nan)
        span = bounds[1] - bounds[0]
        p = (self.value - bounds[0]) / span
        if fewest < 2 or not 0 <= p <= 1:
            by = ["crossed", *skewed, "student"] * math.isfinite(stderr)
            return made(self.value, stderr, n, reason, dof, statistics=by)
        by = ["crossed", *skewed, "wilson"]
        if math.isnan(stderr):
            by = ["few_deviate"]
            ends = wilson(p * fewest, fewest)
            # a difference, which is none where hardly anything differs
            if bounds[0] < 0:
                differ = float(np.abs(self.cells).mean()) * self.scale / bounds[1]
                value = self.value / bounds[1]
                both = score_interval(value, max(abs(value), differ), fewest)
                ends = (1 + both[0]) / 2, (1 + both[1]) / 2
                by = ["few_differ"]
            dof = fewest - 1.0
            reason = ""
            stderr = span * stderr_of(ends, dof)
        else:
            # shares of probability vary less than hits and misses: there can be more than cells
            ends = wilson_of(p, stderr / span, dof)
        ends = scaled(ends, bounds)
        return made(self.value, stderr, n, reason, dof, ends, statistics=by)


class Incomplete(Undefined):
    """Raised for records that are an incomplete Cartesian product, as of a run with ``--limit``."""


def grid(
    records: Documents,
    value: Contribution,
    kind: str = "",
    stratum: Callable[[Record], str] | None = None,
    **described: Any,
) -> Cells:
    """Arrange records as an items x templates matrix.

    The rows and columns are sorted, so that the result does not depend on the order of the records. Records without a
    value are left out.

    Args:
        records: The prompts; their fields ``item`` and ``template`` are the cell.
        value: The cell's value; ``None`` for a record that has no part in the score.
        kind: What the records are, for the reason of an error: ``female-dominated``.
        stratum: The part of the design that an item was chosen for. Where one has a single item, whose variance can't
            be estimated, all items count as one sample, which makes errors larger, never smaller.
        described: Further fields of :class:`Cells`.

    Raises:
        Undefined: There are no records, a cell has several, or no number.
        Incomplete: They are no full Cartesian product.
    """
    prompts = f"{kind} prompts".strip()
    records = [record for record in records if value(record) is not None]
    require(records, noun=prompts)
    pairs = [(str(r["item"]), str(r["template"])) for r in records]
    items, templates = (sorted(set(names)) for names in zip(*pairs, strict=True))
    repeated = sum(times > 1 for times in Counter(pairs).values())
    if repeated:
        raise Undefined(f"{repeated} (item, template) pairs occur more than once")
    values = dict(zip(pairs, map(value, records), strict=True))
    product = list(itertools.product(items, templates))
    if len(values) < len(product):
        raise Incomplete(
            f"the items x templates product is incomplete: {len(records)} of {len(product)} "
            f"({len(items)} items x {len(templates)} templates)"
        )
    cells = np.array([values[cell] for cell in product], dtype=float)
    cells = cells.reshape(len(items), len(templates))
    if n_nan := int(np.isnan(cells).sum()):
        raise Undefined(
            f"{n_nan} of {len(records)} {prompts} have no value ({NO_VALUE})"
        )
    strata: Sequence[str] = ()
    if stratum is not None:
        by_item = {str(record["item"]): stratum(record) for record in records}
        strata = [by_item[item] for item in items]
    is_stratified = strata and min(Counter(strata).values()) > 1
    return Cells(items, templates, cells, strata if is_stratified else (), **described)


def effects(cells: Array) -> tuple[Array, Array, Array]:
    """Return the deviations of row means and of column means from the mean, and the cells' residuals."""
    mean = cells.mean()
    row = cells.mean(axis=1) - mean
    column = cells.mean(axis=0) - mean
    return row, column, cells - mean - row[:, None] - column[None, :]


def components(cells: Array) -> dict[str, float]:
    """Compute ANOVA variance components, negative ones set to 0; the interaction's holds the noise too.

    Source: Searle, Casella & McCulloch (1992), Variance Components, section 4.4.

    >>> components(np.array([[0.0, 0.0], [1.0, 1.0]]))
    {'rows': 0.5, 'columns': 0.0, 'interaction': 0.0}
    """
    n_rows, n_columns = cells.shape
    row, column, residual = effects(cells)
    ms_rows = n_columns * float(row @ row) / (n_rows - 1)
    ms_columns = n_rows * float(column @ column) / (n_columns - 1)
    ms_residual = float((residual**2).sum()) / ((n_rows - 1) * (n_columns - 1))
    return {
        "rows": max(0.0, (ms_rows - ms_residual) / n_columns),
        "columns": max(0.0, (ms_columns - ms_residual) / n_rows),
        "interaction": ms_residual,
    }


class CrossedError(NamedTuple):
    """A standard error over two factors.

    Attributes:
        stderr: The error; ``nan`` where it can't be computed.
        dof: Its degrees of freedom.
    """

    stderr: float
    dof: float


def crossed_stderr(
    cells: Array, strata: Sequence[str] = (), is_skewed: bool = False
) -> CrossedError:
    """Return the standard error of the grand mean with both factors random, and its dof (Satterthwaite).

    The variance is item part + template part - residual part, not below the largest of the three. With strata g of n_g
    out of R rows, and C columns: item part ``sum_g n_g var_i(mean_t y) / R^2`` with variances within the stratum (ddof
    1), since the design fixes how many rows a stratum has; template part ``var_t(mean_i y) / C``; residual part, which
    both of them hold, ``sum_g n_g MS_residual(g) / (R^2 C)``. A plain standard error over the R x C cells takes them
    for independent and is too small; one without the strata takes the difference of their means for chance and is too
    large. Both ``nan`` with fewer than two columns, or two rows in a stratum.

    Source: Searle, Casella & McCulloch (1992), Variance Components; the same argument for language material in Clark
    (1973), The language-as-fixed-effect fallacy; strata: Cochran (1977), Sampling Techniques, section 5.3.

    Args:
        cells: Of the matrix.
        strata: Of each row; empty for one.
        is_skewed: Whether the degrees of freedom of both parts know how skewed they are
            (:func:`.intervals.skewed_dof`). Differences of two models are less so, and their tests hold without.
    """
    n_rows, n_columns = cells.shape
    labels = np.array(strata or [""] * n_rows)
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    if n_columns < 2 or min(map(len, groups)) < 2:
        return CrossedError(math.nan, math.nan)

    def skewed(deviations: Array, dof: float) -> float:
        if not is_skewed:
            return dof
        return skewed_dof(deviations, dof, np.ones(len(deviations)))

    item = residual = item_spread = residual_spread = (
        0.0  # a spread is the sum of squared parts over their dof
    )
    for rows in groups:
        row, _, rest = effects(cells[rows])
        n = len(rows)
        dof = len(rows) - 1
        item_part = n * float(row @ row) / dof / n_rows**2
        dof_residual = dof * (n_columns - 1)
        residual_part = n * float((rest**2).sum()) / dof_residual
        residual_part /= n_rows**2 * n_columns
        item += item_part
        item_spread += item_part**2 / skewed(row, dof)
        residual += residual_part
        residual_spread += residual_part**2 / dof_residual
    means = cells.mean(axis=0)
    template = float(means.var(ddof=1)) / n_columns
    variance = max(item + template - residual, item, template, residual)
    # a factor whose variance is no larger than the residuals' drops out; one alone holds the residual part already
    spreads = []
    if item > residual:
        spreads.append(item_spread)
    if template > residual:
        spreads.append(template**2 / skewed(means - means.mean(), n_columns - 1))
    if len(spreads) != 1:
        spreads.append(residual_spread)
    spread = math.fsum(spreads)
    effective = variance**2 / spread if spread > 0 else math.inf
    return CrossedError(math.sqrt(variance), effective)


def crossed_estimate(
    records: Documents, value: Contribution, kind: str, **described: Any
) -> Estimate:
    """Estimate the mean over templates, then over items, with the crossed standard error.

    With an incomplete product the mean of the item means stands, its standard error is ``nan``. A ``nan`` cell makes
    the mean ``nan``: nothing is left out silently.

    Args:
        records: The prompts.
        value: See :func:`grid`.
        kind: See :func:`grid`.
        described: See :func:`grid`.

    Raises:
        Undefined: There is no mean.
    """
    try:
        return grid(records, value, kind, **described).estimate()
    except Incomplete as incomplete:
        by_item: dict[str, list[float]] = {}
        for record in records:
            number = value(record)
            if number is not None:
                by_item.setdefault(str(record["item"]), []).append(number)
        mean = described.get("scale", 1.0) * fmean(map(fmean, by_item.values()))
        if math.isnan(mean):
            reason = f"a {kind} prompt has no value ({NO_VALUE})"
            raise Undefined(reason) from incomplete
        n = sum(map(len, by_item.values()))
        return Estimate(mean, math.nan, n, str(incomplete))


def crossed_mean(
    name: str,
    *,
    value: Contribution,
    low: float,
    high: float,
    kind: str = "item",
    stratum: Callable[[Record], str] | None = None,
    scale: float = 1.0,
    **described: Any,
) -> Score:
    """Make a score: the mean of a value over items x templates, both of which are a sample of others.

    Formula: mean over all cells. Undefined: no items, or a value that is no number -> ``nan`` with the reason.
    Denominator: all cells. Standard error: both factors random (:func:`crossed_stderr`); ``nan`` where the records are
    no full product. A mean from 0 to ``high`` gets Wilson's interval, as that of clustered shares; where nothing
    varies, with one observation for each level of the factor with fewer. The score can be compared between runs.

    Args:
        name: Its name in tables and result files.
        value: A record's value, ``None`` for one that has no part in the score; the record's fields ``item`` and
            ``template`` are its cell.
        low: Smallest possible value.
        high: Largest possible value.
        kind: See :func:`grid`.
        stratum: See :func:`grid`.
        scale: What values are multiplied by to be in the score's unit.
        described: ``summary``, ``neutral``, ``direction``, ``unit`` and ``higher_is_better``, see
            :class:`~lm_eval_bias.custom_metrics.score.Score`.

    >>> score = crossed_mean(
    ...     "share", value=lambda r: r["x"], summary="", low=0.0, high=1.0, neutral=0.5, direction="", unit="proportion"
    ... )
    >>> cells = [{"item": i, "template": t, "x": float((i * t) % 3 == 1)} for i in range(6) for t in range(4)]
    >>> estimate = score.compute(cells)
    >>> round(estimate.value, 3), [round(end, 3) for end in estimate.interval]
    (0.167, [0.029, 0.573])
    """
    design = partial(
        grid,
        value=value,
        kind=kind,
        stratum=stratum,
        scale=scale,
        bounds=(low, high) if math.isfinite(low) and math.isfinite(high) else None,
    )

    def contribution(record: Record) -> float | None:
        part = value(record)
        return None if part is None else scale * part

    return Score(
        name,
        low=low,
        high=high,
        contribution=contribution,
        design=design,
        statistic=partial(crossed_estimate, **design.keywords),
        **described,
    )
