"""One board per task: runs and published models as rows, main scores as columns, ranks where they can be told."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lm_eval_bias import benchmarks, catalog
from lm_eval_bias.custom_metrics._score import t_factor
from lm_eval_bias.custom_metrics.stereoset import TESTS, VARIANTS
from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.leaderboard import conventions, published, ranks
from lm_eval_bias.leaderboard.text import clean
from lm_eval_bias.runs.model import Problem, Run, TaskRun, Value

RUN, PUBLISHED = "run", "published"


@dataclass(frozen=True)
class Cell:
    """A score of a row.

    Attributes:
        value: ``nan`` where there is none.
        text: As shown, with as many digits as its unit deserves or its paper prints.
        stderr: ``nan`` where there is none.
        interval: 95%; ``None`` where there is none.
        plus_minus: An uncertainty that the paper prints, which is no standard error of the mean.
        note: Why there is no value, what to beware of, or how it was derived.
        rank: Interval of rank among the runs with the same conventions.
        unranked: Why there is none.
    """

    value: float = math.nan
    text: str = "–"
    stderr: float = math.nan
    interval: tuple[float, float] | None = None
    plus_minus: float | None = None
    note: str = ""
    rank: ranks.Rank | None = None
    unranked: str = ""


@dataclass(frozen=True)
class Row:
    """A model.

    Attributes:
        model: Its name.
        kind: :data:`RUN` or :data:`PUBLISHED`.
        source: The version of this suite, or paper and tables.
        conventions: What its scores were made by.
        deviations: Where it departs from the task, and what is known to be wrong.
        cells: By score name.
        group: What it shares with the rows that it may be ranked with; empty for published ones.
    """

    model: str
    kind: str
    source: str
    conventions: str
    deviations: tuple[str, ...]
    cells: Mapping[str, Cell]
    group: tuple[str, ...] = ()


@dataclass(frozen=True)
class Board:
    """A task's table.

    Attributes:
        task: Its name.
        benchmark: Its benchmark's.
        language: ISO 639-1 code.
        measures: What it measures, in one line.
        columns: The main scores; their ``value`` is empty.
        others: Further scores that the paper prints.
        rows: Runs, then published models, each by name: no order of merit.
        notes: What holds for the whole table.
    """

    task: str
    benchmark: str
    language: str
    measures: str
    columns: Sequence[Value]
    others: Sequence[Value]
    rows: Sequence[Row]
    notes: Sequence[str]


def rule(column: Value) -> str:
    """How a score ranks models; empty where it doesn't."""
    if column.higher_is_better is not None:
        return "highest first" if column.higher_is_better else "lowest first"
    return "" if column.neutral is None else f"nearest to {column.neutral:g} first"


def number(value: float, unit: str) -> str:
    """A value with as many digits as its unit deserves.

    >>> number(56.7037, "percent"), number(0.4839, "difference"), number(1995.0, "count"), number(float("nan"), "")
    ('56.7', '0.484', '1995', '–')
    """
    if not math.isfinite(value):
        return "–"
    if unit == "count":
        return f"{value:.2f}".rstrip("0").rstrip(".")
    text = f"{value:.1f}" if unit.startswith("percent") else f"{value:.3f}"
    return text if text.strip("-0.") else text.lstrip("-")


def _known(benchmark: str) -> dict[str, Value]:
    """The suite's own description of a benchmark's scores, by name."""
    docs = [{"test": test, "bias_type": "", "variants": VARIANTS} for test in TESTS]  # what decides which there are
    listed = benchmarks.get(benchmark).scores(docs if benchmark.startswith("stereoset") else [])
    return {
        s.name: Value(s.name, math.nan, low=s.low, high=s.high, neutral=s.neutral, direction=s.direction, unit=s.unit,
                      summary=s.summary, source=s.source, higher_is_better=s.higher_is_better)
        for s in listed
    }  # fmt: skip


def _run_cell(found: Value | None, column: Value) -> Cell:
    if found is None:
        return Cell(note="not in its file", unranked="not in its file")
    note = clean(found.note)
    value = found.value if math.isfinite(found.value) else math.nan
    cell = Cell(value, number(value, column.unit), found.stderr, found.interval, note=note)
    if math.isnan(value):
        return replace(cell, unranked=note or "no value")
    alike = ("neutral", "higher_is_better", "unit", "low", "high")
    if any(getattr(found, name) != getattr(column, name) for name in alike) or not column.low <= value <= column.high:
        return replace(cell, unranked="its file gives the score another range, unit or neutral value")
    if point(cell, found.dof, column) is None:
        return replace(cell, unranked=note if math.isnan(found.stderr) and note else "no usable standard error")
    return cell


def point(cell: Cell, dof: float, column: Value) -> ranks.Point | None:
    """What a cell is ranked by; ``None`` without a usable standard error.

    An interval that is wider than the standard error says (Wilson's, Newcombe's and bootstrap ones near the end of the
    range, where the error may even be 0) counts for more. An error of 0 would settle every comparison: it says that
    nothing varied between the items, not that nothing could have.
    """
    dof = math.inf if math.isnan(dof) else max(dof, 1.0)
    half = 0.0 if cell.interval is None else (cell.interval[1] - cell.interval[0]) / 2 / t_factor(dof)
    error = max((e for e in (half, cell.stderr) if math.isfinite(e)), default=0.0)
    width = column.high - column.low
    return ranks.Point(cell.value, error, dof) if 1e-9 * width < error <= width else None


def _run_row(run: Run, task: TaskRun, columns: Sequence[Value]) -> Row:
    cells = {column.name: _run_cell(task.scores.get(column.name), column) for column in columns}
    departures = tuple(map(clean, conventions.deviations(task)))
    notes: dict[str, list[str]] = defaultdict(list)
    for name, cell in cells.items():
        if cell.note and not math.isnan(cell.value) and cell.note not in departures:
            notes[cell.note].append(name)
    return Row(
        clean(f"{run.name} {conventions.remark(task.task)}"),
        RUN,
        clean(f"lm-eval-bias {run.provenance.get('lm-eval-bias') or ''}"),
        clean(conventions.said(run, task)),
        departures + tuple(f"{', '.join(names)}: {note}" for note, names in notes.items()),
        cells,
        conventions.key(run, task),
    )


def _published_cell(found: published.Cell | None) -> Cell:
    if found is None:
        return Cell(note="not published", unranked="not published")
    without = "published without standard error"
    no_error = without if found.plus_minus is None else "published with a ± that is no standard error"
    return Cell(found.value, found.printed, plus_minus=found.plus_minus, note=found.derived, unranked=no_error)


def _published_row(row: published.Published, columns: Sequence[Value]) -> Row:
    cells = {column.name: _published_cell(row.cells.get(column.name)) for column in columns}
    return Row(row.model, PUBLISHED, f"{row.paper}, {row.tables}", row.conventions, row.remarks, cells)


def _ranked(rows: list[Row], column: Value, dofs: Sequence[float]) -> list[Row]:
    """The rows of runs with this column's ranks, among those with the same conventions."""
    groups: dict[tuple[str, ...], list[tuple[int, ranks.Point]]] = defaultdict(list)
    for i, row in enumerate(rows):
        cell = row.cells[column.name]
        found = None if cell.unranked else point(cell, dofs[i], column)
        if found is not None:
            groups[row.group].append((i, found))
    made = list(rows)
    for members in groups.values():
        held = ranks.intervals([found for _, found in members], column.neutral, column.higher_is_better)
        for (i, _), rank in zip(members, held, strict=True):
            cell = made[i].cells[column.name]
            alone = "no other run with the same conventions"
            cell = replace(cell, rank=rank) if len(members) > 1 else replace(cell, unranked=alone)
            made[i] = replace(made[i], cells={**made[i].cells, column.name: cell})
    return made


def _without_reasons(rows: Sequence[Row], ranked: Sequence[str]) -> list[Row]:
    """The rows without reasons for missing ranks in columns that rank nothing."""
    return [
        replace(row, cells={n: c if n in ranked else replace(c, unranked="") for n, c in row.cells.items()})
        for row in rows
    ]


def _notes(task: str, benchmark: str, rows: Sequence[Row]) -> list[str]:
    notes = []
    if len({row.group for row in rows if row.kind == RUN}) > 1:
        notes.append("Runs were made by different conventions: ranks hold among those with the same.")
    if not any(row.kind == PUBLISHED for row in rows):
        notes.append(published.MISSING.get(benchmark, "No published scores for this task."))
    return notes


def _board(task: str, members: Sequence[tuple[Run, TaskRun]]) -> Board:
    entry = catalog.entries().get(task)
    benchmark = entry.benchmark if entry else members[0][1].benchmark
    own = [(run, found) for run, found in members if found.benchmark == benchmark]
    printed = published.by_task().get(task, [])
    known = _known(benchmark)
    main = benchmarks.get(benchmark).main
    extra = [name for name in known if name not in main and any(name in row.cells for row in printed)]
    columns, others = [known[name] for name in main], [known[name] for name in extra]
    own.sort(key=lambda pair: (pair[0].name.casefold(), pair[1].task))
    rows = [_run_row(run, found, [*columns, *others]) for run, found in own]
    ranked = [column for column in columns if rule(column)]
    for column in ranked:
        scores = [found.scores.get(column.name) for _, found in own]
        rows = _ranked(rows, column, [math.inf if score is None else score.dof for score in scores])
    rows += [_published_row(row, [*columns, *others]) for row in sorted(printed, key=lambda row: row.model.casefold())]
    rows = _without_reasons(rows, [column.name for column in ranked])
    language = entry.language if entry else own[0][1].language
    measures = entry.measures if entry else "a task that this package doesn't know"
    return Board(task, benchmark, language, measures, columns, others, rows, _notes(task, benchmark, rows))


def wanted(names: Sequence[str]) -> list[str]:
    """The tasks of these names, groups resolved.

    Raises:
        BiasError: A name that is none of ours.
    """
    found: list[str] = []
    for name in names:
        entry = catalog.entries().get(name)
        if entry is None:
            raise BiasError(f"--task {name}: no such task.{did_you_mean(name, catalog.entries())}")
        found += entry.members or [name]
    return list(dict.fromkeys(found))


def boards(runs: Sequence[Run], tasks: Sequence[str] = ()) -> list[Board]:
    """The boards of all tasks that were run, or of the tasks named (also those with published scores alone).

    Raises:
        BiasError: Nothing is known of the tasks named.
    """
    members: dict[str, list[tuple[Run, TaskRun]]] = defaultdict(list)
    for run in runs:
        for found in run.tasks.values():
            if found.benchmark in benchmarks.BENCHMARKS:
                members[conventions.base(found.task)].append((run, found))
    if tasks:
        names = [name for name in wanted(tasks) if name in members or name in published.by_task()]
        if not names:
            raise BiasError(f"--task {', '.join(tasks)}: no run of it, and nothing published")
    else:
        names = [name for name in catalog.entries() if name in members]
        names += [name for name in members if name not in names]
    return [_board(name, members.get(name, [])) for name in names]


def foreign(runs: Sequence[Run]) -> list[Problem]:
    """Tasks of benchmarks that this package doesn't know, which can't be listed."""
    return [
        Problem(run.path, f"{found.task}: of an unknown benchmark, {found.benchmark!r}")
        for run in runs
        for found in run.tasks.values()
        if found.benchmark not in benchmarks.BENCHMARKS
    ]
