"""Comparison of a results file's scores with those of its samples, for ``check --strict``.

Files are believed as far as their form goes; their numbers can be recomputed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from lm_eval_bias.core.run_data import Value

ROUNDING = 1e-9  # relative, below 1 absolute: sums in another order, on another machine


def _numbers(value: Value) -> Iterator[tuple[str, float]]:
    """Yield all numbers of a score by name; ``nan`` for those that it doesn't have."""
    yield "value", value.value
    yield "standard error", value.stderr
    yield "degrees of freedom", value.dof if not math.isnan(value.stderr) else math.nan
    for name, ends in (
        ("interval", value.interval),
        ("interval of the items as given", value.fixed_interval),
    ):
        low, high = ends or (math.nan, math.nan)
        yield f"{name}'s lower end", low
        yield f"{name}'s upper end", high


def _difference(given: Value, computed: Value) -> str:
    """Describe the first number that differs; empty where none does."""
    pairs = zip(_numbers(given), _numbers(computed), strict=True)
    for (name, ours), (_, theirs) in pairs:
        both_nan = math.isnan(ours) and math.isnan(theirs)
        is_close = math.isclose(ours, theirs, rel_tol=ROUNDING, abs_tol=ROUNDING)
        if not both_nan and not is_close:
            return f"{given.name} has the {name} {ours:.10g}, but from its samples {theirs:.10g}"
    return ""


def differences(given: Mapping[str, Value], computed: Mapping[str, Value]) -> list[str]:
    """List how a results file's scores differ from those that its samples give, a line for each score."""
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
