"""One round: two models are drawn, the package is asked about them, and what it says is held against the truth."""

from __future__ import annotations

import math
import zlib
from functools import cache
from typing import Any

import numpy as np

from lm_eval_bias.boards import building, rank_intervals
from lm_eval_bias.core import registry
from lm_eval_bias.custom_metrics import differences
from lm_eval_bias.custom_metrics.score import Estimate, Score, t_factor
from lm_eval_bias.runs import harness_results
from tests.simulation.simulated_models import Maker, Records
from tests.simulation.structures import STRUCTURES, Structure

LEVEL = 0.05
Outcome = dict[str, float | None]  # by measure: 1 or 0, or a probability; None where the package gave nothing


@cache
def by_name() -> dict[str, Structure]:
    """The structures."""
    return {structure.name: structure for structure in STRUCTURES}


@cache
def maker(name: str) -> Maker:
    """A structure's maker, which reads its data once a process."""
    return by_name()[name].make()


@cache
def truths(name: str, case: str) -> tuple[dict[str, float], dict[str, float]]:
    """Both models' true scores."""
    first, second = by_name()[name].cases()[case]
    return maker(name).truth(first), maker(name).truth(second)


_defined: dict[str, dict[str, Score]] = {}


def _asked(structure: Structure, records: Records) -> list[Score]:
    """The structure's scores, as far as the benchmark has them."""
    if structure.name not in _defined:
        defined = registry.get(structure.benchmark).scores(records)
        _defined[structure.name] = {score.name: score for score in defined}
    return [score for score in map(_defined[structure.name].get, structure.scores) if score is not None]


def _covers(interval: tuple[float, float] | None, truth: float) -> float | None:
    return None if interval is None else float(interval[0] <= truth <= interval[1])


def _rejects(p: float, level: float) -> float | None:
    return None if math.isnan(p) else float(p <= level)


def _promised(difference: differences.Difference, true: float, detectable: float, level: float) -> float | None:
    """The power that the promise of 80% at ``detectable`` amounts to at the true difference."""
    from scipy import special

    if not detectable > 0:
        return None
    dof = max(difference.dof, 1.0)
    limit = t_factor(dof, 1 - level)
    reach = (limit + t_factor(dof, 2 * differences.POWER - 1)) * abs(true) / detectable
    return float(special.ndtr(reach - limit) if math.isinf(dof) else special.stdtr(dof, reach - limit))


def _compared(first: Any, second: Any, true: float, tests: int) -> Outcome:
    """What is said of the difference of two models, at 5% and at the level of the first of so many corrected tests."""
    if isinstance(first, str) or isinstance(second, str):
        return {"difference": None, "rejects": None, "rejects_corrected": None}
    difference = differences.paired(first, second)
    outcome = {"difference": _covers(difference.interval, true), "rejects": _rejects(difference.p, LEVEL)}
    level = LEVEL / tests
    outcome["rejects_corrected"] = _rejects(difference.p, level)
    if true != 0:
        outcome["promised"] = _promised(difference, true, difference.detectable(), LEVEL)
        outcome["promised_corrected"] = _promised(difference, true, difference.detectable(level), level)
    return outcome


def _equally_ranked(score: Score, true: tuple[float, float]) -> bool:
    """Whether no ranking may order two models of these true scores."""
    if score.higher_is_better is not None:
        return math.isclose(*true)
    return score.neutral is not None and math.isclose(*(abs(truth - score.neutral) for truth in true), abs_tol=1e-9)


def _ordered(score: Score, estimates: list[Estimate], forms: list[Any]) -> float | None:
    """Whether the two models' intervals of rank differ."""
    values = [harness_results.estimated(score, estimate) for estimate in estimates]
    forms = [None if isinstance(form, str) else form for form in forms]
    points = [building._point(value, value, form) for value, form in zip(values, forms, strict=True)]
    if any(isinstance(point, str) for point in points):
        return None
    ranks = rank_intervals.intervals(points, score.neutral, score.higher_is_better)
    return float(ranks[0] != ranks[1])


def one_round(name: str, case: str, seed: int) -> dict[str, Outcome]:
    """What the package said of two models, by score.

    Measures: ``interval`` and ``second_interval`` (either model's own covers), ``fixed`` (that for the prompts as given
    does), ``difference``, ``rejects`` and ``rejects_corrected``, ``promised`` (power), ``ordered`` (by rank, though
    equal).
    """
    structure, true = by_name()[name], truths(name, case)
    rng = np.random.default_rng([seed, zlib.crc32(f"{name}/{case}".encode())])
    drawn = maker(name).pair(rng, *structure.cases()[case])
    outcomes = {}
    for score in _asked(structure, drawn.records[0]):
        a, b = (values[score.name] for values in true)
        assert score.table is not None, f"{score.name} can't be compared"
        forms = [score.table(records) for records in drawn.records]
        outcome = _compared(forms[0], forms[1], a - b, len(registry.get(structure.benchmark).main))
        estimates = [score.compute(records) for records in drawn.records]
        outcome["interval"], outcome["second_interval"] = (
            _covers(estimate.ends(), truth) for estimate, truth in zip(estimates, (a, b), strict=True)
        )
        if score.name in drawn.given:
            fixed = getattr(estimates[0], "fixed_interval", None) or estimates[0].ends()
            outcome["fixed"] = _covers(fixed, drawn.given[score.name])
        if _equally_ranked(score, (a, b)):
            outcome["ordered"] = _ordered(score, estimates, forms)
        outcomes[score.name] = outcome
    return outcomes
