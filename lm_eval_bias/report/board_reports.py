"""Boards, as ``lm-eval-bias leaderboard`` writes them: a table a task, a row a model, a column a score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from lm_eval_bias.boards.building import (
    NOT_PUBLISHED,
    PUBLISHED,
    RUN,
    Board,
    BoardRow,
    boards,
    rule,
)
from lm_eval_bias.boards.models import BoardModel
from lm_eval_bias.boards.rank_intervals import LEVEL
from lm_eval_bias.core.benchmark import without_language
from lm_eval_bias.core.errors import check_scores
from lm_eval_bias.core.numbers import (
    NONE,
    grouped,
    join_some,
)
from lm_eval_bias.core.page_parts import (
    Cell,
    Table,
    language_table,
    numeric,
)
from lm_eval_bias.core.run_data import Problem, Run, Value, readable
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.report import badges, board_pages, provenance_facts, templates
from lm_eval_bias.report.board_pages import (
    PageColumn,
    rank,
    reads,
    sort_key,
    text,
    uncertainty,
)
from lm_eval_bias.report.outputs import Output

TITLE = "Bias leaderboard"
CAPTION = "Primary scores with 95% intervals; columns with a neutral value sort by the distance from it"
PRINTED = "Scores that papers print"
NO_SUM = (
    "No number sums up bias, and no ranking spans several benchmarks: they measure different things, and a model near "
    "one neutral value can be far from another."
)
READING = (
    f"A row a model, and of its runs of a task the one with most items. {NO_SUM}",
    "Values have 95% intervals. “Differs from neutral” is said where the interval leaves the neutral value out, "
    "“unclear” where it includes it; a model at chance level says nothing about bias, however near to neutral.",
    "Ranks (after Mogstad, Romano, Shaikh & Wilhelm 2024): all pairs of models that were asked the same are tested "
    f"together (Holm, {LEVEL:.0%}). “1–3 of 10”: no model is shown to be better and seven are shown to be worse. "
    "Models whose answers say nothing of bias have no rank.",
    "Scores with a neutral value in the middle count by their distance from it, on either side; a neutral value is not "
    "a goal, and a model that knows nothing can be near it.",
    "Runs on the same items are told apart by the error of their difference, as lm-eval-bias compare tests it, where "
    "their answers are saved. Otherwise they are treated as independent, and the table says so.",
    "Published scores are the papers' own, computed by other code under other conditions; they are never ranked with "
    "the runs, because the papers print no usable standard errors.",
)
_COLUMNS = ("task", "benchmark", "language", "kind", "model", "source", "conventions", "deviations", "score", "value",
            "stderr", "interval_low", "interval_high", "printed_plus_minus", "n", "unit", "neutral", "range_low",
            "range_high", "note", "badge", "part", "rank_low", "rank_high", "ranked",
            "no_rank", "warning")  # fmt: skip
_OF_RANK = ("low", "high", "of")
_MANY = 20  # names that are listed


def listed(board: Board, columns: Sequence[Value]) -> list[BoardRow]:
    """List the rows of a table, runs first, sorted by the first score around a neutral value; runs without any stay."""
    lead = board.columns[0]
    for column in reversed(board.columns):
        if column.neutral is not None and column.higher_is_better is None:
            lead = column

    def place(row: BoardRow) -> tuple[bool, float]:
        key = sort_key(row, row.cells[lead.name])
        if math.isnan(key):
            key = math.inf
        elif lead.higher_is_better:
            key = -key
        return row.kind == PUBLISHED, key

    kept = []
    for row in board.rows:
        texts = {text(row.cells[column.name]) for column in columns}
        if row.kind == RUN or texts - {NONE}:
            kept.append(row)
    return sorted(kept, key=place)


def _meaning(column: Value) -> str:
    """Describe how to read a score."""
    name = "" if column.title == column.name else f" ({column.name})"
    ranked = f"Ranked {rule(column)}." if rule(column) else "Not ranked."
    return f"{column.title}{name}: {column.summary} ({reads(column)}). {ranked}"


def unranked(board: Board) -> list[str]:
    """Explain why rows have no rank: each reason with the rows that it is about."""
    reasons = []
    for row in board.rows:
        label = "published models" if row.kind == PUBLISHED else row.model
        for cell in row.cells.values():
            if cell.unranked not in ("", NOT_PUBLISHED):
                reasons.append((cell.unranked, label))
    return _listing(reasons)


def _listing(told: Iterable[tuple[str, str]]) -> list[str]:
    """List each text with the models that it is told of."""
    groups = grouped(told).items()
    return [f"{join_some(names, _MANY)}: {text}" for text, names in groups]


def notes(board: Board) -> dict[str, Sequence[str]]:
    """Collect the notes on a board, by heading."""
    made = []
    notes = []
    for row in board.rows:
        source = f" ({row.source})" if row.kind == PUBLISHED else ""
        made.append((f"{row.conventions}{source}", row.model))
        others = [text for text in row.deviations if text not in row.warning]
        said = joined(row.warning, *others)
        if said:
            notes.append(f"{row.model}: {said}")
    return {
        "Score": [_meaning(column) for column in board.columns],
        "Note": board.notes,
        "Single models": notes,
        "No rank": unranked(board),
        "Made by": _listing(made),
    }


def table(board: Board, columns: Sequence[Value], caption: str) -> Table:
    """Make a table of some of a board's scores with their ranks."""
    rows = []
    for row in listed(board, columns):
        about = row.warning or RUN
        if row.kind == PUBLISHED:
            about = f"published: {row.source}"
        cells = [Cell(row.model, note=about)]
        for column in columns:
            cell = row.cells[column.name]
            note = ", ".join(filter(None, (uncertainty(cell), rank(cell))))
            cells.append(Cell(text(cell), sort_key(row, cell), note))
        rows.append(cells)
    heads = numeric(*(column.title for column in columns))
    return Table(f"{board.task}: {caption}", ["Model", *heads], rows)


def language_tables(boards: Sequence[Board]) -> list[Table]:
    """Make papers' tables of models by language, from tasks that differ in it alone."""
    stems = []
    for board in boards:
        stem = without_language(board.task, board.language)
        if stem and board.definition.presentation.by_language:
            stems.append((stem, board))
    made = []
    for stem, members in grouped(stems).items():
        cells = {}
        wrong = []
        for board in members:
            for row in listed(board, board.columns):
                shown = {}
                if row.kind == PUBLISHED:
                    wrong += [(known, row.model) for known in row.deviations]
                for column in board.columns:
                    cell = row.cells[column.name]
                    key = sort_key(row, cell)
                    shown[column.name] = Cell(text(cell), key, uncertainty(cell))
                cells[row.model, board.language] = shown
        made.append(language_table(f"{stem} by language", cells, _listing(wrong)))
    return made


def origins(runs: Sequence[Run]) -> Table:
    """List where the runs come from."""
    fields = ("date", "lm-eval-bias", "lm_eval", "torch", "dtype", "device")
    rows = []
    for run in runs:
        found = provenance_facts.facts(run)
        facts = [readable(found[name]) for name in fields]
        rows.append([run.name, str(run.path), *facts])
    columns = ["Model", "File", *fields]
    return Table("Runs, with models and settings", columns, rows)


def _lines(boards: Sequence[Board]) -> Iterator[list[object]]:
    for board in boards:
        for row in board.rows:
            for cell in row.cells.values():
                yield [
                    board.task, board.definition.name, board.language, row.kind, row.model, row.source, row.conventions,
                    "; ".join(row.deviations), cell.name, cell.value, cell.stderr, *(cell.interval or ("", "")),
                    cell.plus_minus, cell.n or None, cell.unit, cell.neutral, cell.low, cell.high, cell.note,
                    board_pages.badge(row, cell), board_pages.part(row),
                    *(getattr(cell.rank, name, "") for name in _OF_RANK), cell.unranked, row.warning,
                ]  # fmt: skip


@dataclass(frozen=True)
class BoardReport(Output):
    """All models: as a page and as JSON a cell for each model and score; as ``csv`` a line for each of all scores.

    Attributes:
        models: The models, with their runs.
        problems: Files that were passed over.
        names: Scores that are shown; each task's primary ones if empty.
    """

    models: Sequence[BoardModel]
    problems: Sequence[Problem] = ()
    names: Sequence[str] = ()
    template = "leaderboard"

    def __post_init__(self) -> None:
        """Refuse scores that no board has.

        Raises:
            BadOption: There is one.
        """
        known = {c.name for b in self.boards for c in (*b.columns, *b.others)}
        check_scores(self.names, known)

    @cached_property
    def boards(self) -> list[Board]:
        """A board a task."""
        return boards(self.models)

    @cached_property
    def columns(self) -> list[PageColumn]:
        """The scores that are shown."""
        return board_pages.columns(self.boards, self.names)

    @property
    def runs(self) -> list[Run]:
        """All runs."""
        return [run for model in self.models for run in model.runs]

    def context(self) -> Mapping[str, object]:
        """Override."""
        models = {model.label: board_pages.about(model) for model in self.models}
        papers = board_pages.published_models(self.columns)
        made = board_pages.table(CAPTION, models, self.columns, RUN)
        named = [
            replace(problem, path=Path(problem.path.name)) for problem in self.problems
        ]
        return {
            "title": TITLE,
            "no_sum": NO_SUM,
            "date": max((model.date for model in self.models), default=""),
            "reading": READING,
            "skipped": list(dict.fromkeys(map(str, named))),
            "origins": origins(self.runs),
            "columns": self.columns,
            "models": made,
            "overview": board_pages.by_benchmark(made, bool(self.names)),
            "published": board_pages.table(PRINTED, papers, self.columns, PUBLISHED),
            "data": lambda: templates.json_block(self.data()),
            "notes": notes,
            "board_table": table,
            "language_tables": language_tables,
            "boards": self.boards,
        }

    def table(self) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
        """Override."""
        return _COLUMNS, _lines(self.boards)

    def data(self) -> Mapping[str, object]:
        """Override: what the page shows."""
        return {
            "reading": READING,
            "problems": [problem.as_data() for problem in self.problems],
            "empty": badges.EMPTY,
            "models": list(map(board_pages.model_data, self.models)),
            "scores": list(map(board_pages.score_data, self.columns)),
        }
