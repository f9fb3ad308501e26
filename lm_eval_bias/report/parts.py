"""What the sections of a page are made of, and the parts that all benchmarks have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, starmap

from lm_eval_bias.core import catalog, numbers, registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import progress
from lm_eval_bias.core.page_parts import (
    Cell,
    Footnotes,
    ReportTask,
    ReportTasks,
    Row,
    Table,
    numeric,
)
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.core.wording import score_cell, value_cell
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.report import breakdown_tables, pictures
from lm_eval_bias.report.listings import diagnostic_label
from lm_eval_bias.report.pictures import Mark, Panel
from lm_eval_bias.runs import breakdowns

MANY = 8  # runs whose pictures, words and figures a page shows
LISTED = 20  # values of a facet
FIGURED = 10  # values of a facet in a figure


def report_tasks(runs: Sequence[Run]) -> list[ReportTask]:
    """List all tasks of all runs with distinct labels."""
    tasks = []
    for series, run in enumerate(runs):
        for name, task in run.tasks.items():
            label = f"{run.name}: {name}" if len(runs) > 1 else name
            tasks.append(ReportTask(run, task, label, series))
    # benchmarks in their own order, and one task's runs below each other, for that is what readers compare
    names = [item.task.task for item in tasks]
    tasks.sort(key=lambda item: names.index(item.task.task))
    tasks.sort(key=lambda item: registry.place(item.task.definition.family))
    return tasks


def score_rows(
    tasks: Iterable[tuple[str, TaskRun]], footnotes: Footnotes, every: bool = False
) -> list[tuple[str, Value, dict[str, Cell]]]:
    """List the rows of every score table: task, score, and cells by run.

    Args:
        tasks: Each with its run's name.
        footnotes: Get the warnings.
        every: Whether of all scores; else of the main ones.
    """
    found: dict[str, dict[str, tuple[str, Value, dict[str, Cell]]]] = {}
    for run, task in tasks:
        of_task = found.setdefault(task.task, {})
        for value in task.scores.values() if every else task.shown():
            *_, cells = of_task.setdefault(value.name, (task.task, value, {}))
            cells[run] = scored_cell(task, value.name, footnotes)
    return [row for of_task in found.values() for row in of_task.values()]


def main_table(tasks: ReportTasks, every: bool = False) -> Table:
    """Make a table of the main scores, or of all, a row per task and score, runs side by side."""
    runs = list(dict.fromkeys(item.run.name for item in tasks))
    footnotes = Footnotes()
    rows: list[Row] = []
    pairs = [(item.run.name, item.task) for item in tasks]
    for name, value, cells in score_rows(pairs, footnotes, every):
        span = numbers.score_range(value)
        goal = Cell(numbers.target_text(value), value.neutral, span)
        beside = [cells.get(run, numbers.NONE) for run in runs]
        meaning = value.summary if every else numbers.reads_as(value)
        rows.append([name, score_cell(value), *beside, goal, meaning])
    last = "Measures" if every else "Reads as"
    columns = ["Task", "Score", *numeric(*runs), "Neutral or best", last]
    what = f"All {len(rows):,} scores" if every else "Main scores"
    if not every and any(task.chosen for _, task in pairs):
        what = "Scores"
    caption = f"{what} with 95% intervals in brackets"
    return Table(caption, columns, rows, footnotes.lines)


def scored_cell(task: TaskRun, score: str, footnotes: Footnotes) -> Cell:
    """Make the cell of a task's score, with the mark of its warnings and of what it lacks."""
    value = task.scores.get(score)
    warning = ""
    if value is not None:
        labels = list(map(diagnostic_label, task.diagnostics_of(score)))
        reasons = labels or [value.verdict.reason]
        warning = joined(*dict.fromkeys((*reasons, value.note)))
    return value_cell(value, footnotes.mark(warning))


def _broken_down(
    tasks: ReportTasks,
) -> Iterator[tuple[ReportTask, list[breakdowns.Breakdown]]]:
    """Yield the main scores of tasks by facet, as far as their answers are there."""
    for item in progress(tasks, "Breakdowns of tasks"):
        if item.task.is_saved and item.task.scores:
            with contextlib.suppress(BiasError):
                for computed in breakdowns.of_task(item.task, item.label):
                    yield item, computed


def by_facet(tasks: ReportTasks) -> list[Table]:
    """Break the main scores of tasks down, a table a facet and score, as far as they can be."""
    every = chain.from_iterable(computed for _, computed in _broken_down(tasks))
    return [breakdown_tables.table(computed, LISTED) for computed in every]


def primary(task: TaskRun) -> Value | None:
    """Return a task's first primary score, else its first main one."""
    names = catalog.primary(task.task, task.definition)
    listed = [task.scores[name] for name in names if name in task.scores]
    return next(iter([*listed, *task.main()]), None)


def pictured(task: TaskRun) -> list[Value]:
    """Return the chosen scores, else the primary one."""
    value = primary(task)
    return task.shown() if task.chosen else [value] if value else []


def panels(tasks: ReportTasks, footnotes: Footnotes) -> list[Panel]:
    """Show the primary scores of tasks, or the chosen ones: a panel a benchmark and score, a row a task."""
    marks = []
    for item in tasks:
        for value in filter(pictures.in_picture, pictured(item.task)):
            cell = scored_cell(item.task, value.name, footnotes)
            beware = item.task.warning(value.name) or value.verdict.reason
            place = item.task.definition.family, value.name
            marks.append((place, _mark(item, item.task.task, value, cell, beware)))
    made = []
    for (family, _), of in numbers.grouped(marks).items():
        title = f"{family.heading}: {of[0].value.title}"
        made.append(Panel(title, of))
    return made


def _mark(
    item: ReportTask, row: str, value: Value, cell: Cell, beware: str = ""
) -> Mark:
    return Mark(row, item.run.name, item.series, value, cell, beware)


def facet_panels(tasks: ReportTasks) -> Iterator[tuple[str, str, list[Panel]]]:
    """Yield pictures of the pictured scores by facet: name, title, and a panel a task, a row a value of the facet.

    The values are those that are furthest from neutral in the first run.
    """
    marks = []
    shown: dict[object, list[tuple[str, ...]]] = {}
    for item, computed in _broken_down(tasks):
        wanted = [value.name for value in pictured(item.task)]
        # a primary score can be one that compares the facet's values
        of_wanted = [one for one in computed if one.score.name in wanted]
        for one in of_wanted or computed[:1]:
            place = item.task.definition.family, one.score, one.by[0]
            first = [cell.values for cell in one.cells[:FIGURED]]
            first = shown.setdefault((place, item.task.task), first)
            for cell in one.cells:
                value = Value.of(one.score, cell.estimate)
                if cell.values in first and pictures.in_picture(value):
                    mark = _mark(item, cell.values[0], value, value_cell(value))
                    marks.append((place, (item.task.task, mark)))
    for (family, score, facet), of in numbers.grouped(marks).items():
        title = f"{family.heading}: {score.title} by {facet}"
        name = pictures.file_name(family.name, score.name, "by", facet)
        yield name, title, list(starmap(Panel, numbers.grouped(of).items()))
