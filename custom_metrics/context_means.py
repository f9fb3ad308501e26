"""Means of a number of each text in groups whose prompts share contexts: for these prompts, and for prompts like these.

The two intervals are those of :mod:`lm_eval_bias.custom_metrics.context_shares`, for what is no share: the length of a
text, say. For the prompts as given, texts vary within prompts (Student's t); for prompts like these, contexts do
(jackknife over contexts, Student's t with their effective number less one).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from lm_eval_bias.custom_metrics.context_shares import FEW_CONTEXTS
from lm_eval_bias.custom_metrics.designs import Array, Clusters, share_of, tabulate
from lm_eval_bias.custom_metrics.score import Estimate, joined, t_factor, undefined
from lm_eval_bias.custom_metrics.stratified_jackknife import jackknife


class Sample(NamedTuple):
    """The numbers of a prompt's texts.

    Attributes:
        context: What prompts of several groups share.
        texts: How many texts there are, at least one.
        total: Their numbers' sum.
        squares: The sum of their squares.
        weight: What each text counts.
    """

    context: str
    texts: int
    total: float
    squares: float
    weight: float = 1.0


def mean_form(samples: Sequence[Sample]) -> Clusters:
    """The mean as a function of sums over contexts."""
    columns = [[s.weight * s.texts for s in samples], [s.weight * s.total for s in samples]]
    return tabulate([s.context for s in samples], columns, share_of)


def difference_form(first: Sequence[Sample], second: Sequence[Sample]) -> Clusters:
    """The first mean minus the second as a function of sums over contexts."""
    of_first = [1.0] * len(first) + [0.0] * len(second)
    samples = [*first, *second]
    columns = [
        [own * s.weight * number for own, s, number in zip(which, samples, numbers, strict=True)]
        for which in (of_first, [1.0 - own for own in of_first])
        for numbers in ([s.texts for s in samples], [s.total for s in samples])
    ]
    return tabulate([s.context for s in samples], columns, _difference_of)


def _difference_of(weights: Array, totals: Array) -> Array:
    return share_of(weights, totals[..., :2]) - share_of(weights, totals[..., 2:])


def _within(samples: Sequence[Sample]) -> tuple[float, int]:
    """Variance of the mean of prompts as given, and its degrees of freedom; ``nan`` where a prompt has one text."""
    if min(s.texts for s in samples) < 2:
        return math.nan, 0
    whole = sum(s.weight * s.texts for s in samples)
    parts = [
        (s.weight * s.texts / whole) ** 2 * max(s.squares - s.total**2 / s.texts, 0.0) / (s.texts - 1) / s.texts
        for s in samples
    ]
    return math.fsum(parts), sum(s.texts - 1 for s in samples)


def _estimate(
    form: Clusters, samples: Sequence[Sample], variance: float, dof: int, caveat: str, least: float = -math.inf
) -> Estimate:
    value, n = form.value, sum(s.texts for s in samples)
    half = t_factor(dof) * math.sqrt(variance) if variance > 0 else math.nan
    given = None if math.isnan(half) else (max(value - half, least), value + half)
    sizes = form.totals[:, ::2].sum(axis=1)
    stderr, contexts_dof = jackknife(form, sizes, [""] * len(form.names))
    if math.isnan(stderr):
        return Estimate(value, math.nan, n, joined(FEW_CONTEXTS, caveat), fixed_interval=given)
    reach = max(t_factor(contexts_dof) * stderr, half if given else 0.0)
    if reach == 0:
        return Estimate(value, math.nan, n, joined("all texts have the same value: no interval", caveat))
    # the same in every context is no certainty: the texts vary
    error, interval = stderr or reach / t_factor(contexts_dof), (max(value - reach, least), value + reach)
    return Estimate(value, error, n, caveat, contexts_dof, interval, given)


def mean(samples: Sequence[Sample], caveat: str = "", least: float = -math.inf) -> Estimate:
    """The mean over texts with both of its intervals; that for prompts like these reaches at least as far as the other.

    Args:
        samples: Prompts.
        caveat: What to beware of.
        least: The smallest possible value, at which intervals are cut.

    >>> mean([Sample("a", 2, 6.0, 20.0), Sample("b", 2, 10.0, 52.0)]).value
    4.0
    """
    if not samples:
        return undefined("no texts")
    return _estimate(mean_form(samples), samples, *_within(samples), caveat, least)


def difference(first: Sequence[Sample], second: Sequence[Sample], caveat: str = "") -> Estimate:
    """The first group's mean minus the second's with both of its intervals.

    >>> difference([Sample("a", 2, 6.0, 20.0)], [Sample("a", 2, 10.0, 52.0)]).value
    -2.0
    """
    if not first or not second:
        return undefined("no texts")
    (variance, dof), (other, other_dof) = _within(first), _within(second)
    form = difference_form(first, second)
    return _estimate(form, [*first, *second], variance + other, dof + other_dof, caveat)
