"""Aggregations with standard errors over clusters for anyone's task YAML.

A metric returns ``(value, cluster)`` per document::

    metric_list:
      - metric: acc
        aggregation: bias_clustered_mean
      - metric: acc_stderr
        aggregation: bias_clustered_mean_stderr
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lm_eval_bias.custom_metrics.clusters import estimate, share_of, tabulate


def clustered(items: Any) -> Any:
    """The metric that passes ``(value, cluster)`` pairs on to the aggregation."""
    return items


def clustered_mean(items: Sequence[tuple[float, Any]]) -> float:
    """Mean of the values; ``nan`` for none.

    >>> clustered_mean([(1.0, "a"), (0.0, "b")])
    0.5
    """
    return math.fsum(float(value) for value, _ in items) / len(items) if items else math.nan


def clustered_mean_stderr(items: Sequence[tuple[float, Any]]) -> float:
    """Standard error of :func:`clustered_mean` by the jackknife over clusters.

    ``nan`` with fewer than two clusters, or where all of them agree.

    >>> clustered_mean_stderr([(1.0, "a"), (0.0, "b")])
    0.5
    """
    if not items:
        return math.nan
    values, clusters = [float(value) for value, _ in items], [cluster for _, cluster in items]
    return estimate(tabulate(clusters, [[1.0] * len(items), values], share_of)).stderr
