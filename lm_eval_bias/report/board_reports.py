"""Boards, in each format of ``lm-eval-bias leaderboard``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lm_eval_bias.analysis.boards import Board, Cell, rule
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.report import captions, tables, templates
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import Problem, Run, Value

_COLUMNS = ("task", "benchmark", "language", "kind", "model", "source", "conventions", "deviations", "score", "value",
            "stderr", "interval_low", "interval_high", "printed_plus_minus", "note", "rank_low", "rank_high", "ranked",
            "no_rank")  # fmt: skip


def _document(template: str, boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    return templates.render(
        template,
        title=captions.TITLE,
        reading=captions.READING,
        captions=captions,
        boards=boards,
        runs=printable_runs.runs(runs),
        problems=[printable_runs.one_line(problem) for problem in problems],
        # figures are our own: intervals keep their brackets, which would be escaped
        figure=lambda text: text.replace("<", "&lt;"),
    )


def as_html(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """One self-contained page with a sortable table per task."""
    return _document("leaderboard.html.j2", boards, runs, problems)


def as_markdown(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """A document with a section per task."""
    return _document("leaderboard.md.j2", boards, runs, problems)


def as_latex(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """One table environment a task, with its notes below; how to read them is in comments."""
    return _document("leaderboard.tex.j2", boards, runs, problems)


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
                ]  # fmt: skip


def as_csv(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """One line per model and score; an empty field is what isn't known."""
    return tables.csv_text(_COLUMNS, _lines(boards))


def _cell_data(cell: Cell, column: Value) -> Mapping[str, object]:
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
                "scores": {name: _cell_data(cell, columns[name]) for name, cell in row.cells.items()},
            }
            for row in board.rows
        ],
    }


def as_json(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """Everything, for other programs."""
    data = {
        "reading": list(captions.READING),
        "problems": [{"path": str(problem.path), "reason": problem.reason} for problem in problems],
        "boards": [_board_data(board) for board in boards],
    }
    return tables.json_text(data, indent=1)


WRITERS = {"html": as_html, "md": as_markdown, "csv": as_csv, "json": as_json, "latex": as_latex}
