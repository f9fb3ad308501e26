"""What a board says: its cells, how its scores are read and ranked, and what has to be said of its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lm_eval_bias.boards.building import NOT_PUBLISHED, PUBLISHED, Board, RankedScore, rule
from lm_eval_bias.boards.rank_intervals import LEVEL, Rank
from lm_eval_bias.core.numbers import NONE, bound, number, score_range
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.core.run_data import Run, Value, readable

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


def text(cell: RankedScore, column: Value) -> str:
    """The value with the paper's digits, or as many as its unit bears."""
    return cell.printed or number(cell.value, column.unit)


def anchor(board: Board) -> str:
    """The id of a board's section in a page."""
    return "task-" + "".join(c if c.isalnum() else "-" for c in board.task)


def uncertainty(cell: RankedScore, column: Value) -> str:
    """The interval or the printed ±; empty where there is none."""
    if cell.interval is not None:
        low, high = (number(end, column.unit) for end in cell.interval)
        return f"[{low},\u00a0{high}]"
    return "" if cell.plus_minus is None else f"±\u00a0{number(cell.plus_minus, column.unit)}"


def conventions(board: Board) -> list[str]:
    """The different conventions in the order of the rows; tables refer to them by number, from 1."""
    return list(dict.fromkeys(row.conventions for row in board.rows))


def meaning(column: Value, label: str = "") -> str:
    """How to read a score, named by its label or else by its technical name."""
    span = score_range(column, " … ")
    neutral = f", neutral {bound(column.neutral)}" if column.neutral is not None else ""
    ranked = f"Ranked {rule(column)}." if rule(column) else "Not ranked, because it has no neutral value."
    return f"{label or column.name}: {column.summary} ({span}{neutral}; {column.direction}). {ranked}"


def unranked(board: Board) -> list[str]:
    """Why rows have no rank: each reason with the rows and scores that it is about."""
    labels: dict[str, dict[tuple[str, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    ranked = [column.name for column in board.columns if rule(column)]
    for row in board.rows:
        reasons: dict[str, list[str]] = defaultdict(list)
        for name in ranked:
            if row.cells[name].unranked and row.cells[name].unranked != NOT_PUBLISHED:
                reasons[row.cells[name].unranked].append(name)
        for reason, names in reasons.items():
            label = "published models" if row.kind == PUBLISHED else row.model
            if label not in labels[reason][tuple(names)]:
                labels[reason][tuple(names)].append(label)
    return [
        f"{', '.join(models)} ({'every score' if list(names) == ranked else ', '.join(names)}): {reason}"
        for reason, cases in labels.items()
        for names, models in cases.items()
    ]


def remarks(board: Board) -> list[str]:
    """What is said of single rows."""
    return [f"{row.model}: {'; '.join(row.deviations)}" for row in board.rows if row.deviations]


def below(board: Board) -> list[str]:
    """What stands below a board's tables."""
    return [
        *map(meaning, board.columns),
        *board.notes,
        *remarks(board),
        *(f"No rank: {line}" for line in unranked(board)),
    ]


def _rank(rank: Rank | None) -> Cell:
    if rank is None:
        return Cell(NONE)
    # sorted by its better end, then by its worse one
    return Cell(f"{rank} of {rank.of}", rank.low + rank.high / (rank.of + 1))


def score_cells(cell: RankedScore, column: Value, is_ranked: bool) -> list[Cell]:
    """A score's value with its interval, and its rank where the column has ranks."""
    beside = uncertainty(cell, column) or ("derived" if cell.derived else "")
    value = Cell(text(cell, column), cell.value, beside)
    return [value, _rank(cell.rank)] if is_ranked else [value]


def _table(board: Board, columns: Sequence[Value], caption: str) -> Table:
    """Some of a board's scores as a table, each row with the number of its conventions.

    Published models without any of the scores are left out; a run without any stays, so that it isn't overlooked.
    """
    numbers = {line: i for i, line in enumerate(conventions(board), start=1)}
    ranked = {column.name for column in columns if any(row.cells[column.name].rank for row in board.rows)}
    headings = [Column("Model")]
    for column in columns:
        headings += [
            Column(name, True) for name in (column.name, f"{column.name}: rank")[: 1 + (column.name in ranked)]
        ]
    rows = []
    for row in board.rows:
        if row.kind != PUBLISHED or any(text(row.cells[column.name], column) != NONE for column in columns):
            note = f"published: {row.source}" if row.kind == PUBLISHED else row.caveat or row.kind
            scores = [score_cells(row.cells[column.name], column, column.name in ranked) for column in columns]
            made = Cell(f"({numbers[row.conventions]})", numbers[row.conventions])
            rows.append([Cell(row.model, note=note), *(cell for cells in scores for cell in cells), made])
    return Table(f"{board.task}: {caption}", [*headings, Column("Made by", True)], rows)


def tables(board: Board) -> list[Table]:
    """The board's main scores, and where there are some, the further ones that the papers print."""
    parts = [_table(board, board.columns, "main scores with 95% intervals")]
    if board.others:
        parts.append(_table(board, board.others, "further scores that the papers print, with 95% intervals"))
    return parts


def origins(runs: Sequence[Run]) -> Table:
    """Where the runs come from."""
    fields = ("date", "lm-eval-bias", "lm_eval", "torch", "dtype", "device")
    rows = [
        [Cell(run.name), Cell(str(run.path))] + [Cell(readable(run.provenance.get(name))) for name in fields]
        for run in runs
    ]
    return Table("Runs, with models and settings", [Column(name) for name in ("Model", "File", *fields)], rows)
