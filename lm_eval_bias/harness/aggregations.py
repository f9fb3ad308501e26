"""Aggregations with cluster-robust standard errors for anyone's task YAML.

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

import numpy as np

from lm_eval_bias.custom_metrics.bootstrap import clustered_stderr


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
    """Cluster-robust standard error of :func:`clustered_mean`; ``nan`` with fewer than two clusters."""
    values = np.array([float(value) for value, _ in items])
    return clustered_stderr((values - clustered_mean(items)) / max(len(values), 1), [cluster for _, cluster in items])
