"""Standard errors and intervals of scores that are functions of sums over clusters: leave out one cluster at a time."""

from __future__ import annotations

import math

import numpy as np

from lm_eval_bias.custom_metrics.bootstrap import effective_size
from lm_eval_bias.custom_metrics.contingency import wilson
from lm_eval_bias.custom_metrics.designs import Array, Clusters
from lm_eval_bias.custom_metrics.score import ROUNDING, Estimate, joined, t_factor


def left_out(form: Clusters) -> Array:
    """The score without each of its clusters, shape (G,); ``nan`` where it has no value then."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return form.of(1.0 - np.eye(len(form.names)), form.totals)


def standard_error(value: float, without: Array, clusters: str = "clusters") -> tuple[float, str]:
    """Standard error by the jackknife over clusters (CR3), or ``nan`` and why.

    ``sqrt((G - 1) / G * sum_g (theta_g - theta)^2)``, where ``theta_g`` is the score without cluster g: recomputed, not
    linearised. It stands unequal clusters better than the sandwich formula (CR1), which is too small there. ``nan``
    with fewer than two clusters, where the score has no value without one of them, and where all clusters agree: that
    nothing varied is no certainty.

    Source: Cameron & Miller (2015), A practitioner's guide to cluster-robust inference, section VI.B; MacKinnon,
    Nielsen & Webb (2023), Fast and reliable jackknife and bootstrap methods for cluster-robust inference.

    Args:
        value: The score.
        without: The score without each cluster, see :func:`left_out`.
        clusters: What the clusters are, for the reason.

    >>> standard_error(0.5, np.array([0.0, 1.0]))
    (0.5, '')
    """
    count = len(without)
    if count < 2:
        return math.nan, f"a standard error needs items of at least 2 {clusters}"
    if not np.isfinite(without).all():
        return math.nan, f"no standard error: the score has no value without one of the {clusters}"
    if np.ptp(without) <= ROUNDING * max(1.0, abs(value)):
        return math.nan, f"nothing varied between {clusters}: no standard error"
    return math.sqrt((count - 1) / count * math.fsum((without - value) ** 2)), ""


def clustered_estimate(
    form: Clusters,
    value: float | None = None,
    *,
    whole: float | None = None,
    clusters: str = "clusters",
    note: str = "",
) -> Estimate:
    """A score with its standard error over clusters and Student's t with their effective number, less one.

    A share gets Wilson's interval with as many observations as give its standard error, ``p (1 - p) / stderr^2``, and
    Student's t for the normal quantile: near 0 and 1 the symmetric interval covers too seldom. Where all clusters
    agree, it is Wilson's with one observation a cluster: however alike the items of a cluster are, they all agree with
    a probability of at most ``p^G``. The standard error is then half that interval over Student's t.

    Source of the interval: Korn & Graubard (1998), Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data; Franco et al. (2019), Comparative study of confidence intervals for
    proportions in complex sample surveys.

    Args:
        form: The score as a function of sums over clusters.
        value: Its value, where it was computed in another order of operations.
        whole: The value of a share that all items have part in (1 or 100); ``None`` for what is no share.
        clusters: What the clusters are, for the reason of a ``nan``.
        note: What to beware of.
    """
    value = form.value if value is None else value
    count, dof = len(form.names), effective_size(form.sizes) - 1
    stderr, reason = standard_error(value, left_out(form), clusters)
    interval = None
    if whole is not None and count > 1:
        p, same = value / whole, math.isnan(stderr)
        size = count if same else p * (1 - p) / (stderr / whole) ** 2
        low, high = wilson(p * size, size, t_factor(math.inf if same else dof))
        interval = whole * low, whole * high
        if same:
            stderr, reason = (interval[1] - interval[0]) / 2 / t_factor(dof), ""
    return Estimate(value, stderr, int(form.sizes.sum()), joined(reason, note), dof, interval)
