"""Differences of two models' scores by resampling.

Two models' scores on the same items share the clusters, so that what makes an item hard for both cancels out of their
difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.bootstrap import AT_A_TIME, SEED, cluster_weights, effective_size
from lm_eval_bias.custom_metrics.crossed import components, crossed_stderr, effects, rows_by_stratum
from lm_eval_bias.custom_metrics.designs import Array, Cells, Clusters, Design
from lm_eval_bias.custom_metrics.score import t_factor

DRAWS = 10_000
POWER = 0.8
_CHUNK = 1_000  # draws at a time where each needs a table of its own
_MATRICES = 100  # the same, where that table is items x templates: so many stay in the processor's cache
_TOLERANCE = 1e-9  # resamples as far out as the data count as further out despite rounding


@dataclass(frozen=True)
class Difference:
    """The difference of one score between two models, in the score's unit.

    Attributes:
        value: First minus second.
        stderr: Its standard error; ``nan`` where it cannot be computed.
        dof: Degrees of freedom.
        p: Two-sided p-value of no difference.
        test: How ``p`` came about.
        sum_value: First plus second.
        sum_stderr: Standard error of that: which of two signed scores is larger in size shows in sum and difference.
        reason: Why something is ``nan``.
    """

    value: float
    stderr: float
    dof: float
    p: float
    test: str
    sum_value: float
    sum_stderr: float
    reason: str = ""

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the difference."""
        if math.isnan(self.value) or math.isnan(self.stderr):
            return None
        margin = t_factor(self.dof) * self.stderr
        return self.value - margin, self.value + margin

    @property
    def detectable(self) -> float:
        """The smallest true difference that a two-sided test at 5% finds with a probability of 80%."""
        return (t_factor(self.dof) + t_factor(self.dof, 2 * POWER - 1)) * self.stderr


@lru_cache(maxsize=4)
def _signs(count: int, draws: int, seed: int) -> NDArray[np.bool_]:
    return np.random.default_rng([seed, count]).random((draws, count)) < 0.5


def _stderr(scores: Array) -> float:
    """From bootstrap draws, ``nan`` where more than a tenth have no value."""
    finite = scores[np.isfinite(scores)]
    return float(finite.std(ddof=1)) if len(finite) >= 0.9 * len(scores) else math.nan


def _p(statistics: Array, observed: float) -> float:
    statistics = statistics[np.isfinite(statistics)]
    further = int((np.abs(statistics) >= abs(observed) * (1 - _TOLERANCE) - 1e-15).sum())
    return (1 + further) / (1 + len(statistics))


def _clustered(a: Clusters, b: Clusters, draws: int, seed: int) -> Difference:
    count = len(a.names)
    value, total = a.value - b.value, a.value + b.value
    if count < 2:
        return Difference(value, math.nan, math.nan, math.nan, "", total, math.nan, "one cluster only")
    weights = cluster_weights(count, draws, seed)
    scores_a, scores_b = a.of(weights, a.totals), b.of(weights, b.totals)
    correction = math.sqrt(count / (count - 1))  # the bootstrap's variance is too small by the factor (G - 1) / G
    stderr, sum_stderr = _stderr(scores_a - scores_b) * correction, _stderr(scores_a + scores_b) * correction
    if math.isnan(stderr):
        dof, reason = math.nan, "too many resamples have no value: too few items in some clusters"
    else:
        dof, reason = max(effective_size(a.sizes) - 1, 1.0), ""
    signs = _signs(count, draws, seed)
    ones = np.ones((1, count))
    null_differences = np.empty(draws)
    for start in range(0, draws, _CHUNK):
        unswapped = signs[start : start + _CHUNK, :, None]
        totals_a, totals_b = np.where(unswapped, a.totals, b.totals), np.where(unswapped, b.totals, a.totals)
        null_differences[start : start + _CHUNK] = a.of(ones, totals_a) - b.of(ones, totals_b)
    p = _p(null_differences, value)
    return Difference(value, stderr, dof, p, "models swapped by cluster", total, sum_stderr, reason)


def flipped_t(cells: Array, draws: int, seed: int, strata: Sequence[str] = ()) -> Array:
    """Studentised means of sign-flipped data: whole rows, whole columns, and single cells for the residuals.

    Flipping rows or columns alone would keep the other's effects as they are, so each part of the two-way decomposition
    is flipped by itself (a wild bootstrap with two-way clusters). Row effects and residuals are those within strata;
    the strata's means need not be equal, only the mean over all is 0.

    Args:
        cells: Differences, shape (R, C).
        draws: Resamples.
        seed: Of the random numbers.
        strata: Each row's stratum, length R; empty for one.
    """
    n_rows, n_columns = cells.shape
    groups = rows_by_stratum(cells, strata)
    row, residual = np.empty((n_rows, 1)), np.empty(cells.shape)
    residual_part = 0.0  # of the variance of a column mean
    for rows in groups:
        of_rows, _, of_cells = effects(cells[rows])
        variances = components(cells[rows])
        # the estimated effects carry the interaction's noise, which is flipped on its own: shrink them
        row[rows, 0] = of_rows * _shrink(variances.rows, of_rows)
        residual[rows] = of_cells * math.sqrt(of_cells.size / ((len(rows) - 1) * (n_columns - 1)))
        residual_part += len(rows) * variances.interaction / n_rows**2
    column = cells.mean(axis=0) - cells.mean()
    column = column * _shrink(max(0.0, float(column @ column) / (n_columns - 1) - residual_part), column)
    rng = np.random.default_rng(seed)
    t_values = np.empty(draws)
    chunk = max(1, min(_MATRICES, AT_A_TIME // cells.size))
    for start in range(0, draws, chunk):
        size = min(chunk, draws - start)
        s, t, u = (_flips(rng, size, *shape) for shape in ((n_rows, 1), (1, n_columns), (n_rows, n_columns)))
        t_values[start : start + size] = studentised((s * row)[:, :, 0], t[:, 0, :] * column, u * residual, groups)
    return t_values


def _flips(rng: np.random.Generator, *shape: int) -> NDArray[np.int8]:
    return rng.integers(0, 2, shape, dtype=np.int8) * np.int8(2) - np.int8(1)


def _shrink(variance: float, effects: Array) -> float:
    """The factor that gives effects (with mean 0) that variance (ddof 0)."""
    squares = float((effects**2).sum())
    return math.sqrt(variance * len(effects) / squares) if squares > 0 else 0.0


def studentised(row: Array, column: Array, residual: Array, groups: Sequence[NDArray[np.intp]] = ()) -> Array:
    """Mean over the crossed standard error of the matrices ``row_i + column_j + residual_ij``.

    From their sums alone: the matrices themselves would be several passes over the largest array.

    Args:
        row: Row effects, shape (draws, R).
        column: Column effects, shape (draws, C).
        residual: Residuals, shape (draws, R, C).
        groups: Row numbers of each stratum; empty for one.
    """
    draws, n_rows, n_columns = residual.shape
    item, noise, column_means = np.zeros(draws), np.zeros(draws), np.zeros((draws, n_columns))
    for rows in groups or [np.arange(n_rows)]:
        n = len(rows)
        means, of_columns, ss_residual = _two_way(row[:, rows], column, residual[:, rows] if groups else residual)
        item += n * means.var(axis=1, ddof=1) / n_rows**2
        noise += n * ss_residual / ((n - 1) * (n_columns - 1)) / (n_rows**2 * n_columns)
        column_means += of_columns * (n / n_rows)
    template = column_means.var(axis=1, ddof=1) / n_columns
    variance = np.maximum.reduce([item + template - noise, item, template, noise])
    with np.errstate(divide="ignore", invalid="ignore"):
        return column_means.mean(axis=1) / np.sqrt(variance)


def _two_way(row: Array, column: Array, residual: Array) -> tuple[Array, Array, Array]:
    """Row means, column means and residual sum of squares of the matrices ``row_i + column_j + residual_ij``."""
    _, n_rows, n_columns = residual.shape
    residual_rows, residual_columns = residual.sum(axis=2), residual.sum(axis=1)
    row_total, column_total = row.sum(axis=1), column.sum(axis=1)
    squares = (
        n_columns * (row**2).sum(axis=1)
        + n_rows * (column**2).sum(axis=1)
        + np.einsum("dij,dij->d", residual, residual)
        + 2 * (row_total * column_total + (row * residual_rows).sum(axis=1) + (column * residual_columns).sum(axis=1))
    )
    row_means = row + (column_total[:, None] + residual_rows) / n_columns
    column_means = column + (row_total[:, None] + residual_columns) / n_rows
    mean = row_means.mean(axis=1)
    ss_rows = n_columns * ((row_means - mean[:, None]) ** 2).sum(axis=1)
    ss_columns = n_rows * ((column_means - mean[:, None]) ** 2).sum(axis=1)
    return row_means, column_means, np.maximum(squares - n_rows * n_columns * mean**2 - ss_rows - ss_columns, 0.0)


def _crossed(a: Cells, b: Cells, draws: int, seed: int) -> Difference:
    value, total = a.value - b.value, a.value + b.value
    if min(a.cells.shape) < 2:
        reason = f"needs 2 items and 2 templates, has {a.cells.shape}"
        return Difference(value, math.nan, math.nan, math.nan, "", total, math.nan, reason)
    cells = a.cells - b.cells
    stderr, dof = crossed_stderr(cells, a.strata)
    sum_stderr = crossed_stderr(a.cells + b.cells, a.strata)[0]
    if stderr == 0:
        return Difference(value, 0.0, dof, 1.0 if value == 0 else math.nan, "", total, sum_stderr)
    p = _p(flipped_t(cells, draws, seed, a.strata), value / stderr)
    return Difference(value, stderr, dof, p, "signs flipped by item, template and cell", total, sum_stderr)


def paired(a: Design, b: Design, draws: int = DRAWS, seed: int = SEED) -> Difference:
    """The difference of a score between two models on the same items.

    Standard error: bootstrap of whole clusters, the same for both models; for means over items x templates the crossed
    standard error. The interval takes Student's t with as many degrees of freedom as there are clusters of equal worth,
    less one.
    P-value: the models are swapped in whole clusters (exact where they are exchangeable); for means over items x
    templates the signs of item effects, template effects and residuals are flipped, and studentised means compared.

    Args:
        a: The first model's score.
        b: The second's.
        draws: Resamples.
        seed: Of the random numbers.

    Raises:
        ValueError: They are not on the same clusters.
    """
    if isinstance(a, Clusters) and isinstance(b, Clusters):
        if a.names != b.names:
            raise ValueError("not the same clusters")
        return _clustered(a, b, draws, seed)
    if isinstance(a, Cells) and isinstance(b, Cells):
        if (a.items, a.templates, a.strata) != (b.items, b.templates, b.strata):
            raise ValueError("not the same items, templates and strata")
        return _crossed(a, b, draws, seed)
    raise ValueError("not the same layout")


def unpaired(first: tuple[float, float, float], second: tuple[float, float, float]) -> Difference:
    """The difference of two scores that share nothing: value, standard error and degrees of freedom of each.

    Source: Welch (1947); Student's t.
    """
    from scipy import special

    (a, se_a, dof_a), (b, se_b, dof_b) = first, second
    stderr = math.hypot(se_a, se_b)
    if math.isnan(stderr) or stderr == 0:
        reason = "no standard error" if math.isnan(stderr) else ""
        return Difference(a - b, stderr, math.inf, math.nan, "", a + b, stderr, reason)
    dof = stderr**4 / (se_a**4 / dof_a + se_b**4 / dof_b) if se_a**4 / dof_a + se_b**4 / dof_b > 0 else math.inf
    t = abs(a - b) / stderr
    p = 2 * float(special.ndtr(-t) if math.isinf(dof) else special.stdtr(dof, -t))
    return Difference(a - b, stderr, dof, p, "Welch's t, unpaired", a + b, stderr)
