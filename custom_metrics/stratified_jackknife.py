"""Standard errors of scores over clusters that were chosen in strata: the delete-one-cluster jackknife."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from lm_eval_bias.custom_metrics.bootstrap import effective_size
from lm_eval_bias.custom_metrics.designs import Array, Clusters
from lm_eval_bias.custom_metrics.score import ROUNDING


def jackknife(form: Clusters, sizes: Array, strata: Sequence[str]) -> tuple[float, float]:
    """Standard error and degrees of freedom of a score whose clusters vary within strata.

    ``sqrt(sum_h (G_h - 1) / G_h * sum_{g in h} (theta_without_g - theta)^2)``; where a cluster is left out, the others
    of its stratum count ``G_h / (G_h - 1)`` times, so that the strata keep their weights. Degrees of freedom by
    Satterthwaite over the strata, each with its effective number of clusters less one. A stratum of a single cluster
    tells no variance: all are taken as one then, which makes the error larger. ``nan`` with fewer than two clusters, or
    where the score has no value without one of them; 0 where nothing varies.

    Source: Rao & Shao (1992), Jackknife variance estimation with survey data; with one stratum it is CR3 (Cameron &
    Miller 2015, section VI).

    Args:
        form: The score as a function of sums over clusters.
        sizes: What each cluster weighs, shape (G,); those of 0 hold nothing and are left out.
        strata: Each cluster's stratum.
    """
    own = [stratum for stratum, size in zip(strata, sizes, strict=True) if size > 0]
    if len(own) < 2:
        return math.nan, math.nan
    if min(Counter(own).values()) < 2:
        own = [""] * len(own)
    label, kept = np.array(own), sizes > 0
    same = label[:, None] == label[None, :]
    count = same.sum(axis=1)
    weights = np.where(same, (count / (count - 1))[:, None], 1.0)
    np.fill_diagonal(weights, 0.0)
    off = form.of(weights, form.totals[kept]) - form.value
    scaled = (count - 1) / count * off**2
    parts = {h: float(scaled[label == h].sum()) for h in dict.fromkeys(own)}
    variance = float(sum(parts.values()))
    if math.isnan(variance):
        return math.nan, math.nan
    dofs = {h: max(effective_size(sizes[kept][label == h]) - 1, 1.0) for h in parts}
    if variance < ROUNDING**2:
        return 0.0, sum(dofs.values())
    return math.sqrt(variance), variance**2 / float(sum(part**2 / dofs[h] for h, part in parts.items()))
