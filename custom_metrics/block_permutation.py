"""A test of several groups at once whose members lie in blocks: labels are dealt out anew within each block."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lm_eval_bias.custom_metrics.bootstrap import SEED
from lm_eval_bias.custom_metrics.contingency import PERMUTATIONS

Block = tuple[tuple[int, float], ...]  # the group of each member of a block, and its value
_TOLERANCE = 1e-9  # permutations as far out as the data count as further out despite rounding


def least_p(blocks: Sequence[Block]) -> float:
    """The least p-value that the test can give: all groups' names can be exchanged without another statistic.

    >>> round(least_p([((0, 1.0), (1, 2.0), (2, 3.0))] * 3), 4)
    0.0278
    """
    ways, groups = 1, {group for block in blocks for group, _ in block}
    for block in blocks:
        ways *= math.factorial(len(block))
        for size in Counter(group for group, _ in block).values():
            ways //= math.factorial(size)
    return min(1.0, math.factorial(len(groups)) / ways)


@lru_cache(maxsize=256)
def p_value(blocks: tuple[Block, ...]) -> float:
    """P-value of no difference between groups, whatever differs between blocks; 9,999 draws, fixed seed.

    Statistic: ``sum_g (sum of g's deviations from their blocks' means)^2 / n_g``, the sum of squares between groups of
    what the blocks leave. Under the null hypothesis the members of a block are exchangeable.
    Source: Fisher's randomisation test for blocks; Pesarin (2001), Multivariate Permutation Tests, section 11.

    >>> p_value((((0, 1.0), (1, 1.0)), ((0, 2.0), (1, 2.0))))
    1.0
    """
    groups = sorted({group for block in blocks for group, _ in block})
    sizes = Counter(group for block in blocks for group, _ in block)
    rng = np.random.default_rng(SEED)
    observed, drawn = np.zeros((1, len(groups))), np.zeros((PERMUTATIONS, len(groups)))
    for block in blocks:
        places = [groups.index(group) for group, _ in block]
        values = np.array([value for _, value in block])
        deviations = (values - values.mean())[None, :]
        permuted = rng.permuted(np.repeat(deviations, PERMUTATIONS, axis=0), axis=1)
        for sums, rows in ((observed, deviations), (drawn, permuted)):
            for column, place in enumerate(places):
                sums[:, place] += rows[:, column]
    n = np.array([sizes[group] for group in groups])
    between, resampled = (observed**2 / n).sum(), (drawn**2 / n).sum(axis=1)
    further = int((resampled >= between * (1 - _TOLERANCE) - 1e-15).sum())
    return (1 + further) / (1 + PERMUTATIONS)
