"""What the sections of a page are made of, and the parts that all benchmarks have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lm_eval_bias.core import numbers, registry
from lm_eval_bias.core.page_parts import Cell, Column, DotPlot, DotRow, Part, ReportTask, Table
from lm_eval_bias.core.registry import main_names as main_names
from lm_eval_bias.core.run_data import Run
from lm_eval_bias.core.score_cells import score_cell, score_column, score_label, value_cell
from lm_eval_bias.core.wording import short
from lm_eval_bias.runs import remarks, sample_logs

FIGURES = 4  # of one kind, one a task: more of them nobody looks at
MAIN = 12  # scores a task in the picture and with items, where a benchmark names no main ones
ROWS = 1500  # of a table: more of them would make a page of many megabytes


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
            samples=partial(sample_logs.samples, task.samples) if task.samples else None,
        )
        for series, run in enumerate(runs)
        for number, (name, task) in enumerate(run.tasks.items(), start=1)
    ]
    # benchmarks in their own order, and one task's runs below each other, for that is what readers compare
    order = {name: place for place, name in enumerate(dict.fromkeys(item.task.task for item in tasks))}
    families = {name: place for place, name in enumerate(registry.by_name())}
    return sorted(tasks, key=lambda item: (families.get(item.task.benchmark, len(families)), order[item.task.task]))


def main_scores(benchmark: str, tasks: Sequence[ReportTask], title: str) -> Part:
    """The scores that findings rest on, as dot plot and table.

    Args:
        benchmark: Name of a benchmark or variant.
        tasks: Its tasks.
        title: Heading.
    """
    names = list(dict.fromkeys(name for item in tasks for name in main_names(item.task)))
    if not names:
        return Part(title, ["None of the main scores is available."])
    rows = [DotRow(item.label, [item.task.scores.get(name) for name in names], item.series) for item in tasks]
    figure = DotPlot(
        f"{benchmark}-scores",
        f"Main scores of {benchmark}, in their own units",
        "Dots are scores, lines their 95% intervals; the dashed line is the neutral value. Axes show only the part of "
        "the range that holds all values.",
        [score_label(benchmark, name) for name in names],
        rows,
    )
    columns = [Column("Task"), Column("Items", True), *(score_column(benchmark, name) for name in names)]
    table = Table(
        "Main scores with 95% intervals in brackets",
        columns,
        [
            [
                Cell(item.label, note=remarks.before_scores(item.run, item.task)),
                Cell(f"{item.task.documents:,}", item.task.documents),
                *(value_cell(item.task.scores.get(name), item.items.get(name, "")) for name in names),
            ]
            for item in tasks
        ],
    )
    meaning = Table(
        "How to read them",
        [Column("Score"), Column("Measures"), Column("Range"), Column("Neutral", True), Column("Reads as")],
        [
            [
                score_cell(benchmark, name),
                Cell(value.summary),
                Cell(numbers.score_range(value)),
                Cell(numbers.bound(value.neutral), value.neutral),
                Cell(value.direction),
            ]
            for name in names
            for value in [next(item.task.scores[name] for item in tasks if name in item.task.scores)]
        ],
    )
    return Part(title, _about_items(tasks), [figure], [table, meaning])


def _about_items(tasks: Sequence[ReportTask]) -> list[str]:
    """Where the items of scores are, and why some have none."""
    lines = (
        ["Each score in the table links to the items that move it most."] if any(item.items for item in tasks) else []
    )
    reasons: dict[str, list[str]] = {}
    for item in tasks:
        if item.no_items:
            reasons.setdefault(item.no_items, []).append(short(item.label, 40))
    return lines + [
        f"No items to show{'' if len(labels) == len(tasks) else f' of {numbers.few(labels)}'}: {reason}."
        for reason, labels in reasons.items()
    ]


def every_score(tasks: Sequence[ReportTask]) -> Part:
    """All scores of a section, one row each, folded away; too many of them are left to the other formats."""
    count = sum(len(item.task.scores) for item in tasks)
    if count > ROWS:
        return Part(
            "Every score", [f"Not on this page, because there are {count:,} of them: --format csv lists them all."]
        )
    columns = [
        Column("Score"),
        Column("Task"),
        Column("Value", True),
        Column("95% interval", True),
        Column("Range"),
        Column("Neutral", True),
        Column("Measures"),
    ]
    rows = [
        [
            score_cell(item.task.benchmark, name, value.note),
            Cell(item.label),
            Cell(numbers.number(value.value, value.unit), value.value),
            Cell(
                numbers.interval(value),
                None if value.interval is None else value.interval[0],
                numbers.fixed_interval(value),
            ),
            Cell(numbers.score_range(value)),
            Cell(numbers.bound(value.neutral), value.neutral),
            Cell(value.summary),
        ]
        for item in tasks
        for name, value in item.task.scores.items()
    ]
    caption = "The one score" if count == 1 else f"All {count:,} scores"
    return Part("Every score", [], [], [], [Table(caption, columns, rows)])
