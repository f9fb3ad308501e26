"""How scores of a results file differ from those that its answers give."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lm_eval_bias.core.run_data import Value

# relative, below 1 absolute
ROUNDING = 1e-9  # sums in another order, on another machine
_OF_ROOTS = 1e-7  # errors, as releases to 0.3.0 took roots of what such sums leave


def is_close(first: float, second: float, rounding: float = ROUNDING) -> bool:
    """Return whether two numbers are the same but for rounding, or both ``nan``."""
    if math.isnan(first):
        return math.isnan(second)
    return math.isclose(first, second, rel_tol=rounding, abs_tol=rounding)


def _numbers(value: Value) -> dict[str, float]:
    """Return all numbers of a score by name; ``nan`` for those that it doesn't have."""
    low, high = value.interval or (math.nan, math.nan)
    fixed_low, fixed_high = value.fixed_interval or (math.nan, math.nan)
    return {
        "value": value.value,
        "standard error": value.stderr,
        "degrees of freedom": math.nan if math.isnan(value.stderr) else value.dof,
        "interval's lower end": low,
        "interval's upper end": high,
        "interval of the items as given's lower end": fixed_low,
        "interval of the items as given's upper end": fixed_high,
    }


def _difference(given: Value, computed: Value) -> str:
    """Describe the first differing number; empty if none differs."""
    again = _numbers(computed)
    for name, ours in _numbers(given).items():
        theirs = again[name]
        if not is_close(ours, theirs, ROUNDING if name == "value" else _OF_ROOTS):
            return f"{given.name} has the {name} {ours:.10g}, but from its samples {theirs:.10g}"
    return ""


def differences(given: Mapping[str, Value], computed: Mapping[str, Value]) -> list[str]:
    """List the differences between a file's scores and those recomputed, one line per score."""
    lines = [
        _difference(value, computed[name])
        for name, value in given.items()
        if name in computed
    ]
    # a run on a part of the items has breakdowns by what that part lacks, as nan
    lines += [
        f"{name} is not a score of its samples"
        for name, value in given.items()
        if name not in computed and not math.isnan(value.value)
    ]
    lines += [f"{name} is not in the file" for name in computed if name not in given]
    return list(filter(None, lines))
