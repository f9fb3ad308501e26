"""Whether a run's numbers can be: no more is known of a file that anybody may have edited."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from lm_eval_bias import __version__, catalog, registry
from lm_eval_bias.custom_metrics.score import Score
from lm_eval_bias.data import sources
from lm_eval_bias.errors import BiasError
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import Run, TaskRun, Value

ROUNDING = 1e-9  # of the larger of 1 and the numbers that are compared: what sums of floats lose


def _exceeds(value: float, limit: float) -> bool:
    """Whether a value is above a limit by more than rounding.

    >>> _exceeds(100.00000000000001, 100.0), _exceeds(100.1, 100.0), _exceeds(1e300, math.inf)
    (False, True, False)
    """
    return value > limit and value - limit > ROUNDING * max(1.0, abs(limit))


def _outside(value: float, low: float, high: float) -> bool:
    return _exceeds(value, high) or _exceeds(-value, -low)


def _of_interval(value: Value, name: str, ends: tuple[float, float] | None, holds_value: bool) -> str:
    """What is impossible about an interval; empty where nothing is."""
    if ends is None:
        return ""
    text = f"its {name} [{ends[0]:g}, {ends[1]:g}]"
    if not all(map(math.isfinite, ends)):
        return f"{text} has no end"
    if math.isnan(value.value):
        return f"{text} is one of no value"
    if _exceeds(*ends):
        return f"{text} ends before it begins"
    if any(_outside(end, value.low, value.high) for end in ends):
        return f"{text} exceeds the range from {value.low:g} to {value.high:g}"
    if holds_value and _outside(value.value, *ends):
        return f"{text} doesn't include its value {value.value:g}"
    return ""


def _of_value(value: Value) -> str:
    """What is impossible about a score by itself; empty where nothing is."""
    low, high = value.low, value.high
    if math.isnan(low) or math.isnan(high) or low > high:
        return f"its range is {low:g} to {high:g}"
    if math.isinf(value.value):
        return f"it is {value.value:g}"
    if _outside(value.value, low, high):
        return f"it is {value.value:g}, outside of its range of {low:g} to {high:g}"
    if value.stderr < 0 or math.isinf(value.stderr):
        return f"its standard error is {value.stderr:g}"
    if value.dof < 0 or math.isnan(value.dof):
        return f"its standard error has {value.dof:g} degrees of freedom"
    if value.neutral is not None and not low <= value.neutral <= high:
        return f"its neutral value {value.neutral:g} is outside of its range of {low:g} to {high:g}"
    # the interval of the items as given may be one of another estimator, beside the value
    return _of_interval(value, "interval", value.interval, True) or _of_interval(
        value, "interval of the items as given", value.fixed_interval, False
    )


@cache
def _definitions(benchmark: str) -> Mapping[str, Score]:
    known = registry.by_name().get(benchmark)
    return {} if known is None else {score.name: score for score in known.every_score()}


def _of_shares(benchmark: str, scores: Mapping[str, Value]) -> str:
    """Which shares of one whole don't add up to it; empty where none does so."""
    known = registry.by_name().get(benchmark)
    for names in () if known is None else known.shares:
        parts = [scores[name] for name in names if name in scores]
        total = sum(part.value for part in parts)  # nan where one has no value, which no comparison meets
        if not parts or math.isinf(whole := parts[0].high):
            continue
        if _exceeds(total, whole) or (len(parts) == len(names) and _exceeds(whole, total)):
            return f"{', '.join(part.name for part in parts)} are shares of {whole:g} and add up to {total:g}"
    return ""


def check_scores(benchmark: str, scores: Mapping[str, Value], is_current: bool = True) -> None:
    """Refuse scores that can't be.

    Args:
        benchmark: Whose they are.
        scores: By name.
        is_current: Whether they have the ranges that the benchmark gives them now.

    Raises:
        BiasError: The first one, and what is impossible about it.
    """
    _refuse_twice(scores, "score")
    definitions = _definitions(benchmark) if is_current else {}
    known = registry.by_name().get(benchmark)
    for name, value in scores.items():
        if known is not None and value.high < value.value <= known.largest.get(name, value.high):
            continue
        problem = _of_value(value)
        score = definitions.get(name)
        if not problem and score is not None and _outside(value.value, score.low, score.high):
            problem = f"it is {value.value:g}, outside of its range of {score.low:g} to {score.high:g}"
        if problem:
            raise BiasError(f"{name}: {problem}")
    if problem := _of_shares(benchmark, scores):
        raise BiasError(problem)


_shown = cache(printable_runs.one_line)  # the same scores in file after file


def _refuse_twice(names: Mapping[str, Any], kind: str) -> None:
    """Refuse names that read as one."""
    shown = list(map(_shown, names))
    if len(set(shown)) < len(shown):
        doubled = next(name for name in shown if shown.count(name) > 1)
        raise BiasError(f"the {kind} {doubled} is named twice")


def _number(version: Any) -> float:
    """A task's version as a number; ``nan`` where it is none."""
    try:
        return float(version)
    except (TypeError, ValueError):
        return math.nan


def _current(task: TaskRun) -> float:
    """The version that the task has now; ``nan`` where that isn't known."""
    entry = catalog.entries().get(task.base)
    return _number(entry.metadata.get("version")) if entry else math.nan


def _of_version(task: TaskRun, made_by: Any) -> str:
    """Why there is no such version of a task; empty where there may be, in releases of this package that came later."""
    number, current = _number(task.version), _current(task)
    if math.isnan(current) or task.version == "":
        return ""
    if 0 < number <= current or (current < number < math.inf and _is_later(made_by)):
        return ""
    return f"there is no version {task.version[:40]} of it, the latest is {current:g}"


def _is_later(made_by: Any) -> bool:
    """Whether a version of this package is later than the one that runs."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(str(made_by)) > Version(__version__)
    except InvalidVersion:
        return False


def _of_catalog(task: TaskRun) -> Iterator[str]:
    """How a file contradicts what is known of a packaged task; one that was changed says so, and may."""
    entry = catalog.entries().get(task.base)
    if entry is None or task.inputs.get("changed"):
        return
    if entry.language and task.language not in ("", entry.language):
        yield f"its language is {_shown(task.language)[:40]!r}, but the task's is {entry.language!r}"
    if task.benchmark != entry.benchmark and task.benchmark in registry.by_name():
        yield f"its benchmark is {_shown(task.benchmark)[:40]!r}, but the task's is {entry.benchmark!r}"
    is_current = _number(task.version) == _current(task)
    may_differ = task.is_resized or "dataset_used" in task.metadata or not is_current
    if entry.items and task.items not in (0, entry.items) and not may_differ:
        yield f"it has {task.items:,} items, but the task has {entry.items:,}"
    if is_current and entry.path is not None and task.benchmark == entry.benchmark:
        yield from _of_another_task(entry, task)


def _of_another_task(entry: catalog.Entry, task: TaskRun) -> Iterator[str]:
    """What a file says that only holds of another task: it was renamed."""
    may_change = {"version", "language", "benchmark", "measures", *registry.get(entry.benchmark).options}
    for key, value in entry.metadata.items():
        if key not in may_change and (own := task.metadata.get(key, value)) != value:
            yield f"its metadata says {key}: {_shown(str(own))[:60]}, but the task's says {key}: {value}"
    others = {source.pin for source in sources.manifest().files.values()} - sources.hashes(entry.data).keys()
    for name in task.inputs.get("files", {}):
        if name in others:
            yield f"it read {name}, which is not a file of the task"


def _of_task(task: TaskRun, made_by: Any) -> Iterator[str]:
    if problem := _of_version(task, made_by):
        yield problem
    yield from _of_catalog(task)
    # files of older versions have the items that the task has, whatever its options made of them
    if task.items and task.documents > task.items and not task.is_resized:
        yield f"{task.documents:,} documents were scored, but the task has {task.items:,}"
    if task.documents < 0 or (not task.documents and any(math.isfinite(v.value) for v in task.scores.values())):
        yield f"it has scores for {task.documents:,} documents"


def check(run: Run) -> None:
    """Refuse a run whose numbers can't be.

    Raises:
        BiasError: The first task and score, and what is impossible about it.
    """
    damage = "damaged, or not a result of this package: rescore its samples, or run the task again"
    _refuse_twice(run.tasks, "task")
    for task in run.tasks.values():
        made_by = task.metadata.get("lm_eval_bias") or run.provenance.get("lm-eval-bias")
        try:
            for problem in _of_task(task, made_by):
                raise BiasError(problem)
            check_scores(task.benchmark, task.scores, _number(task.version) == _current(task))
        except BiasError as error:
            raise BiasError(f"{task.task}: {error}: {damage}") from error
