"""The page of a leaderboard: what its cells say, as data and as a table. In come boards, out go rows for a template."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress, islice

from lm_eval_bias.boards.building import (
    PUBLISHED,
    RUN,
    Board,
    BoardRow,
    RankedScore,
    rule,
)
from lm_eval_bias.boards.models import BoardModel
from lm_eval_bias.core import Data, catalog, content_hashes, registry
from lm_eval_bias.core.benchmark import Benchmark, card_of
from lm_eval_bias.core.numbers import (
    NONE,
    SHARES,
    bare,
    grouped,
    reads_as,
    score_range,
    shown,
    target_text,
)
from lm_eval_bias.core.numbers import (
    cell as cell_text,
)
from lm_eval_bias.core.page_parts import Cell, Column, Row, Table, numeric
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.report import badges, pictures

NOT_RUN = "not run"
PRINTED = "Scores as papers print them, by other code under other conditions; they are not ranked with the runs"
_OF_CELL = ("value", "stderr", "interval", "plus_minus", "note")


def badge(row: BoardRow, cell: RankedScore) -> str:
    """Describe in words what a score shows; empty for an ability, and for a published score."""
    return badges.badge(row.task, cell) if row.task else ""


def part(row: BoardRow) -> str:
    """Describe which part of the items a run took; empty for all."""
    return badges.part(row.task) if row.task else ""


def printed(cell: RankedScore) -> Cell:
    """Make a cell of a published value: the paper's digits, and its ±, or that it was derived."""
    text = cell.printed + "%" * (cell.unit in SHARES)
    if cell.unit == "proportion":
        text = shown(cell)
    note = "derived" if cell.derived else ""
    if cell.plus_minus is not None:
        note = f"±\u00a0{bare(cell.plus_minus, cell.unit)}"
    return Cell(text, cell.value, note)


def sort_key(cell: RankedScore) -> float:
    """Return the sort key: a value, or its distance from neutral; nan if the answers can't show a bias."""
    if cell.neutral is None or cell.higher_is_better is not None:
        return cell.value
    if cell.verdict.silent == 1:
        return math.nan
    return abs(cell.value - cell.neutral)


def reads(score: Value) -> str:
    """Describe a score's range, reference and direction."""
    return joined(f"{score_range(score)}, {target_text(score)}", reads_as(score))


@dataclass(frozen=True)
class PageColumn:
    """A score of a task: a column of the page.

    Attributes:
        board: The task's.
        score: Its meaning.
    """

    board: Board
    score: Value

    @property
    def ident(self) -> str:
        """The column's name in the data."""
        return f"{self.board.task}/{self.score.name}"

    @property
    def family(self) -> Benchmark:
        """The column's benchmark."""
        family: Benchmark = self.board.definition.family
        return family

    @cached_property
    def rows(self) -> Mapping[str, BoardRow]:
        """The rows of runs by model."""
        return {row.model: row for row in self.board.rows if row.kind == RUN}

    @cached_property
    def limit(self) -> float:
        """The largest distance from neutral that the bars have to show."""
        rows = self.rows.values()
        return pictures.reaching(row.cells[self.score.name] for row in rows)

    def about(self) -> Data:
        """Return the score's description."""
        card = card_of(self.family)
        return {
            "id": self.ident,
            "task": self.board.task,
            "benchmark": self.family.heading,
            "language": self.board.language,
            "measures": self.board.measures,
            "paper": card.link if card else "",
            **self.score.describe(),
            "label": self.score.title,
            "reads": reads(self.score),
            "ranked": rule(self.score),
        }


def columns(boards: Sequence[Board], names: Sequence[str]) -> list[PageColumn]:
    """List the columns: of each task the named scores, else the primary ones, else the first main one."""
    found = []
    for board in boards:
        listed = [*board.columns, *board.others]
        wanted = names or catalog.primary(board.task, board.definition)
        scores = [score for score in listed if score.name in wanted]
        scores = scores or ([] if names else listed[:1])
        found += [PageColumn(board, score) for score in scores]
    return found


def record(column: PageColumn, row: BoardRow) -> Data:
    """Return the details of a cell."""
    cell = row.cells[column.score.name]
    about = row.task and {
        "documents": row.task.documents,
        "items": row.task.items,
        "prompts": row.task.inputs.get("different_prompts"),
    }
    return {
        "model": row.model,
        "kind": row.kind,
        "source": row.source,
        "conventions": row.conventions,
        "deviations": "; ".join(row.deviations),
        **{name: getattr(cell, name) for name in _OF_CELL},
        "n": cell.n or None,
        "rank": cell.rank and (cell.rank.low, cell.rank.high),
        "ranked": cell.rank and cell.rank.of,
        "no_rank": cell.unranked,
        "badge": badge(row, cell),
        "part": part(row),
        "warning": joined(*dict.fromkeys((row.warning, cell.verdict.reason))),
        **(about or {}),
        "run": row.run,
        "others": row.others,
    }


def model_data(model: BoardModel) -> Data:
    """Return the details of a model, with its files."""
    runs = []
    for run in model.runs:
        is_here = run.path.is_file()
        runs.append(
            {
                "file": str(run.path),
                "sha256": content_hashes.of_file(run.path) if is_here else None,
                "date": run.record.date,
                "command": run.command,
            }
        )
    return {
        "model": model.label,
        "prompt": model.prompt,
        "parameters": model.parameters,
        "date": model.date,
        "runs": runs,
    }


def about(model: BoardModel) -> str:
    """Describe a model in a few words."""
    size = f"{model.parameters:,} parameters" if model.parameters else ""
    return ", ".join(filter(None, (model.prompt, size, model.date)))


def score_data(column: PageColumn) -> Data:
    """Return a score with its cells, of runs and of papers."""
    cells: dict[str, list[Data]] = {RUN: [], PUBLISHED: []}
    for row in column.board.rows:
        if row.task or not math.isnan(row.cells[column.score.name].value):
            known = record(column, row).items()
            kept = {k: v for k, v in known if k == "value" or v not in (None, "", 0)}
            cells[row.kind].append(kept)
    return {**column.about(), "cells": cells[RUN], "published": cells[PUBLISHED]}


# ---------------------------------------------------------------------- the table


@dataclass(frozen=True)
class PageHead(Column):
    """A heading of the page's table: a benchmark, and below it a task with its score, or a number of tasks.

    Attributes:
        benchmark: The benchmark's name, by which columns are opened and chosen.
        language: ISO 639-1 code.
        score: The column's name in the data; empty for a summary and abilities.
        kind: ``summary`` of several tasks, ``ability``, ``inner`` for one of several tasks; empty for an only one.
    """

    benchmark: str = ""
    language: str = ""
    score: str = ""
    kind: str = ""

    @property
    def name(self) -> str:
        """The column's name in addresses."""
        ability = "/ability" * (self.kind == "ability")
        return self.score or f"{self.benchmark}{ability}"


def rank(cell: RankedScore) -> str:
    """Format a rank with the number of ranked models; empty without a rank, or if all ranks are equal."""
    if cell.rank is None or cell.rank.tells_none:
        return ""
    return f"rank {cell.rank} of {cell.rank.of}"


def score_cell(column: PageColumn, row: BoardRow | None) -> Cell:
    """Make a cell of a value with interval and badge, sorted by distance; or of the reason for a missing value."""
    if row is None:
        return Cell(NOT_RUN, math.nan)
    cell = row.cells[column.score.name]
    label = ", ".join(filter(None, (badge(row, cell), rank(cell), part(row))))
    if math.isnan(cell.value):
        return Cell(label, math.nan)
    return Cell(cell_text(cell), sort_key(cell), label, _bar(column, cell))


def _bar(column: PageColumn, cell: Value) -> tuple[float, float, float] | None:
    """Place a value with its interval around the neutral line."""
    if not cell.interval or not pictures.in_picture(cell):
        return None
    return pictures.places(cell, column.limit)


def _summary(family: Sequence[PageColumn], model: str) -> Cell:
    """Make a cell that says how many of a benchmark's tasks differ from neutral, with the strongest value."""
    found = []
    for column in family:
        row = column.rows.get(model)
        if row is not None and not math.isnan(row.cells[column.score.name].value):
            cell = row.cells[column.score.name]
            away = abs(pictures.position(cell, cell.value))
            found.append((badge(row, cell) or "ability", away, cell, column))
    if not found:
        return Cell(NOT_RUN, math.nan)
    telling = [one for one in found if one[0] in (badges.DIFFERS, badges.UNCLEAR)]
    differing = [one for one in telling if one[0] == badges.DIFFERS]
    if not telling:
        return Cell(", ".join(dict.fromkeys(one[0] for one in found)), math.nan)
    _, away, cell, column = max(differing or telling, key=lambda one: one[1])
    return Cell(
        f"{len(differing)} of {len(telling)} differ{'s' * (len(telling) == 1)}",
        away,
        f"{column.board.task}: {cell_text(cell)}",
        _bar(column, cell),
    )


def _able(row: BoardRow | None) -> list[Value]:
    """Return a run's ability score, if there is one."""
    scores = row.task.scores.values() if row is not None and row.task else ()
    found = (v for v in scores if v.floor is not None and pictures.in_picture(v))
    return list(islice(found, 1))


def _ability(family: Sequence[PageColumn], model: str) -> Cell:
    """Make a cell of a model's lowest ability in a benchmark's tasks."""
    found = chain.from_iterable(_able(column.rows.get(model)) for column in family)
    least = min(found, key=lambda value: value.value, default=None)
    return Cell(cell_text(least), least.value) if least else Cell(NONE, math.nan)


def _columns(
    family: Sequence[PageColumn], models: Iterable[str]
) -> Iterator[tuple[PageHead, list[Cell]]]:
    """Yield a benchmark's columns: a summary of several tasks, these, and the ability in them."""
    name = family[0].family.name
    label = family[0].family.heading
    inner = ""
    if len(family) > 1:
        inner = "inner"
        head = PageHead(label, True, f"{len(family)} tasks", name, kind="summary")
        yield head, [_summary(family, model) for model in models]
    for column in family:
        untold, _, _ = column.board.too_few(column.score).partition(";")
        note = joined(f"{column.board.task}: {column.score.title}", untold)
        language = column.board.language
        head = PageHead(label, True, note, name, language, column.ident, inner)
        yield head, [score_cell(column, column.rows.get(model)) for model in models]
    every = [_able(row) for column in family for row in column.rows.values()]
    if titles := {value.title for value in chain.from_iterable(every)}:
        note = f"the lowest {min(titles, key=len)}"
        head = PageHead(f"{label}: ability", True, note, name, kind="ability")
        yield head, [_ability(family, model) for model in models]


def tables(models: Mapping[str, str], listed: Sequence[PageColumn]) -> list[Table]:
    """Make the page's columns of each benchmark, with all models in rows.

    Args:
        models: Each with what is said of it.
        listed: The scores.
    """
    names = [Cell(model, note=note) for model, note in models.items()]
    made = []
    listed = sorted(listed, key=lambda column: registry.place(column.family))
    for family in grouped((column.family.name, column) for column in listed).values():
        columns = list(_columns(family, models))
        heads = [Column("Model"), *(head for head, _ in columns)]
        rows = zip(names, *(cells for _, cells in columns), strict=True)
        made.append(Table(columns[0][0].label, heads, rows))
    return made


def as_texts(made: Table, is_open: bool) -> Table:
    """Write a benchmark's columns for formats of text: what was run, with a column per task where it is open."""
    kept = [is_open or getattr(head, "kind", "") != "inner" for head in made.columns]
    rows: list[Row] = []
    for model, *cells in made.rows:
        if not {cell.text for cell in cells} <= {NOT_RUN, NONE}:
            texts = (", ".join(filter(None, (c.text, c.note))) for c in cells)
            rows.append(compress([model, *texts], kept))
    heads = [Column(head.note, True) for head in made.columns[1:]]
    return Table(made.caption, compress(["Model", *heads], kept), rows)


def published(listed: Sequence[PageColumn]) -> Table:
    """Make a table of the scores that papers print, a row each."""
    rows: list[Row] = []
    for column in listed:
        for row in column.board.rows:
            cell = row.cells[column.score.name]
            if row.kind == PUBLISHED and not math.isnan(cell.value):
                source = Cell(row.source, note=joined(row.conventions, *row.deviations))
                title = column.score.title
                rows.append(
                    [column.board.task, title, row.model, printed(cell), source]
                )
    columns = ["Task", "Score", "Model", *numeric("Value"), "Source"]
    return Table(PRINTED, columns, rows)
