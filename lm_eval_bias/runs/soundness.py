"""Whether a results file is sound: the ranges of its scores, and the scores recomputed.

Files are believed as far as their form goes. Whoever doubts what they say recomputes it: ``check --strict``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from lm_eval_bias.core import registry
from lm_eval_bias.core.errors import BiasError, ask
from lm_eval_bias.core.run_data import Run, Value
from lm_eval_bias.custom_metrics.score import Score

ROUNDING = 1e-9  # relative, below 1 absolute: sums in another order, on another machine


def _problem(value: Value) -> str:
    """What is impossible about a score, by more than rounding; empty where nothing is."""
    low, high = (end + sign * ROUNDING * max(1.0, abs(end)) for sign, end in ((-1, value.low), (1, value.high)))
    span = f"range of {value.low:g} to {value.high:g}"
    if math.isinf(value.value) or value.value > high or value.value < low:
        return f"it is {value.value:g}, outside of its {span}"
    if value.stderr < 0 or math.isinf(value.stderr):
        return f"its standard error is {value.stderr:g}"
    for name, ends in (("interval", value.interval), ("interval of the items as given", value.fixed_interval)):
        if ends is not None and not low <= ends[0] <= ends[1] <= high:
            return f"its {name} [{ends[0]:g}, {ends[1]:g}] is none, or exceeds its {span}"
    return ""


def _largest(benchmark: str, name: str) -> float:
    """How far some models push a score above its range; -inf where none do."""
    own = registry.by_name().get(benchmark)
    scores: Sequence[Score] = ask((), own, own.scores) if own else ()
    return next((s.largest for s in scores if s.name == name and s.largest is not None), -math.inf)


def check_scores(benchmark: str, scores: Mapping[str, Value]) -> None:
    """Refuse scores that can't be.

    Args:
        benchmark: Whose they are.
        scores: By name.

    Raises:
        BiasError: The first one, and what is impossible about it.
    """
    for name, value in scores.items():
        if (problem := _problem(value)) and not value.high < value.value <= _largest(benchmark, name):
            raise BiasError(f"{name}: {problem}")


def check(run: Run) -> None:
    """Refuse a run with scores that can't be.

    Raises:
        BiasError: The first task and score, and what is impossible about it.
    """
    for task in run.tasks.values():
        try:
            check_scores(task.benchmark, task.scores)
        except BiasError as error:
            raise BiasError(
                f"{task.task}: {error}: damaged, or not a result of this package: rescore its samples, or run the "
                "task again"
            ) from error


def _numbers(value: Value) -> Iterator[tuple[str, float]]:
    """All that is told of a score in numbers; ``nan`` for what it doesn't have."""
    yield "value", value.value
    yield "standard error", value.stderr
    yield "degrees of freedom", value.dof if not math.isnan(value.stderr) else math.nan
    for name, ends in (("interval", value.interval), ("interval of the items as given", value.fixed_interval)):
        low, high = ends or (math.nan, math.nan)
        yield f"{name}'s lower end", low
        yield f"{name}'s upper end", high


def _difference(given: Value, computed: Value) -> str:
    """The first number that differs; empty where none does."""
    for (what, own), (_, other) in zip(_numbers(given), _numbers(computed), strict=True):
        both_nan = math.isnan(own) and math.isnan(other)
        if not both_nan and not math.isclose(own, other, rel_tol=ROUNDING, abs_tol=ROUNDING):
            return f"{given.name} has the {what} {own:.10g}, but from its samples {other:.10g}"
    return ""


def differences(given: Mapping[str, Value], computed: Mapping[str, Value]) -> list[str]:
    """In what the scores of a results file differ from those that its samples give, a line a score."""
    lines = [_difference(value, computed[name]) for name, value in given.items() if name in computed]
    # of a part of the items, a breakdown by what that part doesn't hold is in the file as nan
    valued = [name for name, value in given.items() if not math.isnan(value.value)]
    lines += [f"{name} is not a score of its samples" for name in valued if name not in computed]
    lines += [f"{name} is not in the file" for name in computed if name not in given]
    return [line for line in lines if line]
