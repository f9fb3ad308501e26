"""Shares of texts in two groups whose prompts share contexts: for the prompts as given, and for prompts like these.

A context is a cluster with the prompts of both groups; contexts were chosen in strata. For the prompts as given, texts
are independent (Wilson 1927; Newcombe 1998, method 10). For prompts like these the contexts vary too: jackknife over
contexts within strata, Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from lm_eval_bias.custom_metrics.contingency import newcombe, wilson
from lm_eval_bias.custom_metrics.designs import Array, Clusters, share_of, tabulate
from lm_eval_bias.custom_metrics.joined_intervals import correlation_of, interval_of_difference
from lm_eval_bias.custom_metrics.score import Estimate, joined, t_factor
from lm_eval_bias.custom_metrics.stratified_jackknife import jackknife

NO_PROMPTS = "texts without a prompt have an interval only for these texts, none for prompts like theirs"
FEW_CONTEXTS = "an interval for prompts like these needs texts from at least 2 contexts"


class Row(NamedTuple):
    """A prompt's texts in numbers.

    Attributes:
        group: 0 or 1.
        context: What prompts of both groups share; ``None`` for texts that belong to no prompt.
        stratum: Among which contexts this one was chosen.
        hits: Texts that have what is counted, perhaps weighted.
        total: Of how many.
    """

    group: int
    context: str | None
    stratum: str
    hits: float
    total: float


def share_form(rows: Sequence[Row]) -> Clusters | str:
    """The share of texts that are hits as a function of sums over contexts; why there is none."""
    if not rows:
        return "no texts"
    if any(row.context is None for row in rows):
        return NO_PROMPTS
    return tabulate([row.context for row in rows], [[row.total for row in rows], [row.hits for row in rows]], share_of)


def difference_form(rows: Sequence[Row]) -> Clusters | str:
    """The first group's share minus the second's as a function of sums over contexts; why there is none."""
    if isinstance(problem := share_form(rows), str):
        return problem
    columns = [[x * (row.group == group) for row, x in zip(rows, column, strict=True)]
               for group in (0, 1) for column in ([row.total for row in rows], [row.hits for row in rows])]  # fmt: skip
    return tabulate([row.context for row in rows], columns, _difference_of)


def _difference_of(weights: Array, totals: Array) -> Array:
    """Second column over the first, minus fourth over third."""
    return share_of(weights, totals[..., :2]) - share_of(weights, totals[..., 2:])


def _spread(form: Clusters, rows: Sequence[Row]) -> tuple[float, float]:
    """Standard error over contexts within strata, and its degrees of freedom; both ``nan`` where there are none."""
    stratum = {row.context: row.stratum for row in rows}
    return jackknife(form, form.totals[:, ::2].sum(axis=1), [stratum[name] for name in form.names])


class _Sample(NamedTuple):
    """A share's sample of contexts, as one of independent texts with the same standard error.

    Attributes:
        share: The share.
        size: How many independent texts, at most the texts there are.
        stderr: Over contexts.
        dof: Of that.
    """

    share: float
    size: float
    stderr: float
    dof: float

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, of that many texts."""
        return wilson(self.share * self.size, self.size, t_factor(self.dof))


def _sample(rows: Sequence[Row]) -> _Sample | str:
    form = share_form(rows)
    if isinstance(form, str):
        return form
    stderr, dof = _spread(form, rows)
    if math.isnan(stderr):
        return FEW_CONTEXTS
    p, total = form.value, sum(row.total for row in rows)
    return _Sample(p, min(total, p * (1 - p) / stderr**2) if stderr > 0 else total, stderr, dof)


def _from_width(interval: tuple[float, float], dof: float) -> float:
    """The standard error that an interval amounts to: where nothing varied between contexts it isn't 0."""
    return (interval[1] - interval[0]) / 2 / t_factor(dof)


def share(rows: Sequence[Row], caveat: str = "") -> Estimate:
    """A share of texts with both of its intervals.

    For prompts like these: Wilson's interval of the effective number of texts, ``p (1 - p) / stderr^2`` and at most n,
    with Student's t. Where all contexts have the same share, the standard error is that of this interval.

    Args:
        rows: Prompts of a group, with at least one text.
        caveat: What to beware of.
    """
    hits, total = sum(row.hits for row in rows), sum(row.total for row in rows)
    given = wilson(hits, total)
    sample = _sample(rows)
    if isinstance(sample, str):
        return Estimate(hits / total, math.nan, round(total), joined(sample, caveat), fixed_interval=given)
    stderr = sample.stderr or _from_width(sample.interval, sample.dof)
    return Estimate(hits / total, stderr, round(total), caveat, sample.dof, sample.interval, given)


def difference(rows: Sequence[Row], caveat: str = "") -> Estimate:
    """The first group's share minus the second's with both of its intervals.

    For prompts like these the shares' own intervals are joined, with the correlation of the two over contexts
    (``joined_intervals``). Their texts vary as those of the prompts as given do, so that the interval reaches at least
    as far as that one, whatever the standard error over contexts is. Where all contexts have the same difference, the
    standard error is what the interval amounts to.

    Args:
        rows: Prompts of both groups, with at least one text each.
        caveat: What to beware of.
    """
    groups = [[row for row in rows if row.group == group] for group in (0, 1)]
    (a, m), (b, n) = ((sum(row.hits for row in own), sum(row.total for row in own)) for own in groups)
    value, given = a / m - b / n, newcombe((a, b), (m, n))
    form, samples = difference_form(rows), [_sample(own) for own in groups]
    stderr, dof = (math.nan, math.inf) if isinstance(form, str) else _spread(form, rows)
    first, second = samples
    if isinstance(form, str) or isinstance(first, str) or isinstance(second, str) or math.isnan(stderr):
        reason = form if isinstance(form, str) else FEW_CONTEXTS
        return Estimate(value, math.nan, round(m + n), joined(reason, caveat), fixed_interval=given)
    # the same difference everywhere is no certainty: without a correlation the interval is the widest
    rho = correlation_of(first.stderr, second.stderr, stderr) if stderr > 0 else 0.0
    low, high = interval_of_difference((first.share, second.share), (first.interval, second.interval), rho)
    interval = (min(low, given[0]), max(high, given[1]))
    return Estimate(value, stderr or _from_width(interval, dof), round(m + n), caveat, dof, interval, given)
