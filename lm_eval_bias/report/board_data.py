"""Boards as CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import Any

from lm_eval_bias.analysis.boards import Board, Cell, rule
from lm_eval_bias.report.captions import READING
from lm_eval_bias.report.exports import guarded
from lm_eval_bias.runs.run_data import Problem, Run, Value

_CSV = ("task", "benchmark", "language", "kind", "model", "source", "conventions", "deviations", "score", "value",
        "stderr", "interval_low", "interval_high", "printed_plus_minus", "note", "rank_low", "rank_high", "ranked",
        "no_rank")  # fmt: skip


def _figure(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else repr(value)


def as_csv(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """One line per model and score; an empty field is what isn't known."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV)
    for board in boards:
        for row in board.rows:
            words = (board.task, board.benchmark, board.language, row.kind, row.model, row.source, row.conventions,
                     "; ".join(row.deviations))  # fmt: skip
            for column in [*board.columns, *board.others]:
                cell = row.cells[column.name]
                low, high = cell.interval or (None, None)
                rank = (cell.rank.low, cell.rank.high, cell.rank.of) if cell.rank else ("", "", "")
                figures = [_figure(v) for v in (cell.value, cell.stderr, low, high, cell.plus_minus)]
                writer.writerow(
                    [*map(guarded, words), column.name, *figures, guarded(cell.note), *rank,
                     guarded(cell.unranked)]
                )  # fmt: skip
    return out.getvalue()


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _cell_data(cell: Cell) -> dict[str, Any]:
    return {
        "value": _finite(cell.value),
        "text": cell.text,
        "stderr": _finite(cell.stderr),
        "interval": list(cell.interval) if cell.interval else None,
        "printed_plus_minus": cell.plus_minus,
        "note": cell.note,
        "rank": {"low": cell.rank.low, "high": cell.rank.high, "of": cell.rank.of} if cell.rank else None,
        "no_rank": cell.unranked,
    }


def _score_data(board: Board, column: Value, main: bool) -> dict[str, Any]:
    return {
        "name": column.name,
        "main": main,
        "summary": column.summary,
        "range": [_finite(column.low), _finite(column.high)],
        "neutral": column.neutral,
        "direction": column.direction,
        "unit": column.unit,
        "ranked": rule(column) if main else "",
    }


def _board_data(board: Board) -> dict[str, Any]:
    return {
        "task": board.task,
        "benchmark": board.benchmark,
        "language": board.language,
        "measures": board.measures,
        "notes": list(board.notes),
        "scores": [
            *(_score_data(board, column, True) for column in board.columns),
            *(_score_data(board, column, False) for column in board.others),
        ],
        "rows": [
            {
                "model": row.model,
                "kind": row.kind,
                "source": row.source,
                "conventions": row.conventions,
                "deviations": list(row.deviations),
                "scores": {name: _cell_data(cell) for name, cell in row.cells.items()},
            }
            for row in board.rows
        ],
    }


def as_json(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """Everything, for other programs."""
    data = {
        "reading": list(READING),
        "problems": [{"path": str(problem.path), "reason": problem.reason} for problem in problems],
        "boards": [_board_data(board) for board in boards],
    }
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
