"""Reports on runs, in each format of ``lm-eval-bias report``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lm_eval_bias.report import content, tables, templates
from lm_eval_bias.runs import printable_runs, run_file
from lm_eval_bias.runs.run_data import Problem, Run

COLUMNS = (
    "run", "task", "benchmark", "language", "documents", "items", "score", "value", "stderr", "interval_low",
    "interval_high", "range_low", "range_high", "neutral", "unit", "direction", "note",
)  # fmt: skip


def as_html(runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """The page about some runs; the same runs always give the same text."""
    report = content.build(runs, problems)
    sections = [(section, content.breakdowns(section)) for section in report.sections]
    return templates.render("report.html.j2", report=report, sections=sections)


def as_markdown(runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """The report in Markdown: sentences, warnings, tables of the main scores, provenance."""
    report = content.build(runs, problems)
    return templates.render("report.md.j2", report=report, main_tables=content.main_tables)


def as_latex(runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """The main scores as LaTeX tables (booktabs), to be included in a paper."""
    report = content.build(runs, problems)
    return templates.render("report.tex.j2", report=report, main_tables=content.main_tables)


def _rows(runs: Sequence[Run]) -> Iterator[list[object]]:
    for run in printable_runs.presentable(runs):
        for task in run.tasks.values():
            for value in task.scores.values():
                yield [
                    run.name, task.task, task.benchmark, task.language, task.documents, task.items or "", value.name,
                    value.value, value.stderr, *(value.interval or (None, None)), value.low, value.high, value.neutral,
                    value.unit, value.direction, value.note,
                ]  # fmt: skip


def as_csv(runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """One row per run, task and score; empty where there is no number."""
    return tables.csv_text(COLUMNS, _rows(runs))


def as_json(runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """A run file of one run, a list of several; each meets the schema.

    Raises:
        BiasError: A run that the schema doesn't allow.
    """
    data = [run_file.as_data(run) for run in runs]
    for one in data:
        run_file.check(one)
    return tables.json_text(data[0] if len(data) == 1 else data, indent=1)


WRITERS = {"html": as_html, "md": as_markdown, "json": as_json, "csv": as_csv, "latex": as_latex}
