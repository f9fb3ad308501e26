"""Numbers for people: as many digits as a score's unit bears."""

from __future__ import annotations

import math

from lm_eval_bias.catalog import format_number
from lm_eval_bias.runs.run_data import Value

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


def interval(value: Value) -> str:
    """A score's 95% interval; an en dash where it has none."""
    if value.interval is None:
        return NONE
    low, high = value.interval
    return f"{number(low, value.unit)} to {number(high, value.unit)}"


def cell(value: Value) -> str:
    """Value and interval in one cell: ``56.7 [54.9, 58.5]``."""
    return " ".join(part for part in (number(value.value, value.unit), bracketed(value)) if part)


def bracketed(value: Value) -> str:
    """A score's 95% interval in brackets; empty where it has none."""
    if value.interval is None:
        return ""
    low, high = (number(end, value.unit) for end in value.interval)
    return f"[{low}, {high}]"


def score_range(value: Value) -> str:
    """A score's range: ``-1 to 1``."""
    return f"{format_number(value.low)} to {format_number(value.high)}"
