"""Numbers for people: shares in percent, and as many digits as a score's unit bears."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from lm_eval_bias.custom_metrics.score import finite

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import Value
    from lm_eval_bias.custom_metrics.score import ScoreSpec

K = TypeVar("K")
V = TypeVar("V")
NONE = "–"
# by unit; where a number is larger than its unit's, it has fewer
DIGITS = {"percent": 1, "percent (SE)": 1, "proportion": 1, "count": 2}
SHARES = {
    "percent": 1,
    "proportion": 100,
}  # units that are shown with a percent sign, and the percents of a 1 in them


def number(value: float, unit: str = "") -> str:
    """Write a number with the digits of its unit, a share in percent; an en dash where there is none.

    >>> number(56.7312, "percent"), number(0.4731, "proportion"), number(0.0041, "difference"), number(2000.0, "count")
    ('56.7%', '47.3%', '0.004', '2,000')
    """
    return bare(value, unit) + ("%" if unit in SHARES and not math.isnan(value) else "")


MORE_DIGITS = 3  # than usual, at most


def telling_digits(value: Value) -> int:
    """Return the number of digits that show on which side of neutral a score and its interval's ends are.

    >>> from lm_eval_bias.core.run_data import Value
    >>> telling_digits(Value("gap", 0.0011, interval=(-0.0004, 0.0026), neutral=0.0))
    4
    """
    digits = DIGITS.get(value.unit, 3)
    factor = SHARES.get(value.unit, 1)
    neutral = factor * (value.neutral or 0.0)
    for more in range(MORE_DIGITS):
        for shown in (value.value, *(value.interval or ())):
            off = factor * shown - neutral
            # what lies on it, but for rounding, is on no side
            if abs(off) > 1e-9 and round(factor * shown, digits + more) == neutral:
                break
        else:
            return digits + more
    return digits + MORE_DIGITS


def shown(value: Value) -> str:
    """Write a score with as many digits as its unit bears, or as it takes to tell on which side of neutral it is."""
    text = bare(value.value, value.unit, digits=telling_digits(value))
    return text + "%" * (value.unit in SHARES and not math.isnan(value.value))


def bare(
    value: float, unit: str = "", sign: str = "", digits: int | None = None
) -> str:
    """Format a number as :func:`number` does, without the percent sign; ``sign="+"`` gives each number a sign.

    >>> bare(0.4731, "proportion"), bare(-0.0001), bare(0.2, "difference", "+")
    ('47.3', '0.000', '+0.200')
    """
    if math.isnan(value):
        return NONE
    if unit == "count" and value == int(value):
        return f"{value:{sign},.0f}"
    digits = DIGITS.get(unit, 3) if digits is None else digits
    value = value * SHARES.get(unit, 1)
    rounded = round(value, digits) + 0.0  # no minus in front of 0
    return f"{rounded:{sign},.{digits}f}" if abs(value) < 1e6 else f"{value:{sign}.3g}"


def bracketed_ends(
    ends: Sequence[float] | None,
    unit: str = "",
    sign: str = "",
    digits: int | None = None,
) -> str:
    """Write an interval in brackets, of shares in percent; empty if there is none."""
    if ends is None:
        return ""
    return f"[{', '.join(bare(end, unit, sign, digits) for end in ends)}]"


def difference(value: float, unit: str, sign: str = "+") -> str:
    """Write a difference of two scores; of shares in percentage points.

    >>> difference(0.2167, "proportion"), difference(-0.5, "difference")
    ('+21.7 points', '-0.500')
    """
    return bare(value, unit, sign) + (
        " points" if unit in SHARES and not math.isnan(value) else ""
    )


def significant(value: float) -> str:
    """Write a number of any size, without a unit.

    >>> significant(56.7041), significant(0.000123), significant(100.0)
    ('56.7', '0.000123', '100')
    """
    return (
        f"{value:.4g}"
        if abs(value) < 1
        else f"{value:.6g}"
        if value.is_integer()
        else f"{value:.1f}"
    )


def bound(value: float | None, unit: str = "") -> str:
    """Write an end of a range, or a neutral value; of shares in percent.

    >>> bound(100.0), bound(None), bound(float("-inf")), bound(1 / 3, "proportion")
    ('100', '–', '-∞', '33.3%')
    """
    if value is None:
        return NONE
    return f"{round(100 * value, 1) if unit == 'proportion' else value:g}".replace(
        "inf", "∞"
    ) + "%" * (unit in SHARES)


def target_text(score: ScoreSpec) -> str:
    """Return a score's reference: ``neutral 0``, ``best 100%``, or that it has none."""
    word = "neutral" if score.higher_is_better is None else "best"
    return (
        "no neutral value"
        if score.neutral is None
        else f"{word} {bound(score.neutral, score.unit)}"
    )


def reads_as(score: ScoreSpec) -> str:
    """Describe the meaning of a score's values, and its chance level.

    >>> from lm_eval_bias.custom_metrics.score import ScoreSpec
    >>> reads_as(ScoreSpec("acc", direction="higher is better", chance=9 / 11, unit="proportion"))
    'higher is better; chance is 9/11'
    """
    if score.chance is None:
        return score.direction
    chance = (
        Fraction(score.chance).limit_denominator(20)
        if score.unit == "proportion"
        else f"{score.chance:.3g}"
    )
    return "; ".join(filter(None, (score.direction, f"chance is {chance}")))


def count(items: int | None) -> str:
    """Write a number of items or requests.

    >>> count(10900), count(None)
    ('10,900', '–')
    """
    return NONE if items is None else f"{items:,}"


_WRITTEN_OUT = 100_000


def two_digits(number: float) -> str:
    """Write how many it takes, rounded up to two digits.

    >>> two_digits(1234.0), two_digits(200_000.0), two_digits(math.inf)
    ('1,300', 'over 100,000', 'no number')
    """
    if number > _WRITTEN_OUT:
        return "no number" if math.isinf(number) else f"over {_WRITTEN_OUT:,}"
    step = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return f"{math.ceil(number / step) * step:,}"


def score_range(score: ScoreSpec, between: str = " to ") -> str:
    """Write a score's range: ``-1 to 1``, ``0 to 100%``."""
    return f"{bound(score.low, score.unit).removesuffix('%')}{between}{bound(score.high, score.unit)}"


def p_value(p: float) -> str:
    """Write a p-value.

    >>> p_value(0.00004), p_value(0.0312), p_value(float("nan"))
    ('<0.001', '0.031', '–')
    """
    return NONE if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def fixed_interval(value: Value) -> str:
    """Format a score's 95% interval for its items as given; empty if it has none."""
    ends = bracketed_ends(value.fixed_interval, value.unit)
    return f"items as given: {ends}" if ends else ""


def bracketed(value: Value) -> str:
    """Write a score's 95% interval in brackets; empty if it has none."""
    return bracketed_ends(value.interval, value.unit, digits=telling_digits(value))


def cell(value: Value) -> str:
    """Format value and interval as one cell: ``56.7% [54.9, 58.5]``."""
    return f"{shown(value)} {bracketed(value)}".rstrip()


def join_some(names: Iterable[str], most: int = 6) -> str:
    """List the first names, each once, and say how many more there are.

    >>> join_some(["a", "b", "a", "c"], 2)
    'a, b and 1 more'
    """
    listed = list(dict.fromkeys(names))
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Group values by key, in the order of the pairs.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def plain(value: object) -> Any:
    """Convert data for JSON and CSV: ``None`` where there is no finite number, lists for tuples.

    >>> plain({"interval": (0.5, float("inf")), "value": float("nan")})
    {'interval': [0.5, None], 'value': None}
    """
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    return list(map(plain, value)) if isinstance(value, (list, tuple)) else value
