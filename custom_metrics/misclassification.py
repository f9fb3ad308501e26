"""Shares of true classes in two groups from a classifier's labels, corrected by its confusion matrix.

The classifier gives class c to a text of class k with probability ``p_kc``, so that the shares of given classes are
``q_c = sum_k pi_k p_kc``; solved for the true shares: ``pi = (P^T)^-1 q`` (Rogan & Gladen 1978, Estimating prevalence
from the results of a screening test; with more than two classes Barron 1977). Of the ways to use labelled texts this
one needs no labelled texts of the same model: how often a positive text is called positive carries over to texts with
other shares of classes, how many of those called positive are so doesn't, which prediction-powered inference
(Angelopoulos et al. 2023) and its like would need. What has to carry over is ``P``: texts of another kind, on which the
classifier errs otherwise, are corrected wrongly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lm_eval_bias.custom_metrics.context_shares import FEW_CONTEXTS, NO_PROMPTS
from lm_eval_bias.custom_metrics.designs import Array, sums, tabulate
from lm_eval_bias.custom_metrics.score import Estimate, joined, t_factor, undefined
from lm_eval_bias.custom_metrics.stratified_jackknife import jackknife

ONE_LABEL = "all texts have the same label, so its variation can't be estimated"
SINGULAR = 10.0
LEVEL = 0.05
Counts = Sequence[Sequence[int]]  # a row per true class, a column per class that the classifier gave
Term = tuple[float, float]  # a part of a variance, and its degrees of freedom


def correction(counts: Counts) -> Array | str:
    """The matrix that turns shares of given classes into shares of true ones; why there is none.

    The inverse of the transposed matrix of ``P(given class | true class)``. None where a class was never seen or the
    matrix is nearly singular (condition number above 10: then the intervals cover most of the range anyway).

    >>> (correction([[9, 1], [2, 8]]) @ [0.5, 0.5]).round(4).tolist()
    [0.4286, 0.5714]
    """
    table = np.asarray(counts)
    seen = table.sum(axis=1)
    if not seen.all():
        return "one class doesn't occur among the held-out texts"
    given = table / seen[:, None]
    if np.linalg.cond(given) > SINGULAR:
        return "the classifier's confusion matrix is nearly singular: its labels hardly distinguish the classes"
    inverse: Array = np.linalg.inv(given.T)
    return inverse


def err_alike(first: Counts, second: Counts) -> bool:
    """Whether two groups' confusion counts may be one matrix's: chi-square over the true classes, 5%.

    >>> err_alike([[30, 10], [5, 35]], [[29, 11], [6, 34]]), err_alike([[30, 10], [5, 35]], [[10, 30], [5, 35]])
    (True, False)
    """
    from scipy import stats

    total, dof = 0.0, 0
    for rows in zip(first, second, strict=True):
        table = np.array(rows)
        table = table[:, table.sum(axis=0) > 0]
        if table.shape[1] > 1 and table.sum(axis=1).all():
            test = stats.chi2_contingency(table, correction=False)
            total, dof = total + float(test.statistic), dof + int(test.dof)
    return not dof or float(stats.chi2.sf(total, dof)) >= LEVEL


def by_group(counts: Mapping[str, Counts], groups: Sequence[str]) -> list[Counts]:
    """Each group's confusion counts: all texts' together, or its own where the groups' errors differ.

    Args:
        counts: By group, or under one other name where the texts' groups aren't known.
        groups: Whose counts are wanted.
    """
    if set(groups) <= set(counts) and not err_alike(*(counts[group] for group in groups)):
        return [counts[group] for group in groups]
    pooled = np.sum([np.asarray(own) for own in counts.values()], axis=0).tolist()
    return [pooled] * len(groups)


class Labelled(NamedTuple):
    """A prompt's texts by the class that the classifier gave them.

    Attributes:
        group: 0 or 1.
        context: What prompts of both groups share; ``None`` for texts that belong to no prompt.
        stratum: Among which contexts this one was chosen.
        counts: Texts by class.
    """

    group: int
    context: str | None
    stratum: str
    counts: Sequence[int]


def _confusion_terms(counts: Counts, line: Array, shares: Array) -> list[Term]:
    """What the estimated confusion matrix adds to the variance: a multinomial row a true class (delta method).

    ``shares_k^2 * (sum_c p_kc a_c^2 - (sum_c p_kc a_c)^2) / n_k``, where the line ``a`` of the inverse gives the class.
    """
    table = np.asarray(counts)
    seen = table.sum(axis=1)
    given = table / seen[:, None]
    added = shares**2 * np.maximum(given @ line**2 - (given @ line) ** 2, 0.0) / seen
    return [(float(part), max(n - 1.0, 1.0)) for part, n in zip(added, seen, strict=True)]


def _text_term(counts: Array, line: Array, weight: float) -> Term:
    """The variance of independent texts."""
    given = counts / counts.sum()
    return weight**2 * float(given @ line**2 - (given @ line) ** 2) / float(counts.sum()), math.inf


def _context_terms(rows: Sequence[Labelled], lines: Mapping[int, Array], weights: Sequence[float]) -> list[Term] | str:
    """The variance of contexts; why there is none."""
    if any(row.context is None for row in rows):
        return NO_PROMPTS
    columns = [[x * (row.group == g) for row, x in zip(rows, column, strict=True)]
               for g in lines for column in zip(*(row.counts for row in rows), strict=True)]  # fmt: skip

    def of(weighted: Array, totals: Array) -> Array:
        parts = np.split(sums(weighted, totals), len(lines), axis=1)
        with np.errstate(invalid="ignore"):
            shares = [
                weights[g] * (own @ line) / own.sum(axis=1) for own, (g, line) in zip(parts, lines.items(), strict=True)
            ]
        return np.sum(shares, axis=0)

    form = tabulate([row.context for row in rows], columns, of)
    stratum = {row.context: row.stratum for row in rows}
    stderr, dof = jackknife(form, form.totals.sum(axis=1), [stratum[name] for name in form.names])
    return FEW_CONTEXTS if math.isnan(stderr) else [(stderr**2, dof)]


def _margin(terms: Sequence[Term]) -> tuple[float, float, float]:
    """Standard error, degrees of freedom (Satterthwaite) and half of the 95% interval of a variance in parts."""
    variance = sum(part for part, _ in terms)
    spread = sum(part**2 / dof for part, dof in terms)
    dof = variance**2 / spread if spread > 0 else math.inf
    return math.sqrt(variance), dof, t_factor(dof) * math.sqrt(variance)


def corrected(
    rows: Sequence[Labelled],
    confusion: Mapping[str, Counts],
    groups: Sequence[str],
    place: int,
    weights: tuple[float, float],
    caveat: str = "",
) -> Estimate:
    """A class's corrected share in a group, or the difference of both groups' shares.

    Shares outside 0..1 are set to the end; where the whole interval lies outside, the confusion counts can't belong to
    such texts -> ``nan``. Intervals carry both errors: that of the texts (for prompts like these that of the contexts,
    by jackknife) and that of the confusion counts; Student's t with Satterthwaite's degrees of freedom.

    Args:
        rows: Prompts; texts of each group that has a weight.
        confusion: Confusion counts by group, or under another name where the labelled texts' groups aren't known.
        groups: The groups' names.
        place: Which class.
        weights: ``(1, 0)`` and ``(0, 1)`` for a group's share, ``(1, -1)`` for the difference.
        caveat: What to beware of.
    """
    tables = by_group(confusion, groups)
    lines: dict[int, Array] = {}
    given: dict[int, Array] = {}
    shares: dict[int, Array] = {}
    for g in (g for g, weight in enumerate(weights) if weight):
        inverse = correction(tables[g])
        if isinstance(inverse, str):
            return undefined(inverse)
        given[g] = np.sum([row.counts for row in rows if row.group == g], axis=0)
        lines[g], shares[g] = inverse[place], inverse @ given[g] / given[g].sum()
    if tables[0] is tables[1]:  # one matrix's errors go into both groups' shares
        line = next(iter(lines.values()))
        errors = _confusion_terms(tables[0], line, np.sum([weights[g] * shares[g] for g in shares], axis=0))
    else:
        errors = [term for g in shares for term in _confusion_terms(tables[g], lines[g], weights[g] * shares[g])]
    texts = [_text_term(given[g], lines[g], weights[g]) for g in shares]
    contexts = _context_terms([row for row in rows if row.group in shares], lines, weights)
    low, high = (-1.0 if min(weights) < 0 else 0.0), 1.0
    raw = float(sum(weights[g] * shares[g][place] for g in shares))
    value = float(sum(weights[g] * min(max(shares[g][place], 0.0), 1.0) for g in shares))

    def interval(half: float) -> tuple[float, float]:
        return max(low, min(value, raw - half)), min(high, max(value, raw + half))

    fixed_half = _margin([*texts, *errors])[2]
    if isinstance(contexts, str):
        stderr, dof, half = math.nan, math.inf, fixed_half
    else:  # where no context differs, their texts still could have
        varied = contexts if contexts[0][0] > 0 else [(part, contexts[0][1]) for part, _ in texts]
        stderr, dof, half = _margin([*varied, *errors])
    if raw + half < low or raw - half > high:
        return undefined(
            f"the corrected value would be {raw:.2f}, further outside its range than chance explains: the classifier's "
            "errors on these texts differ from those in its confusion counts"
        )
    n = int(sum(own.sum() for own in given.values()))
    if not fixed_half > 0:
        return Estimate(value, math.nan, n, joined(ONE_LABEL, caveat))
    if isinstance(contexts, str):
        return Estimate(value, math.nan, n, joined(contexts, caveat), fixed_interval=interval(fixed_half))
    return Estimate(value, stderr, n, caveat, dof, interval(half), interval(fixed_half))
