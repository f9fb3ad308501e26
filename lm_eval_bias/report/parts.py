"""What the sections of a page are made of, and the parts that all benchmarks have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lm_eval_bias.core import catalog, numbers, registry
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
from lm_eval_bias.report import pictures
from lm_eval_bias.report.listings import labels
from lm_eval_bias.report.pictures import Mark, Panel

MANY = 8  # runs whose pictures, words and figures a page shows


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


def all_scores(task: TaskRun) -> Iterable[Value]:
    """List every score of a task."""
    return task.scores.values()


def score_rows(
    tasks: Iterable[tuple[str, TaskRun]],
    footnotes: Footnotes,
    chosen: Callable[[TaskRun], Iterable[Value]],
) -> list[tuple[str, Value, dict[str, Cell]]]:
    """List the rows of every score table: task, score, and cells by run.

    Args:
        tasks: Each with its run's name.
        footnotes: Get the warnings.
        chosen: Lists the scores of a task.
    """
    found: dict[tuple[str, str], tuple[str, Value, dict[str, Cell]]] = {}
    for run, task in tasks:
        for value in chosen(task):
            row = found.setdefault((task.task, value.name), (task.task, value, {}))
            row[-1][run] = scored_cell(task, value.name, footnotes)
    return list(found.values())


def main_table(
    tasks: ReportTasks,
    chosen: Callable[[TaskRun], Iterable[Value]] = TaskRun.shown,
) -> Table:
    """Make a table of the main scores, or of others, a row per task and score, runs side by side."""
    runs = list(dict.fromkeys(item.run.name for item in tasks))
    footnotes = Footnotes()
    rows: list[Row] = []
    pairs = [(item.run.name, item.task) for item in tasks]
    for name, value, cells in score_rows(pairs, footnotes, chosen):
        span = numbers.score_range(value)
        goal = Cell(numbers.target_text(value), value.neutral, span)
        beside = [cells.get(run, numbers.NONE) for run in runs]
        reads = numbers.reads_as(value)
        rows.append([name, score_cell(value), *beside, goal, reads])
    columns = ["Task", "Score", *numeric(*runs), "Neutral or best", "Reads as"]
    caption = "Scores with 95% intervals in brackets"
    return Table(caption, columns, rows, footnotes.lines)


def scored_cell(task: TaskRun, score: str, footnotes: Footnotes) -> Cell:
    """Make the cell of a task's score, with the mark of its warnings and of what it lacks."""
    value = task.scores.get(score)
    warning = ""
    if value is not None:
        of_score = task.diagnostics_of(score)
        reasons = [labels("diagnostics")[one.code] for one in of_score]
        reasons = reasons or [value.verdict.reason]
        warning = joined(*dict.fromkeys((*reasons, value.note)))
    return value_cell(value, footnotes.mark(warning))


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
            mark = Mark(item.task.task, item.run.name, item.series, value, cell)
            marks.append(((item.task.definition.family, value.name), mark))
    made = []
    for (family, _), of in numbers.grouped(marks).items():
        title = f"{family.heading}: {of[0].value.title}"
        made.append(Panel(title, of))
    return made
