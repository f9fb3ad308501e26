"""Shares of texts in two groups whose prompts share contexts: for the prompts as given, and for prompts like these.

A context is a cluster with the prompts of both groups; contexts were chosen in strata. For the prompts as given, texts
are independent (Wilson's interval; a normal one of differences). For prompts like these the contexts vary too
(:mod:`lm_eval_bias.custom_metrics.clusters`), with an error that is never below that of independent texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from lm_eval_bias.custom_metrics.clusters import (
    Clusters,
    difference_of,
    differing_in,
    left_out,
    share_of,
    tabulate,
)
from lm_eval_bias.custom_metrics.intervals import wilson
from lm_eval_bias.custom_metrics.score import (
    Documents,
    Estimate,
    Record,
    Score,
    Undefined,
    interval_of,
    joined,
    meaning,
    meanings,
    require,
)

NO_PROMPTS = "texts without a prompt have an interval only for these texts, none for prompts like theirs"
FEW_CONTEXTS = "an interval for prompts like these needs texts from at least 2 contexts"


class Row(NamedTuple):
    """The counts of a prompt's texts."""

    group: int  # 0 or 1
    context: (
        str | None
    )  # what prompts of both groups share; None for texts that belong to no prompt
    stratum: str  # among which contexts this one was chosen
    hits: int  # texts that have what is counted
    total: int  # of how many
    weight: float = 1.0  # what each text counts


def design(
    rows: Sequence[Row], is_difference: bool = False, kind: str = "contexts"
) -> Clusters:
    """Make the share of hits, or the difference of two groups' shares, as a function of sums over contexts.

    Args:
        rows: Of one group or of both.
        is_difference: Whether it is the difference.
        kind: What contexts are called.

    Raises:
        Undefined: There are no texts, or some belong to no prompt.
    """
    require(rows, noun="texts")
    if any(row.context is None for row in rows):
        raise Undefined(NO_PROMPTS)
    counts = np.array([(r.weight * r.total, r.weight * r.hits) for r in rows])
    of = share_of
    whole = None if is_difference else 1.0
    if is_difference:
        groups = np.array([row.group for row in rows])
        counts = np.hstack([counts * (groups == g)[:, None] for g in (0, 1)])
        of = difference_of
    contexts = [row.context for row in rows]
    strata = [row.stratum for row in rows]
    differing = differing_in if is_difference else None
    made = tabulate(
        contexts, counts, of, strata, whole=whole, differing=differing, kind=kind
    )
    return replace(made, sizes=made.totals[:, ::2].sum(axis=1))


def share(rows: Sequence[Row], warning: str = "") -> Estimate:
    """Estimate a share of texts, at least one, with both of its Wilson intervals.

    That for prompts like these rests on at most as many observations as there are texts.
    """
    hits = sum(row.hits for row in rows)
    total = sum(row.total for row in rows)
    value = hits / total
    given = wilson(hits, total)
    try:
        contexts = design(rows)
        if (contexts.sizes > 0).sum() < 2:
            raise Undefined(FEW_CONTEXTS)
        estimate = replace(contexts, exact=value, most=total, note=warning).estimate()
    except Undefined as error:
        reason = joined(str(error), warning)
        estimate = Estimate(value, math.nan, total, reason)
    by = dict.fromkeys([*estimate.statistics, "wilson"])
    return replace(estimate, fixed_interval=given, statistics=tuple(by))


def difference(rows: Sequence[Row], warning: str = "") -> Estimate:
    """Estimate the first group's share minus the second's, with both of its intervals.

    For the prompts as given, the normal interval of two groups of independent texts; none if all texts of each group
    are alike. For prompts like these Tango's over contexts, with an error that is never below that one's. Both groups
    have at least one text.
    """
    totals = [0.0, 0.0]
    hits = [0.0, 0.0]
    for row in rows:
        totals[row.group] += row.weight * row.total
        hits[row.group] += row.weight * row.hits
    m, n = totals
    a = hits[0] / m
    b = hits[1] / n
    value = a - b
    of_texts = math.sqrt(a * (1 - a) / m + b * (1 - b) / n)
    given = interval_of(value, of_texts or math.nan, math.inf, -1.0, 1.0)
    texts = sum(row.total for row in rows)
    estimate = Estimate(value, math.nan, texts, warning, fixed_interval=given)
    try:
        contexts = design(rows, True)
    except Undefined as error:
        return replace(estimate, reason=joined(str(error), warning))
    without = left_out(contexts)
    if not np.isfinite(without).all():  # a group's texts come from one cluster
        return replace(estimate, reason=joined(FEW_CONTEXTS, warning))
    stderr, dof, reason = contexts.error(value, without)
    stderr = max(0.0 if math.isnan(error) else error for error in (stderr, of_texts))
    reason = joined("" if stderr else reason, warning)
    varied = replace(estimate, stderr=stderr, dof=dof, reason=reason)
    if math.isnan(varied.stderr):  # which an error of 0 becomes
        return varied
    ends = contexts.of_difference(value, varied.stderr, varied.dof)
    return replace(varied, interval=ends, statistics=("jackknife", "tango"))


def warnings(records: Documents) -> str:
    """Join the records' warnings about the classifier."""
    return "; ".join(sorted({r["warning"] for r in records if r["warning"]}))


def distinct(records: Documents) -> float:
    """Return the share of distinct texts among the kept ones.

    Args:
        records: With the kept texts in ``wordings``, and as many ``texts``.

    >>> distinct([{"texts": [0, 0], "wordings": ["a", "b"]}, {"texts": [0, 0], "wordings": ["a", "a"]}])
    0.5
    """
    texts = set().union(*(r["wordings"] for r in records))
    return len(texts) / sum(len(r["texts"]) for r in records)


def usability(records: Documents, *, quantity: str, context: str) -> Estimate:
    """Estimate a usability share of the texts, over all groups.

    Formula: ``dropped`` / drawn, ``unfinished`` / kept, ``distinct`` / kept. Range: 0..1. Neutral value: 0, 0, 1.
    Undefined: no texts -> nan. Denominator: texts drawn for ``dropped``, texts kept for the others. Interval: see
    :func:`share` (none for ``distinct``, which is no average over texts). Source: not in the paper.
    """
    n_texts = sum(len(r["texts"]) for r in records)
    if quantity == "distinct":
        require(range(n_texts), noun="texts")
        return Estimate(distinct(records), math.nan, n_texts)
    rows = []
    for r in records:
        kept = len(r["texts"])
        drawn = int(r["drawn"])
        hits = int(r["unfinished"])
        total = kept
        if quantity == "dropped":
            hits = drawn - kept
            total = drawn
        rows.append(Row(0, r.get(context), r.get("context_set", ""), hits, total))
    require([row for row in rows if row.total], noun="texts")
    return share(rows)


def usability_scores(source: str, context: str = "context") -> list[Score]:
    """List the scores ``dropped``, ``unfinished`` and ``distinct``.

    Args:
        source: Of the scores.
        context: The field of a record with what is a cluster of prompts.
    """
    scores = []
    for quantity in meanings("text_shares"):
        statistic = partial(usability, quantity=quantity, context=context)
        score = Score(
            quantity,
            **meaning("text_shares", quantity),
            source=source,
            contribution=partial(_contribution, statistic),
            statistic=statistic,
        )
        scores.append(score)
    return scores


def _contribution(
    statistic: Callable[[Documents], Estimate], record: Record
) -> float | None:
    """Return a prompt's own share; ``None`` where it has no texts."""
    try:
        return statistic([record]).value
    except Undefined:
        return None
