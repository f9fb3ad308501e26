"""Slow versions of what several scores share: the shares that a test doesn't reject, and leaving out a cluster."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from lm_eval_bias.custom_metrics.clusters import Clusters, share_of
from lm_eval_bias.custom_metrics.score import Undefined


def shares(hits, sizes, strata=()):
    """A share from each cluster's hits."""
    sizes = np.array(sizes, dtype=float)
    totals = np.stack([sizes, np.array(hits, dtype=float)], axis=1)
    places = np.arange(len(sizes))
    names = [f"c{k:02d}" for k in places]
    return Clusters(names, sizes, totals, share_of, list(strata), places, totals)


def wilson(p, size, factor=None):
    """Where the share is `factor` (default: normal) standard errors of the end away: a quadratic equation."""
    square = (factor or stats.norm.ppf(0.975)) ** 2 / size
    return sorted(np.roots([1 + square, -2 * p - square, p * p]).real)


def jackknife(compute, records, field):
    """The standard error of a score, computed anew without each cluster."""
    clusters = {r[field] for r in records}
    without = [
        compute([r for r in records if r[field] != cluster]).value
        for cluster in clusters
    ]
    value, n = compute(records).value, len(clusters)
    return math.sqrt((n - 1) / n * sum((one - value) ** 2 for one in without))


def reason_of(function, *arguments):
    """Why a function of records is undefined; empty where it isn't."""
    try:
        function(*arguments)
    except Undefined as error:
        return str(error)
    return ""
