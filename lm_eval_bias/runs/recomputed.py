"""A results file's scores against those of the sample logs beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from lm_eval_bias import registry
from lm_eval_bias.benchmark import detailed
from lm_eval_bias.errors import BiasError
from lm_eval_bias.runs import harness_results, sample_logs
from lm_eval_bias.runs.run_data import Run, TaskRun, Value

# what a policy has to allow by name, as far as samples tell it too
_TOLD = {"classifier_used": ("name", "is_default"), "dataset_used": ("sha256",)}
ROUNDING = 1e-9  # relative, below 1 absolute: sums in another order, on another machine


def _numbers(value: Value) -> Iterator[tuple[str, float]]:
    """All that is told of a score in numbers; ``nan`` for what it doesn't have."""
    yield "value", value.value
    yield "standard error", value.stderr
    yield "degrees of freedom", value.dof if not math.isnan(value.stderr) else math.nan
    for name, ends in (("interval", value.interval), ("interval of the items as given", value.fixed_interval)):
        low, high = ends or (math.nan, math.nan)
        yield f"{name}'s lower end", low
        yield f"{name}'s upper end", high
    yield "range's lower end", value.low
    yield "range's upper end", value.high
    yield "neutral value", math.nan if value.neutral is None else value.neutral


def _difference(given: Value, computed: Value) -> str:
    """The first number that differs; empty where none does."""
    for (what, own), (_, other) in zip(_numbers(given), _numbers(computed), strict=True):
        both_nan = math.isnan(own) and math.isnan(other)
        if not both_nan and not math.isclose(own, other, rel_tol=ROUNDING, abs_tol=ROUNDING):
            return f"{given.name} has the {what} {own:.10g}, but from its samples {other:.10g}"
    for field in ("direction", "unit", "higher_is_better"):
        if (own_word := getattr(given, field)) != (other_word := getattr(computed, field)):
            return f"{given.name} has the {field} {str(own_word)[:80]!r}, but from its samples {other_word!r}"
    if computed.note and not given.note:
        return f"{given.name} lacks the note {computed.note[:80]!r}"
    return ""


def _computed(task: TaskRun) -> dict[str, Value]:
    """The scores of a task's log."""
    if task.samples is None:
        raise BiasError("there is no sample log beside the file: run with --log_samples, and name the run's folder")
    benchmark, records = registry.get(task.benchmark), []
    for part, doc, answers in sample_logs.first_filter(task.samples):
        try:
            records.append(benchmark.record(doc, answers))
        except sample_logs.DAMAGE as error:
            raise sample_logs.damaged(part, error, f"document {len(records)}") from error
    scores = benchmark.scores(records, detailed=detailed(benchmark, task.metadata))
    return {score.name: harness_results.estimated(score, score.compute(records)) for score in scores}


def _means(task: TaskRun) -> Iterator[str]:
    """In what a file names another classifier or data set than its samples do."""
    if task.samples is None:
        return
    sample = next(sample_logs.first_filter(task.samples))
    try:
        told = registry.get(task.benchmark).provenance([sample.doc])
    except sample_logs.DAMAGE as error:
        raise sample_logs.damaged(sample.part, error, "document 0") from error
    for name, field in ((name, field) for name, fields in _TOLD.items() for field in fields if name in told):
        given = task.metadata.get(name)
        own, other = given.get(field) if isinstance(given, Mapping) else None, told[name].get(field)
        if own != other:
            yield f"{name} has the {field} {str(own)[:80]!r}, but by its samples {str(other)!r}"


def differences(run: Run, task: TaskRun) -> list[str]:
    """In what a task's scores differ from those that its sample log gives, a line a score.

    Raises:
        BiasError: There is no log, or one that can't be read.
    """
    try:
        computed, lines = _computed(task), list(_means(task))
    except sample_logs.OtherDocuments:
        return ["its samples have other documents or prompts"]
    except BiasError as error:
        raise BiasError(f"{run.path}: {task.task}: its scores can't be recomputed: {error}") from error
    lines += [_difference(value, computed[name]) for name, value in task.scores.items() if name in computed]
    # of a part of the items, a breakdown by what that part doesn't hold is in the file as nan
    valued = [name for name, value in task.scores.items() if not math.isnan(value.value)]
    lines += [f"{name} is not a score of its samples" for name in valued if name not in computed]
    lines += [f"{name} is not in the file" for name in computed if name not in task.scores]
    return [line for line in lines if line]
