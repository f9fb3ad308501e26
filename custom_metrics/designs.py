"""Scores in a form that can be recomputed for thousands of resamples at once.

A score is either a function of sums over clusters (:class:`Clusters`) or the mean of an items x templates matrix
(:class:`Cells`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_STEP = 1e-3  # items by which a weight is moved for a derivative
_CHUNK = 256  # items at a time


@dataclass(frozen=True)
class Clusters:
    """A score as a function of sums over clusters.

    Attributes:
        names: The clusters, sorted, length G.
        sizes: Items per cluster, or what else each cluster weighs, shape (G,).
        totals: What is summed, shape (G, K).
        of: From weights of shape (draws, G) and totals of shape (G, K) or (draws, G, K) to scores of shape (draws,).
        composite: Whether it is more than a mean: a ratio whose denominator the model decides, a difference of means of
            different items, a score with a kink. Models with equal scores of that kind needn't be exchangeable.
        places: The cluster of each item, shape (n,); empty where items aren't known.
        columns: What each item adds to its cluster's totals, shape (n, K).
    """

    names: list[str]
    sizes: Array
    totals: Array
    of: Callable[[Array, Array], Array]
    composite: bool = False
    places: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    columns: Array = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def value(self) -> float:
        """The score itself."""
        return float(self.of(np.ones((1, len(self.names))), self.totals)[0])

    def parts(self) -> Array:
        """Each item's part in the score, shape (n,): the score plus n times its derivative by the item's weight.

        Of a mean these are the items' own values; of any score that doesn't depend on the number of items, their mean
        is the score, but for the derivative's rounding.
        """
        kinds, kind_of = np.unique(np.column_stack([self.places, self.columns]), axis=0, return_inverse=True)
        slopes = np.empty(len(kinds))
        for start in range(0, len(kinds), _CHUNK):
            chunk = kinds[start : start + _CHUNK]
            moved = np.zeros((len(chunk), *self.totals.shape))
            moved[np.arange(len(chunk)), chunk[:, 0].astype(np.int64)] = chunk[:, 1:] * _STEP
            weights = np.ones((len(chunk), len(self.names)))
            ends = self.of(weights, self.totals + moved), self.of(weights, self.totals - moved)
            slopes[start : start + _CHUNK] = (ends[0] - ends[1]) / (2 * _STEP)
        return self.value + len(self.places) * slopes[kind_of.ravel()]


@dataclass(frozen=True)
class Cells:
    """A score as the mean of an items x templates matrix, both of which vary.

    A score that is no mean stands here linearised: its value plus each cell's influence on it.

    Attributes:
        items: Row names, length R.
        templates: Column names, length C.
        cells: Shape (R, C).
        strata: Each row's stratum, length R; empty where the rows are one sample.
        correlation: Whether the score is a correlation: what stands here are influences on it, whose signs are no fair
            coins and whose spread depends on how large it is.
    """

    items: list[str]
    templates: list[str]
    cells: Array
    strata: Sequence[str] = ()
    correlation: bool = False

    @property
    def value(self) -> float:
        """The score itself."""
        return float(self.cells.mean())


Design = Clusters | Cells


def sums(weights: Array, totals: Array) -> Array:
    """Weighted sums over clusters, shape (draws, K), of totals that are the same for all draws or not."""
    if totals.ndim == 2:
        return weights @ totals
    return np.matmul(weights[:, None, :], totals)[:, 0, :]


def share_of(weights: Array, totals: Array) -> Array:
    """Second column over the first."""
    total = sums(weights, totals)
    with np.errstate(divide="ignore", invalid="ignore"):
        return total[:, 1] / total[:, 0]


def tabulate(
    clusters: Sequence[object],
    columns: Sequence[Sequence[float]],
    of: Callable[[Array, Array], Array],
    composite: bool = False,
) -> Clusters:
    """Sums of columns over clusters.

    Args:
        clusters: Cluster of each item, length n.
        columns: What is summed, K sequences of length n.
        of: See :class:`Clusters`.
        composite: See :class:`Clusters`.
    """
    labels = list(map(str, clusters))
    names = sorted(set(labels))
    numbers = {name: number for number, name in enumerate(names)}
    place = np.array([numbers[label] for label in labels])
    sizes = np.bincount(place).astype(np.float64)
    values = np.stack(columns, axis=1).astype(np.float64)
    totals = np.stack([np.bincount(place, column) for column in values.T], axis=1).astype(np.float64)
    return Clusters(names, sizes, totals, of, composite, place, values)
