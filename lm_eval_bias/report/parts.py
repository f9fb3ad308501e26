"""What the sections of a page are made of, and the parts that all benchmarks have."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from lm_eval_bias.core import numbers, registry
from lm_eval_bias.core.answers import DAMAGE, requests_of
from lm_eval_bias.core.benchmark import Benchmark
from lm_eval_bias.core.errors import BiasError, ask
from lm_eval_bias.core.files import progress
from lm_eval_bias.core.page_parts import Cell, Column, ReportTask, Table
from lm_eval_bias.core.registry import main_names as main_names
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.core.wording import score_cell, short, value_cell
from lm_eval_bias.runs import sample_logs

MANY = 8  # runs whose pictures, words and figures a page shows
MAIN = 12  # scores a task in pictures and columns, where a benchmark names no main ones
LISTED = 20  # items a task


def report_tasks(runs: Sequence[Run]) -> list[ReportTask]:
    """All tasks of all runs, labelled so that they can be told apart."""
    several = len(runs) > 1
    tasks = [
        ReportTask(
            run,
            task,
            f"{run.name}: {name}" if several else name,
            series,
            f"r{series + 1}t{number}",
            samples=partial(sample_logs.samples, task.samples)
            if task.samples
            else None,
        )
        for series, run in enumerate(runs)
        for number, (name, task) in enumerate(run.tasks.items(), start=1)
    ]
    # benchmarks in their own order, and one task's runs below each other, for that is what readers compare
    order = {
        name: place
        for place, name in enumerate(dict.fromkeys(item.task.task for item in tasks))
    }
    families = {name: place for place, name in enumerate(registry.by_name())}
    return sorted(
        tasks,
        key=lambda item: (
            families.get(item.task.benchmark, len(families)),
            order[item.task.task],
        ),
    )


def main_table(tasks: Sequence[ReportTask]) -> Table:
    """The scores that findings rest on, a row per task and score; runs stand beside each other."""
    runs = list(dict.fromkeys(item.run.name for item in tasks))
    groups: dict[str, dict[str, TaskRun]] = {}
    for item in tasks:
        groups.setdefault(item.task.task, {})[item.run.name] = item.task
    rows = []
    for name, members in groups.items():
        scores = {
            score: task.scores[score]
            for task in members.values()
            for score in main_names(task)
        }
        for score, value in scores.items():
            own = [
                members[run].scores.get(score) if run in members else None
                for run in runs
            ]
            label = score_cell(value)
            aim = Cell(numbers.aim(value), value.neutral)
            rows.append(
                [
                    Cell(name),
                    label,
                    *map(value_cell, own),
                    aim,
                    Cell(numbers.reads_as(value)),
                ]
            )
    values = [Column(run if len(runs) > 1 else "Value", True) for run in runs]
    columns = [
        Column("Task"),
        Column("Score"),
        *values,
        Column("Neutral or best"),
        Column("Reads as"),
    ]
    return Table("Main scores with 95% intervals in brackets", columns, rows)


def side_by_side(tasks: Sequence[TaskRun]) -> tuple[list[Value], list[list[Cell]]]:
    """The main scores of one benchmark's tasks, each once, and a row of values a task."""
    scores = {
        name: task.scores[name] for task in tasks for name in main_names(task)[:MAIN]
    }
    return list(scores.values()), [
        [value_cell(task.scores.get(name)) for name in scores] for task in tasks
    ]


def _listed_score(task: TaskRun) -> Value | None:
    """Return the main score whose items are listed: the first with a neutral value inside its range, else the first."""
    values = [task.scores[name] for name in main_names(task)]
    signed = [
        value
        for value in values
        if value.neutral is not None and value.low < value.neutral < value.high
    ]
    return next(iter(signed or values), None)


def _moving(
    log: Path, score: Value, benchmark: Benchmark
) -> Iterator[tuple[float, str, float, dict[str, Any]]]:
    """Read the samples that move a score: what to sort them by, the item's name, its value of the score, the sample."""
    neutral = score.neutral or 0.0
    sign = 1.0 if score.value >= neutral else -1.0
    for _, sample in sample_logs.lines(log):
        value = sample.get(score.name)
        if isinstance(value, float) and sign * (value - neutral) > 0:
            yield -sign * value, " / ".join(benchmark.key(sample["doc"])), value, sample


def moving_items(item: ReportTask) -> Table | None:
    """List the items that move a task's main score most, each with its own value of the score; ``None`` without any.

    They move it away from its neutral value, in the direction in which it is off.

    Raises:
        BiasError: They can't be told.
    """
    score = _listed_score(item.task)
    if score is None:
        return None
    if item.task.samples is None:
        raise BiasError(
            "no sample log (run with --log_samples and give the run's folder)"
        )
    benchmark = registry.get(item.task.benchmark)
    try:
        found = heapq.nsmallest(
            LISTED, _moving(item.task.samples, score, benchmark), key=itemgetter(0, 1)
        )
    except DAMAGE as error:
        raise BiasError(str(error)) from error
    rows = []
    for _, name, value, sample in found:
        facets: Mapping[str, str] = ask({}, benchmark, benchmark.facets, sample["doc"])
        about = ", ".join(facets.values())
        prompt = next(iter(requests_of(sample)), [""])[0]
        rows.append(
            [
                Cell(name),
                Cell(about),
                Cell(numbers.significant(value), value),
                Cell(short(str(prompt), 300)),
            ]
        )
    columns = [
        Column("Item"),
        Column("About"),
        Column("Its value", True),
        Column("Prompt (can offend)"),
    ]
    return (
        Table(
            f"Items that move a score most: {item.label}, {score.title}", columns, rows
        )
        if rows
        else None
    )


def about_items(tasks: Sequence[ReportTask]) -> tuple[list[str], list[Table]]:
    """List the items behind the main scores, and say why some tasks have none."""
    lists: list[Table] = []
    reasons: dict[str, list[str]] = {}
    for item in progress(tasks, "Items of tasks"):
        try:
            table = moving_items(item)
        except BiasError as error:
            reasons.setdefault(str(error), []).append(short(item.label, 40))
        else:
            lists += [] if table is None else [table]
    lines = [
        f"No items to show of {numbers.few(labels)}: {reason}."
        for reason, labels in reasons.items()
    ]
    return lines, lists


def every_score(tasks: Sequence[ReportTask]) -> Table:
    """All scores of a section, one row each."""
    count = sum(len(item.task.scores) for item in tasks)
    labels = (
        "Score",
        "Task",
        "Value",
        "95% interval",
        "Range",
        "Neutral or best",
        "Measures",
    )
    columns = [Column(label, label in ("Value", "95% interval")) for label in labels]
    rows = [
        [
            score_cell(value, value.note),
            Cell(item.label),
            Cell(numbers.number(value.value, value.unit), value.value),
            Cell(
                numbers.bracketed(value) or numbers.NONE,
                value.interval and value.interval[0],
                numbers.fixed_interval(value),
            ),
            Cell(numbers.score_range(value)),
            Cell(numbers.aim(value), value.neutral),
            Cell(value.summary),
        ]
        for item in tasks
        for name, value in item.task.scores.items()
    ]
    return Table(
        "The one score" if count == 1 else f"All {count:,} scores", columns, rows
    )
