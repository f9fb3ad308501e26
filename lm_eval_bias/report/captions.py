"""What a board says: its cells, how its scores are read and ranked, and what has to be said of its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lm_eval_bias import catalog
from lm_eval_bias.analysis.boards import NOT_PUBLISHED, PUBLISHED, Board, Cell, Row, rule
from lm_eval_bias.analysis.rank_intervals import LEVEL
from lm_eval_bias.report import page
from lm_eval_bias.report.numbers import NONE, number
from lm_eval_bias.report.page import Column
from lm_eval_bias.runs.run_data import Value

TITLE = "Bias leaderboard"
READING = (
    "One table a task. No number sums up bias, and nothing is ordered across benchmarks: they measure different "
    "things, and a model near one neutral value can be far from another.",
    "Values stand with their 95% intervals. Published scores are the papers' own, made by other code with other "
    "choices; they stand beside the runs and are not ranked, since no usable standard error was printed with them.",
    "A rank is an interval (Mogstad, Romano, Shaikh & Wilhelm 2024): all pairs are tested together (Holm), and all "
    f"intervals of a column hold the true ranks at once with {LEVEL:.0%} probability. Models whose intervals overlap "
    "are not ordered.",
    "Scores with a neutral value in the middle rank by distance from it, on either side; a neutral value is not a "
    "goal, and a model can be near it by knowing nothing.",
    "Runs on the same items are treated as independent, which makes the intervals of rank wider than need be; "
    "lm-eval-bias compare tests two runs on their common items.",
)


def uncertainty(cell: Cell, column: Value) -> str:
    """The interval or the printed ±; empty where there is none."""
    if cell.interval is not None:
        low, high = (number(end, column.unit) for end in cell.interval)
        return f"[{low},\u00a0{high}]"
    return "" if cell.plus_minus is None else f"±\u00a0{number(cell.plus_minus, column.unit)}"


def has_ranks(board: Board, column: Value) -> bool:
    """Whether any row has a rank by this score."""
    return any(row.cells[column.name].rank for row in board.rows)


def made_by(board: Board) -> list[str]:
    """The different conventions in the order of the rows; tables refer to them by number, from 1."""
    return list(dict.fromkeys(row.conventions for row in board.rows))


def meaning(column: Value) -> str:
    """How to read a score."""
    span = f"{catalog.format_number(column.low)} … {catalog.format_number(column.high)}"
    neutral = f", neutral {catalog.format_number(column.neutral)}" if column.neutral is not None else ""
    ranked = f"Ranked {rule(column)}." if rule(column) else "Not ranked: it has no neutral value."
    return f"{column.name}: {column.summary} ({span}{neutral}; {column.direction}). {ranked}"


def unranked(board: Board) -> list[str]:
    """Why rows have no rank: each reason with the rows and scores that it is about."""
    found: dict[str, dict[tuple[str, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    ranked = [column.name for column in board.columns if rule(column)]
    for row in board.rows:
        reasons: dict[str, list[str]] = defaultdict(list)
        for name in ranked:
            if row.cells[name].unranked and row.cells[name].unranked != NOT_PUBLISHED:
                reasons[row.cells[name].unranked].append(name)
        for reason, names in reasons.items():
            label = "published models" if row.kind == PUBLISHED else row.model
            if label not in found[reason][tuple(names)]:
                found[reason][tuple(names)].append(label)
    return [
        f"{', '.join(models)} ({'every score' if list(names) == ranked else ', '.join(names)}): {reason}"
        for reason, cases in found.items()
        for names, models in cases.items()
    ]


def remarks(board: Board) -> list[str]:
    """What is said of single rows."""
    return [f"{row.model}: {'; '.join(row.deviations)}" for row in board.rows if row.deviations]


def _headings(board: Board, columns: Sequence[Value]) -> list[Column]:
    found = [Column("Model")]
    for column in columns:
        found.append(Column(column.name, numeric=True))
        if has_ranks(board, column):
            found.append(Column(f"{column.name}: rank", numeric=True))
    return [*found, Column("Made by", numeric=True)]


def _line(board: Board, row: Row, columns: Sequence[Value], number_made_by: int) -> list[page.Cell]:
    found = [page.Cell(row.model, note=f"published: {row.source}" if row.kind == PUBLISHED else row.kind)]
    for column in columns:
        cell = row.cells[column.name]
        beside = uncertainty(cell, column) or ("derived" if cell.derived else "")
        found.append(page.Cell(cell.text, cell.value, beside))
        if has_ranks(board, column):
            rank = cell.rank  # sorted by its better end, then by its worse one
            key = None if rank is None else rank.low + rank.high / (rank.of + 1)
            found.append(page.Cell(NONE if rank is None else f"{rank} of {rank.of}", key))
    return [*found, page.Cell(f"({number_made_by})", number_made_by)]


def table(board: Board, columns: Sequence[Value], caption: str) -> page.Table:
    """Some of a board's scores as a table, each row with the number of its conventions.

    Published models without any of the scores are left out; a run without any stays, so that it isn't overlooked.
    """
    numbers = {said: i for i, said in enumerate(made_by(board), start=1)}
    names = [column.name for column in columns]
    chosen = [row for row in board.rows if row.kind != PUBLISHED or any(row.cells[n].text != NONE for n in names)]
    rows = [_line(board, row, columns, numbers[row.conventions]) for row in chosen]
    return page.Table(f"{board.task}: {caption}", _headings(board, columns), rows)


def tables(board: Board) -> list[page.Table]:
    """The board's main scores, and where there are some, the further ones that the papers print."""
    found = [table(board, board.columns, "main scores with 95% intervals")]
    if board.others:
        found.append(table(board, board.others, "further scores that the papers print, with 95% intervals"))
    return found
