"""The leaderboard as one page: a table of all models and main scores, and what the page's filters go by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from lm_eval_bias.boards.building import PUBLISHED, RUN, Board, BoardRow
from lm_eval_bias.boards.rank_intervals import Rank
from lm_eval_bias.core import registry
from lm_eval_bias.core.numbers import NONE
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.core.run_data import Run
from lm_eval_bias.core.score_cells import named
from lm_eval_bias.core.wording import shortened_apart
from lm_eval_bias.report import captions

READING = (
    "An empty cell: the model wasn’t run on the task, or its paper doesn’t print the score. A dash: no value, or no "
    "rank.",
    "Ranks compare only runs that were made in the same way: “1 of 3” is the first of three such runs.",
    "The bar beside a rank spans the interval from its best to its worst possible rank, on a line from first to last.",
    "The number in “made by” says how the scores were made; the list below the table explains it for each task.",
    "Papers use one name for several checkpoints: a published row may be about different weights in each task.",
)
OTHER_FAMILY = "other"
_BAR, _LEAST = 72, 2  # pixels: the line from first to last, and a rank that is settled


@dataclass(frozen=True)
class BoardColumn:
    """A column of a task's part of the table.

    Attributes:
        kind: ``made`` (conventions), ``value`` or ``rank``.
        label: Its heading.
        name: The score's technical name, where the heading isn't that.
        full: Task and score, which tells the column from all others.
    """

    kind: str
    label: str
    name: str = ""
    full: str = ""


@dataclass(frozen=True)
class BoardCell(Cell):
    """A cell of the table; its link is the id of what it refers to.

    Attributes:
        label: What stands before it on paper, where rows are lists.
        bar: The rank interval, drawn; empty where there is none.
    """

    label: str = ""
    bar: Markup = Markup()

    @property
    def key(self) -> str:
        """The sorting key, without the digits that nothing is told apart by."""
        return f"{float(key):.9g}" if (key := super().key) else ""


@dataclass(frozen=True)
class TaskColumns:
    """A task's part of the table.

    Attributes:
        task: Its name.
        anchor: Id of its section.
        benchmark: Title of its benchmark family.
        language: ISO 639-1 code.
        columns: How its scores were made, then its main scores and their ranks.
    """

    task: str
    anchor: str
    benchmark: str
    language: str
    columns: Sequence[BoardColumn]


@dataclass(frozen=True)
class ModelRow:
    """A model's row.

    Attributes:
        model: Its name.
        short: As it is shown; the name itself where that isn't long.
        kind: Run or published.
        family: What the filter by family goes by.
        link: Id of where it comes from.
        cells: Per task one cell for each of its columns; ``None`` where the model isn't on the task's board.
    """

    model: str
    short: str
    kind: str
    family: str
    link: str
    cells: Sequence[Sequence[BoardCell] | None]


@dataclass(frozen=True)
class BoardTable:
    """The table of all boards.

    Attributes:
        tasks: Its parts.
        rows: Runs, then published models, each by name: no order of merit.
    """

    tasks: Sequence[TaskColumns]
    rows: Sequence[ModelRow]

    @property
    def benchmarks(self) -> list[str]:
        """What the filter by benchmark offers."""
        return list(dict.fromkeys(task.benchmark for task in self.tasks))

    @property
    def languages(self) -> list[str]:
        """What the filter by language offers."""
        return sorted({task.language for task in self.tasks})

    @property
    def families(self) -> list[str]:
        """What the filter by family offers."""
        return sorted({row.family for row in self.rows})


def family(model: str) -> str:
    """A model's family: the first word of its name, without organisation, version and size.

    >>> family("meta-llama/Llama-3.1-8B-Instruct"), family("gpt2-xl"), family("SmolLM2-135M"), family("7B")
    ('llama', 'gpt', 'smollm', 'other')
    """
    name = model.split(" ")[0].rpartition("/")[2]
    word = re.match(r"[^\W\d_]+", name)
    return word[0].casefold() if word else OTHER_FAMILY


def made_by(board: Board, number: int) -> str:
    """The id of one of a board's conventions, counted from 1."""
    return f"{captions.anchor(board)}-made-{number}"


def _bar(rank: Rank | None) -> Markup:
    """A rank interval on a line from first to last, in the size of board.css; its text stands beside it."""
    if rank is None:
        return Markup()
    left = min(_BAR * (rank.low - 1) // rank.of, _BAR - _LEAST)
    right = max(-(-_BAR * rank.high // rank.of), left + _LEAST)
    return Markup(f'<svg class="bar" aria-hidden="true"><path d="M{left} 0H{right}V8H{left}z"/></svg>')  # noqa: S704


def _ranked(board: Board) -> list[str]:
    """Names of the main scores that anything is ranked by."""
    return [column.name for column in board.columns if any(row.cells[column.name].rank for row in board.rows)]


def _task_columns(board: Board) -> TaskColumns:
    columns = [BoardColumn("made", "Made by", full=f"{board.task}: made by")]
    ranked = _ranked(board)
    for score in board.columns:
        label, name = named(board.benchmark, score.name)
        columns.append(BoardColumn("value", label, name, f"{board.task}: {label}"))
        if score.name in ranked:
            columns.append(BoardColumn("rank", "Rank", full=f"{board.task}: rank by {label}"))
    known = registry.family(board.benchmark)
    title = (known.title or known.name) if known else board.benchmark
    return TaskColumns(board.task, captions.anchor(board), title, board.language, columns)


def _cells(board: Board, row: BoardRow) -> list[BoardCell]:
    number = captions.conventions(board).index(row.conventions) + 1
    source = f"published: {row.source}" if row.kind == PUBLISHED else row.caveat
    cells = [BoardCell(f"({number})", number, source, made_by(board, number), board.task)]
    ranked = _ranked(board)
    for score in board.columns:
        cell = row.cells[score.name]
        value, *rank = captions.score_cells(cell, score, score.name in ranked)
        cells.append(BoardCell(value.text, value.value, value.note, label=named(board.benchmark, score.name)[0]))
        cells += [BoardCell(own.text, own.value, bar=_bar(cell.rank)) for own in rank]
    return cells


def board_table(boards: Sequence[Board], sources: Mapping[tuple[str, str], str], limit: int = 40) -> BoardTable:
    """All boards in one table: a row per model, kind and, where a board has several of these, occurrence.

    Args:
        boards: The boards.
        sources: Ids of where runs come from, by task and row name.
        limit: Longest name that is shown whole; of names that would look alike more is shown.
    """
    rows: dict[tuple[bool, str, str, int], dict[int, BoardRow]] = {}
    for place, board in enumerate(boards):
        occurrences: Counter[tuple[str, str]] = Counter()
        for row in board.rows:
            # a run's row is shown without any score, so that it isn't overlooked
            if row.kind != PUBLISHED or any(captions.text(row.cells[one.name], one) != NONE for one in board.columns):
                occurrences[row.kind, row.model] += 1
                key = (row.kind == PUBLISHED, row.model.casefold(), row.model, occurrences[row.kind, row.model])
                rows.setdefault(key, {})[place] = row
    shorts = shortened_apart((model for _, _, model, _ in rows), limit)
    models = []
    for (is_published, _, model, _), by_place in sorted(rows.items()):
        place, first = next(iter(by_place.items()))
        number = captions.conventions(boards[place]).index(first.conventions) + 1
        link = made_by(boards[place], number) if is_published else sources[boards[place].task, model]
        cells = [_cells(board, by_place[i]) if i in by_place else None for i, board in enumerate(boards)]
        kind = PUBLISHED if is_published else RUN
        models.append(ModelRow(model, shorts[model], kind, family(model), link, cells))
    return BoardTable([_task_columns(board) for board in boards], models)


def meanings(board: Board) -> list[str]:
    """How to read a board's main scores, each with its technical name."""
    return [captions.meaning(column, both_names(board.benchmark, column.name)) for column in board.columns]


def both_names(benchmark: str, score: str) -> str:
    """What people call a score, with its technical name where that differs."""
    label, name = named(benchmark, score)
    return f"{label} ({name})" if name else label


def further(board: Board) -> Table | None:
    """Further scores that the papers print; ``None`` where there are none."""
    if not board.others:
        return None
    table = captions.tables(board)[1]
    names = [column.name for column in board.others]
    columns = [
        Column(both_names(board.benchmark, column.label) if column.label in names else column.label, column.numeric)
        for column in table.columns
    ]
    return replace(table, columns=columns)


def run_ids(runs: Sequence[Run]) -> dict[tuple[str, str], str]:
    """Ids of runs in the page, by task and the name that their rows have."""
    return {
        (task.base, f"{run.name} {task.remark}".strip()): f"run-{number}"
        for number, run in enumerate(runs, start=1)
        for task in run.tasks.values()
    }
