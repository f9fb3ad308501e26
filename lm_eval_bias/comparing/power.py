"""Power analysis: which true differences a comparison would find, from the variance that the score has there.

A share's variance grows from its ends to the middle: a model that answers with a stereotype in 2% of the items varies
less than one that does so in 10%. So the error at the alternative is not that of the measured values.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lm_eval_bias.custom_metrics.differences import LEVEL, POWER, Difference
from lm_eval_bias.custom_metrics.score import t_factor


def smallest_difference(
    difference: Difference, level: float = LEVEL, room: float = math.inf
) -> float:
    """Return the minimum detectable effect: the true difference that a two-sided test finds with 80% probability.

    Args:
        difference: The measured one, in the score's unit.
        level: Of this one test: 5% over the number of tests where they are corrected for it.
        room: The largest possible difference.

    Returns:
        The difference; ``nan`` where there is no test, or no possible difference would be found.
    """
    if math.isnan(difference.p):
        return math.nan
    dof = difference.dof
    factor = t_factor(dof, 1 - level) + t_factor(dof, 2 * POWER - 1)

    def missing(true: float) -> float:
        return factor * difference.stderr_at(true) - true

    return _root(missing, min(room, difference.span), factor * difference.stderr)


def smallest_worsening(
    difference: Difference, level: float, start: float, margin: float, room: float
) -> float:
    """Return by how much a score has to be worse so that this is shown, beyond a margin, with 80% probability.

    Near the neutral value the mirrored value has to be excluded, too, so that it takes more. The errors of difference
    and sum count as independent.

    Args:
        difference: The measured one, in the score's unit.
        level: Of this one test.
        start: Twice the base's distance from neutral, 0 if it can't be told from it; ``inf`` for an ability.
        margin: That doesn't count.
        room: The largest possible difference.
    """
    from scipy import special

    if math.isnan(difference.p):
        return math.nan
    dof = max(difference.dof, 1.0)
    reach = t_factor(dof, 1 - level)

    def missing(true: float) -> float:
        stderr = difference.stderr_at(true)
        shown = 1.0
        for begins in (0.0, start):
            t = (begins + true - margin) / stderr - reach
            shown *= float(special.stdtr(dof, t))
        return POWER - shown

    return _root(missing, room, margin + 20 * reach * difference.stderr)


def _root(missing: Callable[[float], float], room: float, guess: float) -> float:
    """Return the root of a decreasing function up to some end; ``nan`` without one."""
    from scipy import optimize

    end = room if math.isfinite(room) else 100 * guess
    if not missing(end) <= 0:
        return math.nan
    return float(optimize.brentq(missing, 0.0, end))
