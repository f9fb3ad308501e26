"""How far two ways of asking give the same answers to the same items, beyond chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lm_eval_bias.custom_metrics import crossed
from lm_eval_bias.custom_metrics.bootstrap import effective_size
from lm_eval_bias.custom_metrics.crossed import CrossedRecord
from lm_eval_bias.custom_metrics.designs import Array, sums, tabulate
from lm_eval_bias.custom_metrics.jackknife import left_out, standard_error
from lm_eval_bias.custom_metrics.score import ROUNDING, Estimate, t_factor, undefined

MEASURES = {"agreement": "share of items with the same outcome", "ac1": "Gwet's AC1", "kappa": "Cohen's kappa"}


@dataclass(frozen=True)
class Agreement:
    """Agreement of two sides' outcomes.

    Attributes:
        estimates: By name of :data:`MEASURES`; ``n`` is the number of items that have an outcome on both sides.
        by_chance: What AC1 would be if the sides' outcomes had nothing to do with each other and kept their shares;
            ``nan`` where there is no AC1.
        left_out: Items without an outcome on one side, or on both.
    """

    estimates: dict[str, Estimate]
    by_chance: float
    left_out: int


def agreement(
    first: Sequence[str], second: Sequence[str], clusters: Sequence[tuple[str, ...]], categories: Sequence[str]
) -> Agreement:
    """Agreement of two sides' outcomes of the same items: the plain share, AC1 and kappa.

    Formula: with the share ``p_o`` of items with the same outcome, ``(p_o - p_e) / (1 - p_e)``. AC1: ``p_e`` = sum over
    the q categories of ``m_k (1 - m_k) / (q - 1)`` with the mean ``m_k`` of both sides' shares. Kappa: ``p_e`` = sum of
    the products of both sides' shares. Range: -1..1 (the share: 0..1). Neutral value: 1 all agree; kappa is 0 where the
    sides have nothing to do with each other, AC1 only where all categories are equally frequent (see
    :attr:`Agreement.by_chance`).
    Undefined: no item with two outcomes; kappa also where one category alone occurs -> nan. Denominator: items with an
    outcome on both sides; the others are counted in :attr:`Agreement.left_out`.
    Standard error: jackknife over clusters, recomputed; for crossed items the crossed error of the influences.
    Interval: Student's t on the scale of ``log(1 - value)``.
    Why AC1 stands in front of kappa: where 95% of the outcomes are one category, kappa's interval over 21 clusters is
    two to ten times as wide and covers as little as 82%, AC1's 95% to 98% (simulated, docs/forms.md).
    Source: Gwet (2008), Computing inter-rater reliability and its variance in the presence of high agreement; Cohen
    (1960). That AC1 is high where one category is frequent, agreement or not: Vach & Gerke (2023).

    Args:
        first: Outcome of each item on one side; what is no category is none.
        second: On the other.
        clusters: What each item shares with those that are no independent evidence: one name, or two where items are
            made by crossing two factors (an item a pair).
        categories: All outcomes that there can be, at least two.

    >>> found = agreement(list("aabb"), list("aaba"), [("1",), ("1",), ("2",), ("2",)], "ab")
    >>> [round(found.estimates[name].value, 3) for name in MEASURES]
    [0.75, 0.529, 0.5]
    """
    places = {category: place for place, category in enumerate(categories)}
    cells = [
        (places[a], places[b]) if a in places and b in places else None for a, b in zip(first, second, strict=True)
    ]
    usable = sum(cell is not None for cell in cells)
    if not usable:
        nothing = undefined("no item has an outcome on both sides")
        return Agreement(dict.fromkeys(MEASURES, nothing), math.nan, len(cells))
    q = len(categories)
    table = np.zeros((q, q))
    for cell in cells:
        if cell is not None:
            table[cell] += 1
    values = _measures(table[None])
    is_crossed = len(clusters[0]) == 2
    errors = _crossed(cells, clusters, table) if is_crossed else _clustered(cells, clusters, q)
    estimates = {name: _estimate(float(values[name][0]), *errors[name], usable) for name in MEASURES}
    shares = table.sum(axis=1) / usable, table.sum(axis=0) / usable
    unrelated = np.outer(*shares)
    return Agreement(estimates, float(_measures(unrelated[None])["ac1"][0]), len(cells) - usable)


def _measures(tables: Array) -> dict[str, Array]:
    """The measures of q x q tables of counts or shares, shape (draws, q, q)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = tables / tables.sum(axis=(1, 2), keepdims=True)
        observed, first, second = np.trace(shares, axis1=1, axis2=2), shares.sum(axis=2), shares.sum(axis=1)
        mean = (first + second) / 2
        by_ac1, by_kappa = (mean * (1 - mean)).sum(axis=1) / (tables.shape[1] - 1), (first * second).sum(axis=1)
        kappa = np.where(by_kappa < 1 - ROUNDING, (observed - by_kappa) / (1 - by_kappa), np.nan)
    return {"agreement": observed, "ac1": (observed - by_ac1) / (1 - by_ac1), "kappa": kappa}


_Cells = Sequence[tuple[int, int] | None]


def _clustered(cells: _Cells, clusters: Sequence[tuple[str, ...]], q: int) -> dict[str, tuple[float, float, str]]:
    """Standard errors on the scale of ``log(1 - value)``, degrees of freedom, and why there is none."""
    columns = np.zeros((q * q, len(cells)))
    for place, cell in enumerate(cells):
        if cell is not None:
            columns[cell[0] * q + cell[1], place] = 1
    errors = {}
    for name in MEASURES:

        def of(weights: Array, totals: Array, name: str = name) -> Array:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.log(1 - _measures(sums(weights, totals).reshape(-1, q, q))[name])

        form = tabulate([cluster[0] for cluster in clusters], list(columns), of, composite=True)
        counted = form.totals.sum(axis=1)
        without = left_out(form)
        stderr, reason = standard_error(form.value, without)
        if np.isneginf(without).any():
            reason = "no standard error: without one of the clusters every item has the same outcome"
        errors[name] = (stderr, effective_size(counted) - 1, reason)
    return errors


def _crossed(cells: _Cells, clusters: Sequence[tuple[str, ...]], table: Array) -> dict[str, tuple[float, float, str]]:
    """The same for items that two factors make: the crossed error of the linearised measures.

    Items without an outcome have no influence; the others stand for all.
    """
    influences = _influences(table)
    share = table.sum() / len(cells)
    errors = {}
    records: list[CrossedRecord] = [{"item": item, "template": template} for item, template in clusters]
    for name, influence in influences.items():
        values = {
            pair: 0.0 if cell is None else float(influence[cell]) / share
            for pair, cell in zip(clusters, cells, strict=True)
        }
        matrix = crossed.grid(records, lambda record, own=values: own[record["item"], record["template"]])  # type: ignore[misc]
        if isinstance(matrix, str):
            errors[name] = (math.nan, math.nan, matrix)
        elif min(matrix.cells.shape) < 2 or not np.isfinite(matrix.cells).all():
            items, templates = matrix.cells.shape
            reason = f"a standard error needs at least 2 items and 2 templates, there are {items} and {templates}"
            errors[name] = (math.nan, math.nan, reason)
        else:
            stderr, dof = crossed.crossed_stderr(matrix.cells)
            errors[name] = (stderr, dof, "") if stderr > ROUNDING else (math.nan, dof, "nothing varied")
    return errors


def _influences(table: Array) -> dict[str, Array]:
    """What one more item in each cell of the table moves ``log(1 - value)``, times the number of items."""
    q = len(table)
    shares = table / table.sum()
    observed, first, second = float(np.trace(shares)), shares.sum(axis=1), shares.sum(axis=0)
    mean, same = (first + second) / 2, np.eye(q) - observed
    by_ac1, by_kappa = float((mean * (1 - mean)).sum()) / (q - 1), float(first @ second)
    slope = 1 - 2 * mean
    moves = {
        "agreement": (0.0, np.zeros((q, q))),
        "ac1": (by_ac1, ((slope[:, None] + slope[None, :]) / 2 - mean @ slope) / (q - 1)),
        "kappa": (by_kappa, second[:, None] + first[None, :] - 2 * by_kappa),
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        # log(1 - value) = log(1 - observed) - log(1 - by chance)
        return {name: -same / (1 - observed) + chance / (1 - by) for name, (by, chance) in moves.items()}


def _estimate(value: float, log_error: float, dof: float, reason: str, n: int) -> Estimate:
    if math.isnan(value):
        return undefined("only one outcome occurs on both sides", n)
    if value > 1 - ROUNDING:
        return Estimate(1.0, math.nan, n, "every item has the same outcome: no standard error", dof)
    if math.isnan(log_error):
        return Estimate(value, math.nan, n, reason, dof)
    rest, factor = 1 - value, math.exp(t_factor(dof) * log_error)
    return Estimate(value, rest * log_error, n, "", dof, (max(-1.0, 1 - rest * factor), 1 - rest / factor))
