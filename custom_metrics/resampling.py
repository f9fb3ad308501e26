"""Differences of two models' scores by resampling.

Two models' scores on the same items share the clusters, so that what makes an item hard for both cancels out of their
difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.bootstrap import AT_A_TIME, SEED, effective_size
from lm_eval_bias.custom_metrics.crossed import components, crossed_stderr, effects, rows_by_stratum
from lm_eval_bias.custom_metrics.designs import Array, Cells, Clusters, Design
from lm_eval_bias.custom_metrics.jackknife import left_out, standard_error
from lm_eval_bias.custom_metrics.joined_intervals import correlation_of, interval_of_difference
from lm_eval_bias.custom_metrics.score import NOTHING_VARIED, ROUNDING, t_factor

DRAWS = 10_000
LEVEL = 0.05
POWER = 0.8
SWAP = "models swapped by cluster"
FLIP = "signs flipped by item, template and cell"
STUDENT = "Student's t on clusters"
FISHER = "Student's t on Fisher's z"
FINE = 4  # possible p-values below the level: swaps of fewer clusters reject far more seldom than it says
ENOUGH_TO_FLIP = 4  # templates: the signs of fewer reject equal models in 7% to 20% of simulated rounds
_CHUNK = 1_000  # draws at a time where each needs a table of its own
_MATRICES = 100  # the same, where that table is items x templates: so many stay in the processor's cache
_TOLERANCE = 1e-9  # resamples as far out as the data count as further out despite rounding


@dataclass(frozen=True)
class Difference:
    """The difference of one score between two models, in the score's unit.

    Attributes:
        value: First minus second.
        stderr: Its standard error; ``nan`` where it cannot be computed, never 0.
        dof: Degrees of freedom.
        p: Two-sided p-value of no difference.
        test: How ``p`` came about.
        sum_value: First plus second.
        sum_stderr: Standard error of that: which of two signed scores is larger in size shows in sum and difference.
        reason: Why something is ``nan``.
        least_p: The least ``p`` that the test can give, whatever the data: few clusters can be swapped in few ways.
        ends: The 95% interval where it isn't ``value ± t * stderr``.
    """

    value: float
    stderr: float
    dof: float
    p: float
    test: str
    sum_value: float
    sum_stderr: float
    reason: str = ""
    least_p: float = 0.0
    ends: tuple[float, float] | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the difference."""
        if self.ends or math.isnan(self.value) or math.isnan(self.stderr):
            return self.ends
        margin = t_factor(self.dof) * self.stderr
        return self.value - margin, self.value + margin

    def detectable(self, level: float = LEVEL) -> float:
        """The smallest true difference that a two-sided test at that level finds with a probability of 80%.

        ``nan`` where there is no test at that level.

        Args:
            level: Of this one test: 5% over the number of tests where they are corrected for it.
        """
        if math.isnan(self.at_level(level).p):
            return math.nan
        return (t_factor(self.dof, 1 - level) + t_factor(self.dof, 2 * POWER - 1)) * self.stderr

    def at_level(self, level: float) -> Difference:
        """The same difference, tested in a way that can reject at that level: by Student's t where swaps are too few.

        Swaps of 6 clusters give p-values in steps of 3%: they would reject at 5% in no more than 3% of cases. Of
        more clusters a p-value that is larger than a few steps stands: no test finds more because there are more tests.
        Student's t on the jackknife's standard error rejects equal models in 1% to 5% of simulated data sets of 3 to 6
        clusters at the level of 5%, the less often the more unequal the clusters are. Clusters that are worth no more
        than 2 equally large ones have no test.
        """
        finest = self.least_p if math.isnan(self.stderr) else FINE * self.least_p
        if finest <= level or (finest <= LEVEL and self.p > finest):
            return self
        if math.isnan(self.stderr):
            return replace(self, p=math.nan, test="")
        if self.dof <= 1:
            reason = "too few clusters for a test: they count as no more than 2 clusters of equal size"
            return replace(self, p=math.nan, test="", reason=reason)
        return replace(self, p=student_p(self.value, self.stderr, self.dof), test=STUDENT, least_p=0.0)


def student_p(value: float, stderr: float, dof: float) -> float:
    """Two-sided p-value of Student's t; ``nan`` without a standard error.

    >>> round(student_p(1.96, 1.0, math.inf), 4), round(student_p(-12.7062, 1.0, 1.0), 4)
    (0.05, 0.05)
    """
    from scipy import special

    t = -abs(value) / stderr
    return 2 * float(special.ndtr(t) if math.isinf(dof) else special.stdtr(dof, t))


@lru_cache(maxsize=4)
def _signs(count: int, draws: int, seed: int) -> NDArray[np.bool_]:
    return np.random.default_rng([seed, count]).random((draws, count)) < 0.5


def resampled_p(statistics: Array, observed: float, test: str, beyond: float, how: str) -> tuple[float, str]:
    """Two-sided p-value by resampling, continued where no resample is as far out as the data; and how it came about.

    ``(1 + resamples as far out) / (1 + resamples)`` can't go below its floor, ``1 / (1 + resamples)``, so that no test
    among many could reject after correction. At the floor the smaller of it and ``beyond`` stands.

    Args:
        statistics: The statistic of each resample; those that are no numbers are left out.
        observed: The data's.
        test: What is resampled.
        beyond: The p-value that goes on from the floor.
        how: What that is.
    """
    statistics = statistics[np.isfinite(statistics)]
    further = int((np.abs(statistics) >= abs(observed) * (1 - _TOLERANCE) - 1e-15).sum())
    p = (1 + further) / (1 + len(statistics))
    return (beyond, f"{test}, beyond all resamples {how}") if not further and beyond < p else (p, test)


def _clustered(a: Clusters, b: Clusters, draws: int, seed: int) -> Difference:
    count = len(a.names)
    value, total = a.value - b.value, a.value + b.value
    without_a, without_b = left_out(a), left_out(b)
    stderr, reason = standard_error(value, without_a - without_b)
    sum_stderr, _ = standard_error(total, without_a + without_b)
    dof = max(effective_size(a.sizes) - 1, 1.0)
    least_p = 2.0 ** (1 - count)  # nothing is as far out as the data but the data themselves, swapped or not
    difference = Difference(value, stderr, dof, math.nan, "", total, sum_stderr, reason, least_p)
    if math.isnan(value):
        return replace(difference, reason="a model has no value")
    if count < 2:
        return replace(difference, reason="only one cluster")
    if np.array_equal(a.totals, b.totals):
        return replace(difference, p=1.0, least_p=0.0, reason="the models' answers are the same in every cluster")
    if a.composite:
        return replace(difference, least_p=1.0)
    signs = _signs(count, draws, seed)
    ones = np.ones((1, count))
    null_differences = np.empty(draws)
    for start in range(0, draws, _CHUNK):
        unswapped = signs[start : start + _CHUNK, :, None]
        totals_a, totals_b = np.where(unswapped, a.totals, b.totals), np.where(unswapped, b.totals, a.totals)
        null_differences[start : start + _CHUNK] = a.of(ones, totals_a) - b.of(ones, totals_b)
    if math.isnan(stderr) and np.isfinite(without_a - without_b).all():
        beyond = least_p, "exact"  # all clusters agree
    else:
        beyond = max(student_p(value, stderr, dof), least_p), "Student's t"
    p, test = resampled_p(null_differences, value, SWAP, *beyond)
    return replace(difference, p=p, test=test)


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
        means, of_columns, ss_residual = _two_way(row[:, rows], column, residual if n == n_rows else residual[:, rows])
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
        reason = f"needs at least 2 items and 2 templates, there are {a.cells.shape[0]} and {a.cells.shape[1]}"
        return Difference(value, math.nan, math.nan, math.nan, "", total, math.nan, reason)
    cells = a.cells - b.cells
    stderr, dof = crossed_stderr(cells, a.strata)
    sum_stderr = crossed_stderr(a.cells + b.cells, a.strata)[0]
    if stderr <= ROUNDING * max(1.0, abs(value)):
        p, reason = math.nan, NOTHING_VARIED
        if abs(value) <= ROUNDING * max(1.0, abs(total)):
            value, p, reason = 0.0, 1.0, "the models' answers are the same in every cell"
        sum_stderr = sum_stderr if sum_stderr > ROUNDING * max(1.0, abs(total)) else math.nan
        return Difference(value, math.nan, dof, p, "", total, sum_stderr, reason)
    if a.correlation:
        p, dof, ends = _correlations(a, b)
        return Difference(value, stderr, dof, p, FISHER, total, sum_stderr, ends=ends)
    # in the far tail an overestimate of the degrees of freedom tells: there are no more than the smaller factor's
    fewest = min(dof, min(cells.shape) - 1)
    beyond = student_p(value, stderr, fewest)
    if cells.shape[1] < ENOUGH_TO_FLIP:
        return Difference(value, stderr, fewest, beyond, "Student's t, few templates", total, sum_stderr)
    p, test = resampled_p(flipped_t(cells, draws, seed, a.strata), value / stderr, FLIP, beyond, "Student's t")
    return Difference(value, stderr, dof, p, test, total, sum_stderr)


def _correlations(a: Cells, b: Cells) -> tuple[float, float, tuple[float, float]]:
    """P-value, its degrees of freedom and the 95% interval of the difference of two correlations.

    On the scale of Fisher's z, on which the error doesn't depend on how large a correlation is; cells by the delta
    method.

    Source: Fisher (1921), On the "probable error" of a coefficient of correlation deduced from a small sample.
    """
    r, s = a.value, b.value
    z, w = (a.cells - r) / (1 - r**2), (b.cells - s) / (1 - s**2)
    stderr, dof = crossed_stderr(z - w, a.strata)
    first, second = (crossed_stderr(cells, a.strata) for cells in (z, w))
    rho = correlation_of(first[0], second[0], stderr)
    ends = interval_of_difference((r, s), (_fisher_interval(r, *first), _fisher_interval(s, *second)), rho)
    return student_p(math.atanh(r) - math.atanh(s), stderr, dof), dof, ends


def _fisher_interval(correlation: float, stderr: float, dof: float) -> tuple[float, float]:
    """The 95% interval of a correlation whose z has this standard error."""
    z, half = math.atanh(correlation), t_factor(dof) * stderr
    return math.tanh(z - half), math.tanh(z + half)


def paired(a: Design, b: Design, draws: int = DRAWS, seed: int = SEED) -> Difference:
    """The difference of a score between two models on the same items.

    Standard error: jackknife over clusters, the same for both models; for means over items x templates the crossed
    standard error. The interval takes Student's t with as many degrees of freedom as there are clusters of equal worth,
    less one.
    P-value: the models are swapped in whole clusters (exact where they are exchangeable); for means over items x
    templates the signs of item effects, template effects and residuals are flipped, and studentised means compared.
    Where no resample is as far out as the data, Student's t goes on from there; see :func:`resampled_p`. Student's t
    alone is the test of composite scores, whose equality doesn't make two models exchangeable, of correlations (on the
    scale of Fisher's z), of fewer than four templates, and where clusters are so few that swaps reject at 5% far more
    seldom; see :meth:`Difference.at_level`.

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
            raise ValueError("the clusters differ")
        return _clustered(a, b, draws, seed).at_level(LEVEL)
    if isinstance(a, Cells) and isinstance(b, Cells):
        if (a.items, a.templates, a.strata) != (b.items, b.templates, b.strata):
            raise ValueError("the items, templates or strata differ")
        return _crossed(a, b, draws, seed)
    raise ValueError("the layouts differ")


def unpaired(first: tuple[float, float, float], second: tuple[float, float, float]) -> Difference:
    """The difference of two scores that share nothing: value, standard error and degrees of freedom of each.

    Source: Welch (1947); Student's t.
    """
    (a, se_a, dof_a), (b, se_b, dof_b) = first, second
    if not (se_a > 0 and se_b > 0):
        return Difference(a - b, math.nan, math.nan, math.nan, "", a + b, math.nan, "no standard error")
    stderr = math.hypot(se_a, se_b)
    inverse = se_a**4 / dof_a + se_b**4 / dof_b
    dof = stderr**4 / inverse if inverse > 0 else math.inf
    return Difference(a - b, stderr, dof, student_p(a - b, stderr, dof), "Welch's t, unpaired", a + b, stderr)
