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
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lm_eval_bias.custom_metrics.clusters import Array, left_out, standard_error, sums, tabulate
from lm_eval_bias.custom_metrics.score import Estimate, joined, t_factor, undefined
from lm_eval_bias.custom_metrics.text_shares import FEW_CONTEXTS, NO_PROMPTS

ONE_LABEL = "all texts have the same label, so its variation can't be estimated"
SINGULAR = 10.0
ERR_ALIKE = (
    "the classifier is taken to err alike on texts about both groups: its confusion counts don't tell them apart"
)
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


def on_simplex(shares: Array) -> Array:
    """The nearest shares that are 0 or more and sum to 1.

    Source: Duchi et al. (2008), Efficient projections onto the l1-ball for learning in high dimensions.

    >>> on_simplex(np.array([0.5, 0.7, -0.2])).round(4).tolist()
    [0.4, 0.6, 0.0]
    """
    ordered = np.sort(shares)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(shares) + 1)
    projected: Array = np.maximum(shares - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)
    return projected


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


def _context_term(rows: Sequence[Labelled], lines: Mapping[int, Array], weights: Mapping[int, float]) -> Term | str:
    """The variance of contexts, ``nan`` where they don't differ; why there is none."""
    if any(row.context is None for row in rows):
        return NO_PROMPTS
    columns = [[x * (row.group == g) for row, x in zip(rows, column, strict=True)]
               for g in lines for column in zip(*(row.counts for row in rows), strict=True)]  # fmt: skip

    def of(weighted: Array, totals: Array) -> Array:
        parts = np.split(sums(weighted, totals), len(lines), axis=1)
        shares = [
            weights[g] * (own @ line) / own.sum(axis=1) for own, (g, line) in zip(parts, lines.items(), strict=True)
        ]
        return np.sum(shares, axis=0)

    form = tabulate([row.context for row in rows], columns, of, [row.stratum for row in rows])
    form = replace(form, sizes=form.totals.sum(axis=1))
    without = left_out(form)
    if not np.isfinite(without).all():  # a group's texts come from one context
        return FEW_CONTEXTS
    stderr, dof, _ = standard_error(form.value, without, form)
    return stderr**2, dof


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
    caveat: str,
) -> Estimate:
    """A class's corrected share in a group, or the difference of both groups' shares.

    The shares of all classes are solved for at once. Where the whole interval of one of them lies outside 0..1, the
    confusion counts can't belong to such texts -> ``nan``; else the nearest shares that are 0 or more and sum to 1 are
    taken. Intervals carry both errors: that of the texts (for prompts like these that of the contexts, by jackknife)
    and that of the confusion counts; Student's t with Satterthwaite's degrees of freedom.

    Args:
        rows: Prompts; texts of each group that has a weight.
        confusion: Confusion counts by group, or under another name where the labelled texts' groups aren't known: the
            classifier is then taken to err alike on both groups' texts.
        groups: The groups' names.
        place: Which class.
        weights: ``(1, 0)`` and ``(0, 1)`` for a group's share, ``(1, -1)`` for the difference.
        caveat: What to beware of.
    """
    one_matrix = not set(groups) <= set(confusion)
    if one_matrix:
        tables = [np.sum([np.asarray(own) for own in confusion.values()], axis=0).tolist()] * len(groups)
        caveat = joined(ERR_ALIKE, caveat)
    else:
        tables = [confusion[group] for group in groups]
    inverses: dict[int, Array] = {}
    given: dict[int, Array] = {}
    for g in (g for g, weight in enumerate(weights) if weight):
        inverse = correction(tables[g])
        if isinstance(inverse, str):
            return undefined(inverse)
        inverses[g] = inverse
        given[g] = np.sum([row.counts for row in rows if row.group == g], axis=0)
    shares = {g: inverse @ given[g] / given[g].sum() for g, inverse in inverses.items()}
    nearest = {g: own if own.min() >= 0 else on_simplex(own) for g, own in shares.items()}

    def margins(of: Mapping[int, float], place: int) -> tuple[float, tuple[float, float, float] | str]:
        """Half of the interval for these prompts; error, degrees of freedom and half of that for prompts like these."""
        lines = {g: inverses[g][place] for g in of}
        if one_matrix:  # its errors go into both groups' shares
            line = next(iter(lines.values()))
            errors = _confusion_terms(tables[0], line, np.sum([of[g] * shares[g] for g in of], axis=0))
        else:
            errors = [term for g in of for term in _confusion_terms(tables[g], lines[g], of[g] * shares[g])]
        texts = [_text_term(given[g], lines[g], of[g]) for g in of]
        contexts = _context_term([row for row in rows if row.group in of], lines, of)
        fixed = _margin([*texts, *errors])[2]
        if isinstance(contexts, str):
            return fixed, contexts
        # where no context differs, their texts still could have
        varied = [contexts] if contexts[0] > 0 else [(part, contexts[1]) for part, _ in texts]
        return fixed, _margin([*varied, *errors])

    for g, own in shares.items():
        for number, raw in enumerate(own):
            fixed, like_these = margins({g: 1.0}, number)
            half = fixed if isinstance(like_these, str) else like_these[2]
            if raw + half < 0.0 or raw - half > 1.0:
                return undefined(
                    f"a class's corrected share would be {raw:.2f}, further outside its range than chance explains: "
                    "the classifier's errors on these texts differ from those in its confusion counts"
                )
    low = -1.0 if min(weights) < 0 else 0.0
    raw, value = (float(sum(weights[g] * of[g][place] for g in shares)) for of in (shares, nearest))

    def interval(half: float) -> tuple[float, float]:
        return max(low, min(value, raw - half)), min(1.0, max(value, raw + half))

    fixed, like_these = margins({g: weights[g] for g in shares}, place)
    n = int(sum(own.sum() for own in given.values()))
    if not fixed > 0:
        return Estimate(value, math.nan, n, joined(ONE_LABEL, caveat))
    if isinstance(like_these, str):
        return Estimate(value, math.nan, n, joined(like_these, caveat), fixed_interval=interval(fixed))
    stderr, dof, half = like_these
    return Estimate(value, stderr, n, caveat, dof, interval(half), interval(fixed))
