"""The leaderboard as one page: a tab a benchmark, with a row a model and a column for each main score of each task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lm_eval_bias.boards.building import PUBLISHED, Board, BoardRow
from lm_eval_bias.boards.rank_intervals import Rank
from lm_eval_bias.core import registry
from lm_eval_bias.core.numbers import NONE
from lm_eval_bias.core.page_parts import Cell
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.core.score_cells import score_label
from lm_eval_bias.report import captions

FIRST = 6  # tasks that have a column at first


@dataclass(frozen=True)
class BoardCell(Cell):
    """A model's score, whose ``value`` is what it is sorted by; without text where the model isn't on the board.

    Attributes:
        label: Task and score.
        rank: Its interval of rank.
    """

    label: str = ""
    rank: Rank | None = None


@dataclass(frozen=True)
class ModelRow:
    """A model in a tab.

    Attributes:
        model: Its name.
        papers: Those that print its scores; empty for runs.
        warnings: What its name isn't shown without.
        cells: One per column.
    """

    model: str
    papers: str
    warnings: str
    cells: Sequence[BoardCell]


@dataclass(frozen=True)
class BoardTab:
    """A benchmark's tab.

    Attributes:
        ident: For links.
        title: The benchmark's name.
        boards: Its tasks.
        rows: Runs, then published models, in the order of the first column that is shown.
    """

    ident: str
    title: str
    boards: Sequence[Board]
    rows: Sequence[ModelRow]

    @property
    def columns(self) -> list[tuple[Board, Value, bool]]:
        """The main scores with their tasks, and whether they are shown at first."""
        firsts = [captions.leading(board) for board in self.boards[:FIRST]]
        return [(board, one, any(one is first for first in firsts)) for board in self.boards for one in board.columns]


def _cell(board: Board, row: BoardRow | None, column: Value) -> BoardCell:
    label = f"{board.task}: {score_label(board.benchmark, column.name)}"
    if row is None or (row.kind == PUBLISHED and captions.text(row, column) == NONE):
        return BoardCell("", label=label)
    key, note = captions.sort_key(row, column), captions.uncertainty(row, column)
    return BoardCell(captions.text(row, column), key, note, label=label, rank=captions.rank(row, column))


def _warnings(rows: Mapping[str, BoardRow]) -> str:
    """What a model's name isn't shown without, with the tasks that it is true of where it isn't of all."""
    said = []
    for kind in (captions.TRIAL, captions.GUESSING):
        if tasks := [task for task, row in rows.items() if kind in row.caveat]:
            said.append(kind if len(tasks) == len(rows) else f"{kind} ({', '.join(tasks)})")
    return "; ".join(said)


def _rows(boards: Sequence[Board]) -> list[ModelRow]:
    """A row per model; runs and published models of one name have two."""
    members: dict[tuple[bool, str], dict[str, BoardRow]] = defaultdict(dict)
    for board in boards:
        for row in captions.listed(board, board.columns):
            members[row.kind == PUBLISHED, row.model][board.task] = row
    rows = []
    for (is_published, model), own in sorted(members.items(), key=lambda member: member[0][0]):
        papers = dict.fromkeys(row.source.partition(", Table")[0] for row in own.values() if is_published)
        cells = [_cell(board, own.get(board.task), column) for board in boards for column in board.columns]
        rows.append(ModelRow(model, ", ".join(papers), _warnings(own), cells))
    return rows


def tabs(boards: Sequence[Board]) -> list[BoardTab]:
    """The boards by benchmark, in their own order."""
    families: dict[str, list[Board]] = defaultdict(list)
    for board in boards:
        family = registry.family(board.benchmark)
        families[family.name if family else board.benchmark].append(board)
    titles = {one.name: one.title for one in registry.benchmarks()}
    return [BoardTab(name, titles.get(name) or name, own, _rows(own)) for name, own in families.items()]
