"""The page of a leaderboard: what its cells say, as data and as a table. In come boards, out go rows for a template."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

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
from lm_eval_bias.core.benchmark import card_of
from lm_eval_bias.core.numbers import (
    NONE,
    grouped,
    reads_as,
    score_range,
    target_text,
)
from lm_eval_bias.core.numbers import (
    cell as cell_text,
)
from lm_eval_bias.core.page_parts import Cell, Column, Row, Table, numeric
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.report import badges, pictures, sentences

NOT_RUN = "not run"
CAPTION = "Primary scores with 95% intervals; what has a neutral value sorts by the distance from it"
_OF_CELL = ("value", "stderr", "interval", "plus_minus", "note")


def badge(row: BoardRow, cell: RankedScore) -> str:
    """Describe in words what a score shows; empty for an ability, and for a published score."""
    return badges.badge(row.task, cell) if row.task else ""


def part(row: BoardRow) -> str:
    """Describe which part of the items a run took; empty for all."""
    return badges.part(row.task) if row.task else ""


def sort_key(cell: RankedScore) -> float:
    """Return the sort key: a value, or its distance from neutral; nan if the answers can't show a bias."""
    if cell.neutral is None or cell.higher_is_better is not None:
        return cell.value
    if cell.verdict.silent == 1:
        return math.nan
    return abs(cell.value - cell.neutral)


@dataclass(frozen=True)
class PageColumn:
    """A score of a task: a column of the page.

    Attributes:
        board: The task's.
        score: Its meaning.
    """

    board: Board
    score: Value

    @cached_property
    def rows(self) -> Mapping[str, BoardRow]:
        """The rows of runs by model."""
        return {row.model: row for row in self.board.rows if row.kind == RUN}

    @cached_property
    def limit(self) -> float:
        """The share of the range that half of a cell's bar stands for."""
        cells = (row.cells[self.score.name] for row in self.rows.values())
        return pictures.limit_of(filter(pictures.in_picture, cells))

    def about(self) -> Data:
        """Return the score's description."""
        card = card_of(self.board.definition.family)
        span = f"{score_range(self.score)}, {target_text(self.score)}"
        return {
            "id": f"{self.board.task}/{self.score.name}",
            "task": self.board.task,
            "benchmark": self.board.definition.family.heading,
            "language": self.board.language,
            "measures": self.board.measures,
            "paper": card.link if card else "",
            **self.score.describe(),
            "label": self.score.title,
            "reads": joined(span, reads_as(self.score)),
            "ranked": rule(self.score),
        }


def columns(boards: Sequence[Board]) -> list[PageColumn]:
    """List the columns: of each task the primary scores, else the first main one."""
    found = []
    for board in boards:
        wanted = catalog.primary(board.task, board.definition)
        listed = [*board.columns, *board.others]
        scores = [score for score in listed if score.name in wanted]
        found += [PageColumn(board, score) for score in scores or listed[:1]]
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


# ---------------------------------------------------------------------- the tables


def rank(cell: RankedScore) -> str:
    """Format a rank with the number of ranked models; empty without a rank, or if all ranks are equal."""
    if cell.rank is None or cell.rank.tells_none:
        return ""
    return f"rank {cell.rank} of {cell.rank.of}"


def score_cell(column: PageColumn, row: BoardRow) -> Cell:
    """Make a cell of a value with interval and badge, sorted by distance; or of the reason for a missing value."""
    cell = row.cells[column.score.name]
    label = ", ".join(filter(None, (badge(row, cell), rank(cell), part(row))))
    if math.isnan(cell.value):
        return Cell(label, math.nan)
    bar = pictures.places(cell, column.limit) if pictures.in_picture(cell) else ()
    return Cell(cell_text(cell), sort_key(cell), label, bar)


def _summary(family: Sequence[PageColumn], model: str) -> Cell:
    """Make a cell of a benchmark's value that is furthest from neutral, and of how many tasks differ."""
    found = []
    for column in family:
        row = column.rows.get(model)
        if row is not None and not math.isnan(row.cells[column.score.name].value):
            cell = row.cells[column.score.name]
            says = badge(row, cell) or "ability"
            away = abs(pictures.position(cell, cell.value))
            found.append((says == badges.DIFFERS, away, says, column, row))
    telling = [one for one in found if one[2] in (badges.DIFFERS, badges.UNCLEAR)]
    if not telling:
        says = ", ".join(dict.fromkeys(one[2] for one in found))
        return Cell(says or NOT_RUN, math.nan)
    _, away, _, column, row = max(telling, key=lambda one: one[:2])
    shown = score_cell(column, row)
    if len(family) > 1:
        differing = sum(one[0] for one in telling)
        note = f"{column.board.task}; {differing} of {len(telling)} tasks differ"
        return Cell(shown.text, away, note, shown.bar)
    return shown


def _able(row: BoardRow | None) -> list[Value]:
    """Return a run's ability score, if there is one."""
    scores = row.task.scores.values() if row is not None and row.task else ()
    found = (v for v in scores if v.floor is not None and not math.isnan(v.value))
    return list(islice(found, 1))


def _ability(rows: Iterable[BoardRow | None]) -> Cell:
    """Make a cell of the lowest ability of a model's runs."""
    found = chain.from_iterable(map(_able, rows))
    least = min(found, key=lambda value: value.value, default=None)
    return Cell(cell_text(least), least.value) if least else Cell(NONE, math.nan)


def families(listed: Iterable[PageColumn]) -> list[list[PageColumn]]:
    """Group the columns by benchmark, in the benchmarks' order."""
    placed = sorted(
        listed, key=lambda column: registry.place(column.board.definition.family)
    )
    return list(
        grouped(
            (column.board.definition.family.name, column) for column in placed
        ).values()
    )


def overview(models: Mapping[str, str], listed: Iterable[PageColumn]) -> Table:
    """Make the table of all models: of each benchmark the furthest value, and the lowest ability beside it.

    Args:
        models: Each with what is said of it.
        listed: The scores.
    """
    heads = [Column("Model")]
    columns = [[Cell(model, note=note) for model, note in models.items()]]
    for family in families(listed):
        label = family[0].board.definition.family.heading
        one = f"{family[0].board.task}: {family[0].score.title}"
        note = one if len(family) == 1 else f"furthest of {len(family)} tasks"
        heads.append(Column(label, True, note))
        columns.append([_summary(family, model) for model in models])
        rows = ([column.rows.get(model) for column in family] for model in models)
        abilities = list(map(_ability, rows))
        if any(cell.text != NONE for cell in abilities):
            heads.append(Column(f"{label}: ability", True))
            columns.append(abilities)
    return Table(CAPTION, heads, zip(*columns, strict=True))


def details(family: Sequence[PageColumn]) -> Table:
    """Make a benchmark's table: a row a task and model; last, unranked, what papers print."""
    rows: list[Row] = []
    papers: list[Row] = []
    for column in family:
        for row in column.board.rows:
            cell = row.cells[column.score.name]
            place = (row.model, column.board.task, column.score.name)
            if row.kind == RUN:
                one = score_cell(column, row)
                is_lacking = math.isnan(cell.value)
                value = Cell(NONE if is_lacking else one.text, one.value)
                says = one.text if is_lacking else one.note
                rows.append([*place, value, says, _ability([row])])
            elif not math.isnan(cell.value):
                says = f"published: {row.source}"
                value = Cell(cell_text(cell), math.nan)
                papers.append([*place, value, says, NONE])
    columns = ["Model", "Task", "Score", *numeric("Value"), "Says", *numeric("Ability")]
    meanings = sentences.meanings(column.score for column in family)
    return Table(
        f"{family[0].board.definition.family.heading}; {meanings}",
        columns,
        rows + papers,
    )
