"""Boards as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lm_eval_bias.analysis.boards import Board
from lm_eval_bias.report import captions, page, printable_runs
from lm_eval_bias.runs.run_data import Problem, Run


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
    made = captions.tables(board)
    return Section(
        id="task-" + "".join(c if c.isalnum() else "-" for c in board.task),
        board=board,
        table=made[0],
        others=made[1] if len(made) > 1 else None,
        conventions=captions.made_by(board),
        meanings=[captions.meaning(column) for column in board.columns],
        remarks=captions.remarks(board),
        unranked=captions.unranked(board),
    )


def _runs(runs: Sequence[Run]) -> page.Table:
    """Where the runs come from."""
    fields = ("date", "lm-eval-bias", "lm_eval", "torch", "dtype", "device")
    headings = [page.Column("Model"), page.Column("File"), *(page.Column(name) for name in fields)]
    rows = [
        [page.Cell(run.name), page.Cell(printable_runs.one_line(run.path))]
        + [page.Cell(printable_runs.shown(run.provenance.get(name))) for name in fields]
        for run in printable_runs.runs(runs)
    ]
    return page.Table("Runs and what they were made with", headings, rows)


def as_html(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """One self-contained page with a sortable table per task."""
    return page.render(
        "leaderboard.html.j2",
        title=captions.TITLE,
        reading=captions.READING,
        sections=[_section(board) for board in boards],
        runs=_runs(runs),
        commands=[(run.name, run.command) for run in printable_runs.runs(runs)],
        problems=[printable_runs.one_line(problem) for problem in problems],
    )
