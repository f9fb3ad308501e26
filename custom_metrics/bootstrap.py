"""Seeded, vectorised bootstrap intervals and cluster-robust standard errors shared by all benchmarks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

SEED = 20230823
DRAWS = 2000
AT_A_TIME = 1 << 20  # numbers of a resample's table: what is larger goes in parts


def clustered_stderr(influence: ArrayLike, clusters: Sequence[object]) -> float:
    """Cluster-robust (CR1) standard error of an estimator from its per-item influence values.

    ``sqrt(G / (G - 1) * sum_g (sum_{i in g} u_i)^2)``. For a mean, ``u_i = (x_i - mean) / n``. ``nan`` with fewer than
    two clusters. Sums are exact (``math.fsum``), so that the result does not depend on the order of the items.

    Source: Cameron & Miller (2015), A practitioner's guide to cluster-robust inference, section II.

    Args:
        influence: Influence values, shape (n,).
        clusters: Cluster labels, length n.

    >>> clustered_stderr([-0.5, 0.5], ["a", "b"])
    1.0
    """
    groups: dict[str, list[float]] = {}
    for value, cluster in zip(np.asarray(influence, dtype=float).tolist(), clusters, strict=True):
        groups.setdefault(str(cluster), []).append(value)
    sums, count = list(map(math.fsum, groups.values())), len(groups)
    return math.sqrt(count / (count - 1) * math.fsum(total * total for total in sums)) if count > 1 else math.nan


def effective_size(sizes: ArrayLike) -> float:
    """Number of equally large clusters that are worth as much as clusters of these sizes: ``(sum n_g)^2 / sum n_g^2``.

    With few or unequal clusters the interval has to be wider than the normal one; ``effective - 1`` degrees of freedom
    are the usual correction (Carter, Schnepel & Steigerwald 2017, in its simplest form).

    >>> effective_size([2, 2]), effective_size([3, 1])
    (2.0, 1.6)
    """
    counts = np.asarray(sizes, dtype=float)
    return float(counts.sum() ** 2 / (counts**2).sum())


def effective_clusters(clusters: Sequence[object]) -> float:
    """The same from every item's cluster.

    >>> effective_clusters(["a", "a", "b", "b"])
    2.0
    """
    return effective_size(list(Counter(map(str, clusters)).values()))


@lru_cache(maxsize=16)
def cluster_weights(count: int, draws: int = DRAWS, seed: int = SEED) -> NDArray[np.float64]:
    """Bootstrap draws of whole clusters: how often each is drawn, shape (draws, count)."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(count, np.full(count, 1.0 / count), size=draws).astype(float)


def pigeonhole(
    groups: Sequence[NDArray[np.intp]], n_columns: int, draws: int = DRAWS, seed: int = SEED
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.intp]]]:
    """Resamples of both factors of a crossed layout, some draws at a time: their number changes no digit.

    Source: Owen (2007), The pigeonhole bootstrap.

    Args:
        groups: Row numbers of each stratum, within which rows are drawn.
        n_columns: Number of columns, at least 2.
        draws: Resamples.
        seed: Of the random numbers.

    Returns:
        Column weights of shape (some, n_columns) that sum to 1, and row indices of shape (some, n_rows).
    """
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(n_columns, np.full(n_columns, 1.0 / n_columns), size=draws) / n_columns
    # so that column means vary as their variance with ddof 1 says, and not by the factor (C - 1) / C less
    weights = 1 / n_columns + (weights - 1 / n_columns) * math.sqrt(n_columns / (n_columns - 1))
    order, sizes = np.concatenate(groups), np.array([len(rows) for rows in groups])
    first, among = np.repeat(np.cumsum(sizes) - sizes, sizes), np.repeat(sizes, sizes)
    size = max(1, AT_A_TIME // len(order))
    for start in range(0, draws, size):
        chunk = weights[start : start + size]
        yield chunk, order[first + rng.integers(0, among, size=(len(chunk), len(order)))]
