"""Boards, in each format of ``lm-eval-bias leaderboard``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lm_eval_bias.boards.building import Board, BoardRow, rule
from lm_eval_bias.core.run_data import Problem, Run, Value
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.report import board_pages, tables, templates

_COLUMNS = ("task", "benchmark", "language", "kind", "model", "source", "conventions", "deviations", "score", "value",
            "stderr", "interval_low", "interval_high", "printed_plus_minus", "note", "rank_low", "rank_high", "ranked",
            "no_rank", "caveat")  # fmt: skip


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
        "text": board_pages.text(row, column),
        "stderr": finite(cell.stderr),
        "interval": list(cell.interval) if cell.interval else None,
        "printed_plus_minus": cell.plus_minus,
        "note": cell.note,
        "rank": {"low": cell.rank.low, "high": cell.rank.high, "of": cell.rank.of} if cell.rank else None,
        "no_rank": cell.unranked,
    }


def _board_data(board: Board) -> Mapping[str, object]:
    columns = [*board.columns, *board.others]
    return {
        **{name: getattr(board, name) for name in ("task", "benchmark", "language", "measures", "notes")},
        "scores": [
            {
                "name": column.name,
                "main": column in board.columns,
                "summary": column.summary,
                "range": [finite(column.low), finite(column.high)],
                "neutral": column.neutral,
                "direction": column.direction,
                "unit": column.unit,
                "ranked": rule(column) if column in board.columns else "",
            }
            for column in columns
        ],
        "rows": [
            {name: getattr(row, name) for name in ("model", "kind", "source", "conventions", "deviations", "caveat")}
            | {"scores": {column.name: _cell_data(row, column) for column in columns}}
            for row in board.rows
        ],
    }


def render(form: str, boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """The boards of some runs.

    Args:
        form: ``html``, one page with a tab per benchmark; ``md``, a section per task; ``latex``, a table per task;
            ``csv``, a line per model and score; or ``json``, everything.
        boards: The boards.
        runs: The runs.
        problems: Files that were passed over.
    """
    if form == "csv":
        return tables.csv_text(_COLUMNS, _lines(boards))
    if form == "json":
        data = {
            "reading": list(board_pages.READING),
            "problems": [{"path": str(problem.path), "reason": problem.reason} for problem in problems],
            "boards": [_board_data(board) for board in boards],
        }
        return tables.json_text(data, indent=1)
    return templates.render(
        f"leaderboard.{templates.ENDINGS[form]}.j2",
        tabs=board_pages.tabs(boards) if form == "html" else (),
        further=("board.css", "board.js"),
        pages=board_pages,
        boards=boards,
        runs=runs,
        problems=problems,
        # figures are our own: intervals keep their brackets, which would be escaped
        figure=lambda text: text.replace("<", "&lt;"),
    )
