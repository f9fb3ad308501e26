"""Boards, in each format of ``lm-eval-bias leaderboard``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lm_eval_bias.boards.building import Board, RankedScore, rule
from lm_eval_bias.core.run_data import Problem, Run, Value
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.report import board_pages, captions, tables, templates

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


def _cell_data(cell: RankedScore, column: Value) -> Mapping[str, object]:
    return {
        "value": finite(cell.value),
        "text": captions.text(cell, column),
        "stderr": finite(cell.stderr),
        "interval": list(cell.interval) if cell.interval else None,
        "printed_plus_minus": cell.plus_minus,
        "note": cell.note,
        "rank": {"low": cell.rank.low, "high": cell.rank.high, "of": cell.rank.of} if cell.rank else None,
        "no_rank": cell.unranked,
    }


def _board_data(board: Board) -> Mapping[str, object]:
    columns = {column.name: column for column in [*board.columns, *board.others]}
    return {
        "task": board.task,
        "benchmark": board.benchmark,
        "language": board.language,
        "measures": board.measures,
        "notes": list(board.notes),
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
            for column in columns.values()
        ],
        "rows": [
            {
                "model": row.model,
                "kind": row.kind,
                "source": row.source,
                "conventions": row.conventions,
                "deviations": list(row.deviations),
                "caveat": row.caveat,
                "scores": {name: _cell_data(cell, columns[name]) for name, cell in row.cells.items()},
            }
            for row in board.rows
        ],
    }


def render(form: str, boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """The boards of some runs.

    Args:
        form: ``html``, one page with one table that can be searched, filtered and sorted; ``md``, a section per task;
            ``latex``, a table environment per task; ``csv``, a line per model and score; or ``json``, everything.
        boards: The boards.
        runs: The runs.
        problems: Files that were passed over.
    """
    if form == "csv":
        return tables.csv_text(_COLUMNS, _lines(boards))
    if form == "json":
        data = {
            "reading": list(captions.READING),
            "problems": [{"path": str(problem.path), "reason": problem.reason} for problem in problems],
            "boards": [_board_data(board) for board in boards],
        }
        return tables.json_text(data, indent=1)
    if form == "html":
        return templates.render(
            "leaderboard.html.j2",
            ("board.css", "board.js"),
            title=captions.TITLE,
            board=board_pages.board_table(boards, board_pages.run_ids(runs)),
            captions=captions,
            pages=board_pages,
            boards=boards,
            runs=runs,
            problems=problems,
        )
    return templates.render(
        f"leaderboard.{templates.ENDINGS[form]}.j2",
        title=captions.TITLE,
        reading=captions.READING,
        captions=captions,
        boards=boards,
        runs=runs,
        problems=problems,
        # figures are our own: intervals keep their brackets, which would be escaped
        figure=lambda text: text.replace("<", "&lt;"),
    )
