"""Scores whose items are independent between clusters only: tables of sums, the jackknife, Student's t.

A score is a function of sums over clusters (:class:`Clusters`). The jackknife leaves out one cluster at a time, within
the strata that the clusters were chosen from; Student's t takes the effective number of clusters, less one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np

from lm_eval_bias.custom_metrics.intervals import (
    Array,
    agreed,
    interval_of_difference,
    scaled,
    score_interval,
    skewed_dof,
    three_point_moments,
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
    joined,
    require,
    stderr_of,
)

# from sums over draws of clusters, shape (draws, K), to scores of shape (draws,)
OfSums = Callable[[Array], Array]
LARGE = 0.2  # the share of the items in one cluster from which on the intervals may not hold
UNEVEN = "where effects grow with its size, intervals cover too seldom and tests reject too often"
FEW_DEVIATE = 3  # clusters that deviate from unanimity: the spread of fewer says little


@dataclass(frozen=True)
class Clusters:
    """A score as a function of sums over clusters.

    Attributes:
        names: The clusters, sorted, length G.
        sizes: Items per cluster, or what else each cluster weighs, shape (G,); clusters of 0 hold nothing.
        totals: What is summed, shape (G, K).
        of: Computes the score of draws of clusters, see :data:`OfSums`.
        strata: What each cluster was chosen from, length G; empty for one stratum.
        places: The cluster of each item, shape (n,).
        columns: What each item adds to its cluster's totals, shape (n, K).
        whole: The value of a share that all items have part in (1 or 100); ``None`` for what is no share.
        bounds: The smallest and largest possible value of a mean that is no share; ``None`` for others.
        differing: Of a difference of two shares, computes the share of the observations in which the two differ, of
            draws of clusters as ``of``; ``None`` for others.
        sides: What it is the difference of, where both have intervals of their own on the same clusters.
        kind: What the clusters are, for the reason of a ``nan``.
        note: What to beware of.
        exact: The score, where it was computed in another order of operations.
        n: Number of items, where that isn't the sum of the sizes.
        most: How many observations a share's interval may rest on at most: independent items.
    """

    names: list[str]
    sizes: Array
    totals: Array
    of: OfSums
    strata: Sequence[str]
    places: Array
    columns: Array
    whole: float | None = None
    bounds: Bounds | None = None
    differing: OfSums | None = None
    sides: tuple[Clusters, Clusters] | None = None
    kind: str = "clusters"
    note: str = ""
    exact: float | None = None
    n: int | None = None
    most: float = math.inf

    @cached_property
    def value(self) -> float:
        """The score itself."""
        return float(self.of(self._everything)[0])

    @cached_property
    def without(self) -> Array:
        """The leave-one-cluster-out values of the score (:func:`left_out`)."""
        return left_out(self)

    @cached_property
    def strata_of_kept(self) -> tuple[list[Array], list[float]]:
        """The non-empty clusters of each stratum, and the degrees of freedom."""
        kept = self.sizes > 0
        label = _strata(self)[kept]
        sizes = self.sizes[kept]
        strata = [label == stratum for stratum in dict.fromkeys(label)]
        dofs = []
        for stratum in strata:
            weights = sizes[stratum]
            dofs.append(float(weights.sum() ** 2 / (weights**2).sum()) - 1)
        return strata, dofs

    @property
    def count(self) -> int:
        """The number of non-empty clusters."""
        return int((self.sizes > 0).sum())

    @property
    def _everything(self) -> Array:
        return np.ones((1, len(self.names))) @ self.totals

    def variance_at(self, value: float) -> float:
        """Override: return ``p (1 - p)`` for a share, ``q - d^2`` for a difference, and a constant for other means.

        The share ``q`` in which the two sides differ grows with the size of the difference. At an end of the range it
        is that of one observation a cluster.
        """
        if self.whole is not None:
            p = min(1.0, max(0.0, value / self.whole))
            variance = p * (1 - p)
        elif self.differing is not None:
            more = max(0.0, abs(value) - abs(self.value))
            differ = min(1.0, self._differ(self.value) + more)
            variance = differ - min(1.0, value**2)
        else:
            return 1.0
        return max(variance, 1 / (4 * max(self.count, 1)))

    def estimate(self) -> Estimate:
        """Estimate the score with its error over clusters, and Student's t with their effective number, less one.

        A share gets Wilson's interval with as many observations as give its standard error, ``p (1 - p) / stderr^2``,
        and Student's t for the normal quantile: near 0 and 1 the symmetric interval covers too seldom. Degrees of
        freedom know how skewed the clusters are (:func:`.intervals.skewed_dof`).

        Where all clusters agree, it is Wilson's with one observation a cluster: however alike the items of a cluster
        are, they all agree with a probability of at most ``p^G``. Where fewer than three clusters deviate from
        unanimity, it is joined with that one: their spread says little of how often others deviate. The standard error
        is then at least half the interval over Student's t. Another mean at the end of its range has that interval
        where all agree.

        A difference of two shares gets Tango's score interval with as many observations as give its standard error,
        ``(q - d^2) / stderr^2`` with the share ``q`` in which the two differ, since it can't vary by more than that.
        Where all clusters agree, or fewer than three deviate, clusters count once, as for shares: with no deviation at
        all it reaches as far as their Wilson's. A difference of such differences joins the intervals of both.

        Source of the interval: Korn & Graubard (1998), Confidence intervals for proportions with small expected number
        of positive counts estimated from survey data; Franco et al. (2019), Comparative study of confidence intervals
        for proportions in complex sample surveys.
        """
        value = self.value if self.exact is None else self.exact
        without = self.without
        kept = self.sizes > 0
        stderr, dof, reason = self.error(value, without)
        interval = None
        by = self._statistics_of_error(stderr, dof)
        if self.count > 1 and bool(np.isfinite(without[kept]).all()):
            interval = self._ends(value, stderr, dof, without[kept])
            few = math.isnan(stderr) or self._is_nearly_unanimous()
            by += self._statistics_of_interval(interval, math.isnan(stderr), few)
            if interval is not None and few:
                half = stderr_of(interval, dof)
                stderr = half if math.isnan(stderr) else max(half, stderr)
                reason = ""
        share = float(self.sizes.max() / self.sizes.sum())
        large = ""
        # twice as much as it would have if all were alike
        if share > LARGE and share * self.count > 2:
            large = (
                f"one of the {self.kind} has {100 * share:.0f}% of the items: {UNEVEN}"
            )
        n = int(self.sizes.sum()) if self.n is None else self.n
        note = joined(reason, large, self.note)
        made = partial(Estimate, value, stderr, n, note, dof, interval)
        return made(clusters=self.count, statistics=[] if math.isnan(stderr) else by)

    def _statistics_of_error(self, stderr: float, dof: float) -> list[str]:
        """Name the methods of the error and its degrees of freedom."""
        if math.isnan(stderr):
            return []
        _, dofs = self.strata_of_kept
        if len(dofs) > 1:
            return ["jackknife", "satterthwaite"]
        return ["jackknife"] + ["skewness"] * int(dof < dofs[0])

    def _statistics_of_interval(
        self, interval: Bounds | None, is_certain: bool, few: bool
    ) -> list[str]:
        """Name the methods of the interval, in the order of :meth:`_ends`."""
        if interval is None:
            return ["student"]
        if self.sides is not None:
            of_sides = [side.estimate().statistics for side in self.sides]
            names = dict.fromkeys(chain.from_iterable(of_sides))
            return [*names, "mover", *["of_interval"] * int(is_certain)]
        is_difference = self.whole is None and self.differing is not None
        usual = "tango" if is_difference else "wilson"
        rare = "few_differ" if is_difference else "few_deviate"
        return [usual] * int(not is_certain) + [rare] * int(few)

    def error(self, value: float, without: Array) -> tuple[float, float, str]:
        """Return :func:`standard_error`, with degrees of freedom adjusted for skewed clusters of shares.

        Args:
            value: The score.
            without: The same without each cluster, see :func:`left_out`.
        """
        stderr, dof, reason = standard_error(value, without, self)
        of_shares = self.whole is not None or self.differing is not None
        if not of_shares or math.isnan(stderr):
            return stderr, dof, reason
        kept = self.sizes > 0
        scale = self.whole or 1.0
        mean = value / scale
        # a share is a difference from nothing
        differ = mean if self.differing is None else self._differ(value)
        variance, fourth = three_point_moments(mean, differ)
        known = fixed = 0.0
        if variance > ROUNDING:
            items = float(self.sizes.sum())
            known = (fourth / variance**2 - 3) * kept.sum() / items
            # what varies less than hits and misses isn't told by its mean
            fixed = min(1.0, items * (stderr / scale) ** 2 / variance)
        off = without[kept] - value
        return stderr, skewed_dof(off, dof, self.sizes[kept], known, fixed), reason

    def _differ(self, value: float) -> float:
        """Return the share of the observations in which the two sides of a difference differ, at least its size."""
        assert self.differing is not None
        differ = float(self.differing(self._everything)[0])
        return min(1.0, max(abs(value), differ))

    def _deviate(self, of: OfSums, value: float) -> float:
        """Count the clusters that deviate from a common value of their sums' function; infinite without one."""
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = of(self.totals)[self.sizes > 0]
        known = alone[~np.isnan(alone)]
        if not len(known):  # a mean of strata, of which no cluster has all
            return math.inf
        return float((abs(known - value) > ROUNDING * max(1.0, abs(value))).sum())

    def _is_nearly_unanimous(self) -> bool:
        """Return whether fewer than three clusters deviate from a unanimous share or difference."""
        ends: list[tuple[OfSums, float]] = []
        if self.whole is not None:
            ends = [(self.of, 0.0), (self.of, self.whole)]
        elif self.differing is not None:
            ends = [(self.differing, 0.0), (self.of, -1.0), (self.of, 1.0)]
        return any(self._deviate(of, end) < FEW_DEVIATE for of, end in ends)

    def _ends(
        self, value: float, stderr: float, dof: float, without: Array
    ) -> Bounds | None:
        """Return the interval if it isn't Student's t times the standard error."""
        if self.sides is not None:
            return self._of_sides(without - value)
        if self.whole is not None:
            return self._of_share(value / self.whole, stderr / self.whole, dof)
        if self.differing is not None:
            return self.of_difference(value, stderr, dof)
        if self.bounds is not None and math.isnan(stderr):
            return agreed(value, self.bounds, len(without))
        return None

    def _of_share(self, p: float, stderr: float, dof: float) -> Bounds:
        ends = []
        if not math.isnan(stderr) and 0 < p < 1:
            ends.append(wilson_of(p, stderr, dof, self.most))
        # ICAT can be at an end of its range where clusters don't agree
        if not ends or self._is_nearly_unanimous():
            ends.append(wilson(p * self.count, self.count))
        assert self.whole is not None
        return scaled(_joined(ends), (0.0, self.whole))

    def of_difference(self, value: float, stderr: float, dof: float) -> Bounds:
        """Return the interval of a difference of two shares.

        Args:
            value: The difference.
            stderr: Its standard error; ``nan`` where nothing varied.
            dof: Degrees of freedom of that.
        """
        assert self.differing is not None
        differ = self._differ(value)
        ends = []
        room = differ - value**2
        if not math.isnan(stderr) and room > ROUNDING:
            ends.append(score_interval(value, differ, room / stderr**2, dof))
        if self._deviate(self.differing, 0.0) < FEW_DEVIATE:
            high = wilson(differ * self.count, self.count)[1]
            ends.append((-high, high))
        elif not ends or self._is_nearly_unanimous():
            ends.append(score_interval(value, differ, self.count))
        return _joined(ends)

    def _of_sides(self, deviations: Array) -> Bounds | None:
        """Join the intervals of both sides, which rest on the same clusters."""
        assert self.sides is not None
        estimates = [side.estimate() for side in self.sides]
        first, second = (estimate.ends() for estimate in estimates)
        if first is None or second is None:
            return None
        offs = [side.without - side.value for side in self.sides]
        spread = math.sqrt(math.prod(float(off @ off) for off in offs))
        together = float(offs[0] @ offs[1]) / spread if spread > 0 else 0.0
        return interval_of_difference(
            (estimates[0].value, first), (estimates[1].value, second), together
        )


def _joined(ends: Sequence[Bounds]) -> Bounds:
    """Return the union of intervals."""
    return min(low for low, _ in ends), max(high for _, high in ends)


def share_of(sums: Array) -> Array:
    """Divide the second column's sum by the first's."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return sums[:, 1] / sums[:, 0]


def differing_of(first: Array, second: Array) -> Array:
    """Return the share of pairs of independent hits that differ, from two shares of hits."""
    return first * (1 - second) + second * (1 - first)


def differing_in(sums: Array) -> Array:
    """Compute :func:`differing_of` from the sums of :func:`difference_of`."""
    return differing_of(share_of(sums[:, :2]), share_of(sums[:, 2:]))


def difference_of(sums: Array) -> Array:
    """Divide the second column's sum by the first's, and subtract the fourth's by the third's."""
    return share_of(sums[:, :2]) - share_of(sums[:, 2:])


def tabulate(
    clusters: Sequence[object],
    rows: Sequence[Sequence[float]] | Array,
    of: OfSums,
    strata: Sequence[str] = (),
    **described: Any,
) -> Clusters:
    """Sum the items' values over clusters.

    Args:
        clusters: Cluster of each item, length n.
        rows: What is summed, K numbers of each item, shape (n, K).
        of: See :class:`Clusters`.
        strata: Stratum of each item, length n; empty for one.
        described: Further fields of :class:`Clusters`, such as ``whole`` and ``kind``.
    """
    labels = list(map(str, clusters))
    unique, places = np.unique(labels, return_inverse=True)
    names = unique.tolist()
    values = np.array(rows, dtype=np.float64)
    sums_of = [np.bincount(places, column) for column in values.T]
    totals = np.stack(sums_of, axis=1, dtype=np.float64)
    sizes = np.bincount(places).astype(np.float64)
    if strata:
        stratum = dict(zip(labels, strata, strict=True))
        strata = [stratum[name] for name in names]
    return Clusters(names, sizes, totals, of, strata, places, values, **described)


def _strata(design: Clusters) -> Array:
    """Return each cluster's stratum; one for all if a stratum has a single cluster, and so no variance."""
    one_stratum = np.array([""] * len(design.names))
    labels = np.array(design.strata) if design.strata else one_stratum
    _, clusters = np.unique(labels[design.sizes > 0], return_counts=True)
    return labels if (clusters > 1).all() else one_stratum


def left_out(design: Clusters) -> Array:
    """Compute the leave-one-cluster-out values of the score, shape (G,); ``nan`` where undefined.

    The other clusters of the stratum count ``G_h / (G_h - 1)`` times, so that strata keep their weights.
    """
    strata, place = np.unique(_strata(design), return_inverse=True)
    kept = design.sizes > 0
    totals = np.where(kept[:, None], design.totals, 0.0)
    total = totals.sum(axis=0)
    if len(strata) == 1:
        sums = total - totals
    else:
        of_strata = np.zeros((len(strata), totals.shape[1]))
        np.add.at(of_strata, place, totals)
        count = np.bincount(place[kept], minlength=len(strata))
        factor = count / np.maximum(count - 1, 1)
        # in this order nothing is left where the others of a stratum hold nothing
        rest = (of_strata[place] - totals) * factor[place, None]
        sums = total - of_strata[place] + rest
    with np.errstate(divide="ignore", invalid="ignore"):
        return design.of(sums)


def standard_error(
    value: float, without: Array, design: Clusters
) -> tuple[float, float, str]:
    """Return the standard error (delete-one-cluster jackknife within strata), its dof, and a reason if it is nan.

    ``sqrt(sum_h (G_h - 1) / G_h * sum_{g in h} (theta_without_g - theta)^2)``: recomputed, not linearised. It stands
    unequal clusters better than the sandwich formula (CR1), which is too small there. Degrees of freedom: the number of
    equal clusters that are worth as much, ``(sum n_g)^2 / sum n_g^2``, less one (Carter, Schnepel & Steigerwald 2017,
    in its simplest form); over several strata by Satterthwaite. ``nan`` with fewer than two clusters, where the score
    has no value without one of them, and where all clusters agree: that nothing varied is no certainty.

    Source: Rao & Shao (1992), Jackknife variance estimation with survey data; with one stratum it is CR3 (Cameron &
    Miller 2015, A practitioner's guide to cluster-robust inference, section VI.B).

    Args:
        value: The score, or a difference of two.
        without: The same without each cluster, see :func:`left_out`.
        design: Whose clusters, sizes and strata these are.
    """
    clusters = design.kind
    off = without[design.sizes > 0] - value
    if len(off) < 2:
        reason = f"a standard error needs items of at least 2 {clusters}"
        return math.nan, len(off) - 1.0, reason
    strata, dofs = design.strata_of_kept
    if not np.isfinite(off).all():
        reason = (
            f"no standard error: the score has no value without one of the {clusters}"
        )
        return math.nan, sum(dofs), reason
    rounding = ROUNDING * max(1.0, abs(value))
    if not any(np.ptp(off[stratum]) > rounding for stratum in strata):
        reason = f"nothing varied between {clusters}: no standard error"
        return math.nan, sum(dofs), reason
    parts = []
    for stratum in strata:
        deviations = off[stratum]
        n = len(deviations)
        parts.append((n - 1) / n * math.fsum(deviations**2))
    variance = math.fsum(parts)
    if len(strata) == 1:
        return math.sqrt(variance), dofs[0], ""
    spread = math.fsum(
        part**2 / max(dof, 1.0) for part, dof in zip(parts, dofs, strict=True)
    )
    return math.sqrt(variance), variance**2 / spread, ""


def clustered_mean(
    name: str,
    *,
    value: Contribution,
    cluster: Callable[[Record], object],
    low: float,
    high: float,
    source: str = "",
    kind: str = "clusters",
    **described: Any,
) -> Score:
    """Make a score: the mean of a value over all items, which are independent between clusters only.

    Formula: sum of the items' values / number of items. Undefined: no items, or a value that is no number -> ``nan``
    with the reason. Denominator: all items that have a value. Standard error: jackknife over clusters, Student's t with
    the effective number of clusters; ``nan`` with fewer than two clusters. A mean from 0 to ``high`` gets Wilson's
    interval (:meth:`Clusters.estimate`). The score can be compared between runs.

    Args:
        name: Its name in tables and result files.
        value: An item's value, in the score's unit; ``None`` for one that has no part in the score.
        cluster: What the item shares with those that are no independent evidence: a template, a group of people, ...
        low: Smallest possible value.
        high: Largest possible value.
        source: Paper and equation or table.
        kind: What the clusters are.
        described: ``summary``, ``neutral``, ``direction``, ``unit`` and ``higher_is_better``, see
            :class:`~lm_eval_bias.custom_metrics.score.Score`.

    >>> score = clustered_mean(
    ...     "share", value=lambda r: r["x"], cluster=lambda r: r["group"], summary="", low=0.0, high=1.0, neutral=0.5,
    ...     direction="", unit="proportion",
    ... )
    >>> estimate = score.compute([{"x": float(i < 3), "group": i % 6} for i in range(12)])
    >>> estimate.value, round(estimate.stderr, 4), estimate.dof
    (0.25, 0.1118, 5.0)
    """

    def design(records: Documents) -> Clusters:
        parts = list(map(value, records))
        values = [float(part) for part in parts if part is not None]
        records = [
            record
            for record, part in zip(records, parts, strict=True)
            if part is not None
        ]
        require(records, sum(not math.isfinite(number) for number in values))
        return tabulate(
            [cluster(record) for record in records],
            [(1.0, number) for number in values],
            share_of,
            whole=high if low == 0 and math.isfinite(high) else None,
            exact=math.fsum(values) / len(records),
            kind=kind,
        )

    return Score(
        name,
        low=low,
        high=high,
        source=source,
        design=design,
        contribution=value,
        **described,
    )
