"""What a board says: its cells, how its scores are read and ranked, and what has to be said of its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from lm_eval_bias import catalog
from lm_eval_bias.leaderboard.ranks import LEVEL
from lm_eval_bias.leaderboard.table import PUBLISHED, RUN, Board, Cell, Row, number, rule
from lm_eval_bias.runs.model import Value

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


def interval(cell: Cell, column: Value) -> str:
    """The interval or the printed ± in words; empty where there is none."""
    if cell.interval is not None:
        return f"[{number(cell.interval[0], column.unit)}, {number(cell.interval[1], column.unit)}]"
    return "" if cell.plus_minus is None else f"± {number(cell.plus_minus, column.unit)}"


def is_derived(cell: Cell) -> bool:
    """Whether a published score isn't printed itself but follows from what is."""
    return cell.note.startswith("from the printed")


def shown(cell: Cell, column: Value) -> str:
    """A value with its uncertainty; a derived one marked."""
    derived = " (derived)" if is_derived(cell) else ""
    return " ".join(filter(None, (cell.text, interval(cell, column)))) + derived


def has_ranks(board: Board, column: Value) -> bool:
    """Whether any row has a rank by this score."""
    return any(row.cells[column.name].rank for row in board.rows)


def rank_of(cell: Cell) -> str:
    """``2-4 of 5``; empty without a rank."""
    return f"{cell.rank} of {cell.rank.of}" if cell.rank else ""


def numbered(board: Board) -> tuple[list[str], dict[str, str]]:
    """The different conventions in the order of the rows, and each one's number."""
    different = list(dict.fromkeys(row.conventions for row in board.rows))
    return different, {said: str(i) for i, said in enumerate(different, start=1)}


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
            if row.cells[name].unranked:
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


def headings(board: Board, columns: Sequence[Value]) -> list[str]:
    """A plain table's headings: three of words, then those of :func:`figures`."""
    found = ["Model", "Source", "Made by"]
    for column in columns:
        found += [column.name, "rank"] if has_ranks(board, column) else [column.name]
    return found


def labels(row: Row, numbers: Mapping[str, str]) -> list[str]:
    """A plain table's words about a row: model, source and the number of its conventions."""
    source = row.source if row.kind == RUN else f"published: {row.source}"
    return [row.model, source, numbers[row.conventions]]


def figures(board: Board, row: Row, columns: Sequence[Value]) -> list[str]:
    """A plain table's values and ranks of a row."""
    found = []
    for column in columns:
        cell = row.cells[column.name]
        found += [shown(cell, column), rank_of(cell)] if has_ranks(board, column) else [shown(cell, column)]
    return found
