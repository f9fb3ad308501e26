"""Boards as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lm_eval_bias.leaderboard import words
from lm_eval_bias.leaderboard.table import Board
from lm_eval_bias.report import page, tidy
from lm_eval_bias.runs.model import Problem, Run


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


def _section(board: Board) -> Section:
    made = words.tables(board)
    return Section(
        id="task-" + "".join(c if c.isalnum() else "-" for c in board.task),
        board=board,
        table=made[0],
        others=made[1] if len(made) > 1 else None,
        conventions=words.made_by(board),
        meanings=[words.meaning(column) for column in board.columns],
        remarks=words.remarks(board),
        unranked=words.unranked(board),
    )


def _runs(runs: Sequence[Run]) -> page.Table:
    """Where the runs come from."""
    fields = ("date", "lm-eval-bias", "lm_eval", "torch", "dtype", "device")
    headings = [page.Column("Model"), page.Column("File"), *(page.Column(name) for name in fields)]
    rows = [
        [page.Cell(run.name), page.Cell(tidy.one_line(run.path))]
        + [page.Cell(tidy.shown(run.provenance.get(name))) for name in fields]
        for run in tidy.runs(runs)
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
        commands=[(run.name, run.command) for run in tidy.runs(runs)],
        problems=[tidy.one_line(problem) for problem in problems],
    )
