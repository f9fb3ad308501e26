"""Boards as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lm_eval_bias.leaderboard import words
from lm_eval_bias.leaderboard.table import PUBLISHED, Board, Row
from lm_eval_bias.leaderboard.text import clean
from lm_eval_bias.report import page
from lm_eval_bias.runs.model import Problem, Run, Value


@dataclass(frozen=True)
class Section:
    """A task's part of the page.

    Attributes:
        id: Its anchor.
        board: The board.
        table: Its main scores.
        others: Further scores that the papers print; ``None`` where there are none.
        conventions: In the order of their numbers.
        meanings: How each score is read.
        remarks: What is said of single rows.
        unranked: Why rows have no rank.
    """

    id: str
    board: Board
    table: page.Table
    others: page.Table | None
    conventions: Sequence[str]
    meanings: Sequence[str]
    remarks: Sequence[str]
    unranked: Sequence[str]


def _cells(board: Board, row: Row, columns: Sequence[Value], numbers: dict[str, str]) -> list[page.Cell]:
    kind = "published" if row.kind == PUBLISHED else "run"
    made_by = numbers[row.conventions]
    found = [page.Cell(row.model), page.Cell(kind, note=row.source), page.Cell(made_by, float(made_by))]
    for column in columns:
        cell = row.cells[column.name]
        note = words.interval(cell, column)
        derived = "derived" if words.is_derived(cell) else ""
        found.append(page.Cell(cell.text, cell.value, note or derived))
        if words.has_ranks(board, column):
            rank = cell.rank
            found.append(page.Cell(words.rank_of(cell) or "–", None if rank is None else rank.low + rank.high / 1e6))
    return found


def _table(board: Board, columns: Sequence[Value], caption: str) -> page.Table:
    _, numbers = words.numbered(board)
    headings = [page.Column("Model"), page.Column("Source"), page.Column("Made by", numeric=True)]
    for column in columns:
        headings.append(page.Column(column.name, numeric=True))
        if words.has_ranks(board, column):
            headings.append(page.Column(f"{column.name}: rank", numeric=True))
    return page.Table(caption, headings, [_cells(board, row, columns, numbers) for row in board.rows])


def _section(board: Board) -> Section:
    others = None
    if board.others:
        others = _table(board, board.others, f"{board.task}: further scores that the papers print, with 95% intervals")
    return Section(
        id="task-" + "".join(c if c.isalnum() else "-" for c in board.task),
        board=board,
        table=_table(board, board.columns, f"{board.task}: main scores with 95% intervals"),
        others=others,
        conventions=words.numbered(board)[0],
        meanings=[words.meaning(column) for column in board.columns],
        remarks=words.remarks(board),
        unranked=words.unranked(board),
    )


def _runs(runs: Sequence[Run]) -> page.Table:
    """Where the runs come from."""
    fields = ("date", "lm-eval-bias", "lm_eval", "torch", "dtype", "device")
    headings = [page.Column("Model"), page.Column("File"), *(page.Column(name) for name in fields)]
    rows = [
        [page.Cell(clean(run.name)), page.Cell(clean(str(run.path)))]
        + [page.Cell(clean(str(run.provenance.get(name) or "–"))) for name in fields]
        for run in runs
    ]
    return page.Table("Runs and what they were made with", headings, rows)


def as_html(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """One self-contained page with a sortable table per task."""
    return page.render(
        "leaderboard.html.j2",
        title=words.TITLE,
        reading=words.READING,
        sections=[_section(board) for board in boards],
        runs=_runs(runs),
        commands=[(clean(run.name), run.command) for run in runs],
        problems=[clean(str(problem)) for problem in problems],
    )
