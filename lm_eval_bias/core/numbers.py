"""Numbers for people: as many digits as a score's unit bears."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import Value
    from lm_eval_bias.custom_metrics.score import Score

NONE = "–"
# by unit; where a number is larger than its unit's, it has fewer
DIGITS = {"percent": 1, "percent (SE)": 1, "count": 2}


def number(value: float, unit: str = "") -> str:
    """A number with the digits of its unit; an en dash where there is none.

    >>> number(56.7312, "percent"), number(0.0041, "difference"), number(-0.0001), number(2000.0, "count")
    ('56.7', '0.004', '0.000', '2,000')
    """
    if math.isnan(value):
        return NONE
    if unit == "count" and value == int(value):
        return f"{value:,.0f}"
    digits = DIGITS.get(unit, 3)
    rounded = round(value, digits) + 0.0  # no minus in front of 0
    return f"{rounded:,.{digits}f}" if abs(value) < 1e6 else f"{value:.3g}"


def significant(value: float) -> str:
    """A number of any size, without a unit.

    >>> significant(56.7041), significant(0.000123), significant(100.0)
    ('56.7', '0.000123', '100')
    """
    return f"{value:.4g}" if abs(value) < 1 else f"{value:.6g}" if value.is_integer() else f"{value:.1f}"


def bound(value: float | None) -> str:
    """An end of a range, or a neutral value.

    >>> bound(100.0), bound(None), bound(float("-inf"))
    ('100', '–', '-∞')
    """
    return NONE if value is None else f"{value:g}".replace("inf", "∞")


def aim(score: Score | Value) -> str:
    """What a score is read against: ``neutral 0``, ``best 1``, or that there is neither."""
    word = "neutral" if score.higher_is_better is None else "best"
    return "no neutral value" if score.neutral is None else f"{word} {bound(score.neutral)}"


def count(items: int | None) -> str:
    """A number of items or requests.

    >>> count(10900), count(None)
    ('10,900', '–')
    """
    return NONE if items is None else f"{items:,}"


def score_range(score: Score | Value, between: str = " to ") -> str:
    """A score's range: ``-1 to 1``."""
    return f"{bound(score.low)}{between}{bound(score.high)}"


def p_value(p: float) -> str:
    """A p-value.

    >>> p_value(0.00004), p_value(0.0312), p_value(float("nan"))
    ('<0.001', '0.031', '–')
    """
    return NONE if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def interval(value: Value) -> str:
    """A score's 95% interval; an en dash where it has none."""
    return NONE if value.interval is None else " to ".join(number(end, value.unit) for end in value.interval)


def fixed_interval(value: Value) -> str:
    """A score's 95% interval for its items as given, named so; empty where it has none."""
    if value.fixed_interval is None:
        return ""
    return f"items as given: {' to '.join(number(end, value.unit) for end in value.fixed_interval)}"


def bracketed(value: Value) -> str:
    """A score's 95% interval in brackets; empty where it has none."""
    return "" if value.interval is None else f"[{', '.join(number(end, value.unit) for end in value.interval)}]"


def cell(value: Value) -> str:
    """Value and interval in one cell: ``56.7 [54.9, 58.5]``."""
    return f"{number(value.value, value.unit)} {bracketed(value)}".rstrip()


def few(names: Sequence[str], most: int = 6) -> str:
    """The first names, and how many more there are.

    >>> few(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
