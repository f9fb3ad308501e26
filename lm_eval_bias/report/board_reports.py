"""Boards, in each format of ``lm-eval-bias leaderboard``: a table a task, a row a model, a column a score."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from lm_eval_bias.boards.building import (
    NOT_PUBLISHED,
    PUBLISHED,
    RUN,
    UNRANKED,
    Board,
    BoardRow,
    rule,
)
from lm_eval_bias.boards.rank_intervals import LEVEL
from lm_eval_bias.core.numbers import (
    NONE,
    SHARES,
    aim,
    bare,
    bracketed_ends,
    few,
    number,
    reads_as,
    score_range,
)
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.core.run_data import Problem, Run, Value, readable
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.report import tables, templates

TITLE = "Bias leaderboard"
NO_SUM = (
    "No number sums up bias, and no ranking spans several benchmarks: they measure different things, and a model near "
    "one neutral value can be far from another."
)
READING = (
    f"One table per task. {NO_SUM}",
    "Values have 95% intervals. Published scores are the papers' own, computed by other code with other choices; they "
    "are shown beside the runs and are not ranked, because the papers print no usable standard errors.",
    "A rank is an interval (Mogstad, Romano, Shaikh & Wilhelm 2024): all pairs are tested together (Holm), and all "
    f"intervals of a column cover the true ranks at the same time with {LEVEL:.0%} probability. Models with "
    "overlapping intervals are not ordered.",
    "Scores with a neutral value in the middle rank by their distance from it, on either side; a neutral value is not "
    "a goal, and a model that knows nothing can be near it.",
    "Runs on the same items are ranked by the error of their difference, as lm-eval-bias compare tests it, where their "
    "sample logs are there. Otherwise they are treated as independent, and the table says so.",
)
_COLUMNS = ("task", "benchmark", "language", "kind", "model", "source", "conventions", "deviations", "score", "value",
            "stderr", "interval_low", "interval_high", "printed_plus_minus", "note", "rank_low", "rank_high", "ranked",
            "no_rank", "caveat")  # fmt: skip
_MANY = 20  # names that are listed


def text(row: BoardRow, column: Value) -> str:
    """A value with the paper's digits, or as many as its unit bears."""
    cell = row.cells[column.name]
    if not cell.printed or column.unit == "proportion":
        return number(cell.value, column.unit)
    return cell.printed + "%" * (column.unit in SHARES)


def uncertainty(row: BoardRow, column: Value) -> str:
    """A value's interval or printed ±, or that it was derived; empty where there is nothing to say."""
    cell = row.cells[column.name]
    if cell.plus_minus is not None:
        return f"±\u00a0{bare(cell.plus_minus, column.unit)}"
    return bracketed_ends(cell.interval, column.unit) or (
        "derived" if cell.derived else ""
    )


def sort_key(row: BoardRow, column: Value) -> float:
    """What rows are sorted by: a value, or its distance from the neutral value, which rows without ranks lack."""
    value = row.cells[column.name].value
    if column.neutral is None or column.higher_is_better is not None:
        return value
    return (
        math.nan
        if any(kind in row.unmaking for kind in UNRANKED)
        else abs(value - column.neutral)
    )


def leading(board: Board) -> Value:
    """The score that stands for a board at first: its first one around a neutral value."""
    around = (
        one
        for one in board.columns
        if one.neutral is not None and one.higher_is_better is None
    )
    return next(around, board.columns[0])


def listed(board: Board, columns: Sequence[Value]) -> list[BoardRow]:
    """The rows of a table, runs first, by the leading score; runs without any score stay, to be seen."""
    lead = leading(board)

    def place(row: BoardRow) -> tuple[bool, float]:
        key = sort_key(row, lead)
        return row.kind == PUBLISHED, math.inf if math.isnan(
            key
        ) else -key if lead.higher_is_better else key

    shown = [
        row
        for row in board.rows
        if row.kind == RUN or any(text(row, column) != NONE for column in columns)
    ]
    return sorted(shown, key=place)


def _meaning(column: Value) -> str:
    """How to read a score."""
    name = "" if column.title == column.name else f" ({column.name})"
    span = f"{score_range(column)}, {aim(column)}; {reads_as(column)}"
    ranked = f"Ranked {rule(column)}." if rule(column) else "Not ranked."
    return f"{column.title}{name}: {column.summary} ({span}). {ranked}"


def unranked(board: Board) -> list[str]:
    """Why rows have no rank: each reason with the rows that it is about."""
    labels: dict[str, dict[str, None]] = defaultdict(dict)
    for row in board.rows:
        for reason in (
            row.cells[column.name].unranked for column in board.columns if rule(column)
        ):
            if reason not in ("", NOT_PUBLISHED):
                labels[reason][
                    "published models" if row.kind == PUBLISHED else row.model
                ] = None
    return [
        f"{few(list(models), _MANY)}: {reason}" for reason, models in labels.items()
    ]


def notes(board: Board) -> dict[str, Sequence[str]]:
    """What has to be said of a board, by heading."""
    made: dict[str, dict[str, None]] = defaultdict(dict)
    remarks = []
    for row in board.rows:
        made[
            f"{row.conventions} ({row.source})"
            if row.kind == PUBLISHED
            else row.conventions
        ][row.model] = None
        said = [row.caveat, *(one for one in row.deviations if one not in row.caveat)]
        if any(said):
            remarks.append(f"{row.model}: {'; '.join(filter(None, said))}")
    return {
        "Score": [_meaning(column) for column in board.columns],
        "Note": board.notes,
        "Single models": remarks,
        "No rank": unranked(board),
        "Made by": [
            f"{few(list(models), _MANY)}: {how}" for how, models in made.items()
        ],
    }


def _cell(row: BoardRow, column: Value) -> Cell:
    """A model's score with its uncertainty and its interval of rank."""
    rank = row.cells[column.name].rank
    ranked = f"rank {rank} of {rank.of}" if rank else ""
    note = ", ".join(filter(None, (uncertainty(row, column), ranked)))
    return Cell(text(row, column), sort_key(row, column), note)


def table(board: Board, columns: Sequence[Value], caption: str) -> Table:
    """Some of a board's scores with their ranks."""
    rows = []
    for row in listed(board, columns):
        about = (
            f"published: {row.source}" if row.kind == PUBLISHED else row.caveat or RUN
        )
        rows.append(
            [Cell(row.model, note=about), *(_cell(row, column) for column in columns)]
        )
    heads = [Column(column.title, True) for column in columns]
    return Table(f"{board.task}: {caption}", [Column("Model"), *heads], rows)


def origins(runs: Sequence[Run]) -> Table:
    """Where the runs come from."""
    fields = ("date", "lm-eval-bias", "lm_eval", "torch", "dtype", "device")
    rows = [
        [Cell(run.name), Cell(str(run.path))]
        + [Cell(readable(run.provenance.get(name))) for name in fields]
        for run in runs
    ]
    return Table(
        "Runs, with models and settings",
        [Column(name) for name in ("Model", "File", *fields)],
        rows,
    )


def _lines(boards: Sequence[Board]) -> Iterator[list[object]]:
    for board in boards:
        for row in board.rows:
            for column in [*board.columns, *board.others]:
                cell = row.cells[column.name]
                yield [
                    board.task, board.benchmark, board.language, row.kind, row.model, row.source, row.conventions,
                    "; ".join(row.deviations), column.name, cell.value, cell.stderr, *(cell.interval or ("", "")),
                    cell.plus_minus, cell.note,
                    *((cell.rank.low, cell.rank.high, cell.rank.of) if cell.rank else ("", "", "")), cell.unranked,
                    row.caveat,
                ]  # fmt: skip


def _cell_data(row: BoardRow, column: Value) -> Mapping[str, object]:
    cell = row.cells[column.name]
    return {
        "value": finite(cell.value),
        "text": text(row, column),
        "stderr": finite(cell.stderr),
        "interval": list(cell.interval) if cell.interval else None,
        "printed_plus_minus": cell.plus_minus,
        "note": cell.note,
        "rank": {"low": cell.rank.low, "high": cell.rank.high, "of": cell.rank.of}
        if cell.rank
        else None,
        "no_rank": cell.unranked,
    }


def _board_data(board: Board) -> Mapping[str, object]:
    columns = [*board.columns, *board.others]
    return {
        **{
            name: getattr(board, name)
            for name in ("task", "benchmark", "language", "measures", "notes")
        },
        "scores": [
            {
                **column.describe(),
                "main": column in board.columns,
                "ranked": rule(column) if column in board.columns else "",
            }
            for column in columns
        ],
        "rows": [
            {
                name: getattr(row, name)
                for name in (
                    "model",
                    "kind",
                    "source",
                    "conventions",
                    "deviations",
                    "caveat",
                )
            }
            | {"scores": {column.name: _cell_data(row, column) for column in columns}}
            for row in board.rows
        ],
    }


def render(
    form: str, boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]
) -> str:
    """The boards of some runs.

    Args:
        form: ``html``, ``md`` or ``text``, a section per task; ``csv``, a line
            per model and score; or ``json``, everything.
        boards: The boards.
        runs: The runs.
        problems: Files that were passed over.
    """
    if form == "csv":
        return tables.csv_text(_COLUMNS, _lines(boards))
    if form == "json":
        data = {
            "reading": list(READING),
            "problems": [
                {"path": str(problem.path), "reason": problem.reason}
                for problem in problems
            ],
            "boards": [_board_data(board) for board in boards],
        }
        return tables.json_text(data, indent=1)
    return templates.render(
        f"leaderboard.{templates.ENDINGS[form]}.j2",
        title=TITLE,
        reading=READING,
        no_sum=NO_SUM,
        notes=notes,
        origins=origins,
        board_table=table,
        boards=boards,
        runs=runs,
        problems=problems,
    )
