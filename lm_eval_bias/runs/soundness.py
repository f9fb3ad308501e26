"""Whether the scores of a results file are those of its samples: ``check --strict``.

Files are believed as far as their form goes. Whoever doubts what they say recomputes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from lm_eval_bias.core.run_data import Value

ROUNDING = 1e-9  # relative, below 1 absolute: sums in another order, on another machine


def _numbers(value: Value) -> Iterator[tuple[str, float]]:
    """All that is told of a score in numbers; ``nan`` for what it doesn't have."""
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
    """The first number that differs; empty where none does."""
    for (what, own), (_, other) in zip(
        _numbers(given), _numbers(computed), strict=True
    ):
        both_nan = math.isnan(own) and math.isnan(other)
        if not both_nan and not math.isclose(
            own, other, rel_tol=ROUNDING, abs_tol=ROUNDING
        ):
            return f"{given.name} has the {what} {own:.10g}, but from its samples {other:.10g}"
    return ""


def differences(given: Mapping[str, Value], computed: Mapping[str, Value]) -> list[str]:
    """In what the scores of a results file differ from those that its samples give, a line a score."""
    lines = [
        _difference(value, computed[name])
        for name, value in given.items()
        if name in computed
    ]
    # of a part of the items, a breakdown by what that part doesn't hold is in the file as nan
    valued = [name for name, value in given.items() if not math.isnan(value.value)]
    lines += [
        f"{name} is not a score of its samples"
        for name in valued
        if name not in computed
    ]
    lines += [f"{name} is not in the file" for name in computed if name not in given]
    return [line for line in lines if line]
