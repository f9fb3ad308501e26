"""The page of a leaderboard: what its cells say, as data and as a table. In come boards, out go rows for a template."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

from lm_eval_bias.boards.building import (
    NOT_PUBLISHED,
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
    bracketed,
    grouped,
    reads_as,
    score_range,
    shown,
    target_text,
)
from lm_eval_bias.core.page_parts import Cell, Column, Row, Table
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.report import badges, pictures

NOT_RUN = "not run"
_OF_CELL = ("value", "stderr", "interval", "plus_minus", "note")


def badge(row: BoardRow, cell: RankedScore) -> str:
    """Describe in words what a score shows; empty for an ability, and for a published score."""
    return badges.badge(row.task, cell) if row.task else ""


def part(row: BoardRow) -> str:
    """Describe which part of the items a run took; empty for all."""
    return badges.part(row.task) if row.task else ""


def text(cell: RankedScore) -> str:
    """Write a value with the paper's digits, or as many as its unit bears."""
    if not cell.printed or cell.unit == "proportion":
        return shown(cell)
    return cell.printed + "%" * (cell.unit in SHARES)


def uncertainty(cell: RankedScore) -> str:
    """Return a value's interval, its printed ±, or that it was derived; empty without any."""
    if cell.plus_minus is not None:
        return f"±\u00a0{bare(cell.plus_minus, cell.unit)}"
    return bracketed(cell) or ("derived" if cell.derived else "")


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
    def rows(self) -> Mapping[tuple[str, str], BoardRow]:
        """The rows of runs and papers, by kind and model: a paper's model may be called as a run's."""
        return {(row.kind, row.model): row for row in self.board.rows}

    @cached_property
    def limit(self) -> float:
        """The largest distance from neutral that the bars have to show."""
        runs = [row for row in self.board.rows if row.kind == RUN]
        return pictures.reaching(row.cells[self.score.name] for row in runs)

    @property
    def untold(self) -> str:
        """A note that the items are too few to distinguish its models; empty if they aren't."""
        ranks = [row.cells[self.score.name].rank for row in self.board.rows]
        untold = [rank.of for rank in ranks if rank and rank.tells_none]
        return f"too few items to tell {max(untold)} models apart" if untold else ""

    def about(self) -> Data:
        """Return the score's description."""
        card = card_of(self.family)
        return {
            "id": self.ident,
            "task": self.board.task,
            "benchmark": self.family.title or self.family.name,
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
    number = model.parameters or 0
    size = f"{number / 1e9:.3g}B" if number >= 1e9 else f"{number / 1e6:.0f}M"
    size = f"{size} parameters" if number else ""
    counting = {run.path for run, _ in model.tasks.values()}
    more = len(model.runs) - len(counting)
    runs = f"+{more} run{'s' * (more > 1)}" if more else ""
    return ", ".join(filter(None, (model.prompt, size, model.date, runs)))


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
        return Cell(label if row.task else NOT_PUBLISHED, math.nan)
    shown = f"{text(cell)} {uncertainty(cell)}".rstrip()
    return Cell(shown, sort_key(cell), label, _bar(column, cell))


def _bar(column: PageColumn, cell: RankedScore) -> tuple[float, float, float] | None:
    """Place a value with its interval around the neutral line."""
    if not cell.interval or not pictures.in_picture(cell):
        return None
    ends = (cell.interval[0], cell.value, cell.interval[1])
    low, at, high = (pictures.percent(cell, end, column.limit) for end in ends)
    return round(low, 1), round(at, 1), round(high, 1)


def _summary(family: Sequence[PageColumn], kind: str, model: str) -> Cell:
    """Make a cell that says how many of a benchmark's tasks differ from neutral, with the strongest value."""
    found = []
    columns = {}
    for column in family:
        row = column.rows.get((kind, model))
        if row is None or math.isnan(row.cells[column.score.name].value):
            continue
        cell = row.cells[column.score.name]
        found.append((badge(row, cell), cell))
        columns[id(cell)] = column
    if not found:
        return Cell(NOT_RUN, math.nan)
    if kind == PUBLISHED:
        return Cell(f"{len(found)} of {len(family)} printed", math.nan)
    differing, telling, strongest = badges.summary(found)
    if not telling or strongest is None:
        kinds = dict.fromkeys(label or "ability" for label, _ in found)
        return Cell(", ".join(kinds), math.nan)
    column = columns[id(strongest)]
    assert isinstance(strongest, RankedScore)
    away = pictures.position(strongest, strongest.value)
    return Cell(
        f"{differing} of {telling} differ{'s' * (telling == 1)}",
        abs(away),
        f"{column.board.task}: {text(strongest)} {bracketed(strongest)}",
        _bar(column, strongest),
    )


def _able(row: BoardRow | None) -> list[Value]:
    """Return a run's ability score, if there is one."""
    scores = row.task.scores.values() if row is not None and row.task else ()
    found = (v for v in scores if v.floor is not None and pictures.in_picture(v))
    return list(islice(found, 1))


def _ability(known: Sequence[Value]) -> Cell:
    """Make a cell of a model's lowest and highest ability in a benchmark's tasks."""
    if not known:
        return Cell(NONE, math.nan)
    known = sorted(known, key=lambda value: value.value)
    texts = dict.fromkeys((shown(known[0]), shown(known[-1])))
    ends = f" {bracketed(known[0])}" if len(known) == 1 else ""
    return Cell(f"{' to '.join(texts)}{ends}", known[0].value)


def _columns(
    family: Sequence[PageColumn], models: Iterable[str], kind: str
) -> Iterator[tuple[PageHead, list[Cell]]]:
    """Yield a benchmark's columns: a summary of several tasks, these, and the ability in them."""
    benchmark = family[0].family
    label = benchmark.title or benchmark.name
    name = benchmark.name
    if len(family) > 1:
        head = PageHead(label, True, f"{len(family)} tasks", name, kind="summary")
        yield head, [_summary(family, kind, model) for model in models]
    for column in family:
        about = f"{column.board.task}: {column.score.title}"
        note = joined(about, column.untold)
        inner = "inner" if len(family) > 1 else ""
        language = column.board.language
        head = PageHead(label, True, note, name, language, column.ident, inner)
        rows = [column.rows.get((kind, model)) for model in models]
        yield head, [score_cell(column, row) for row in rows]
    # of all rows, so that runs and published models have the same columns
    every = [_able(row) for column in family for row in column.rows.values()]
    if titles := {value.title for value in chain.from_iterable(every)}:
        note = min(titles, key=len)
        head = PageHead(f"{label}: ability", True, note, name, kind="ability")
        able = []
        for model in models:
            found = [_able(column.rows.get((kind, model))) for column in family]
            able.append(_ability(list(chain.from_iterable(found))))
        yield head, able


def _families(listed: Sequence[PageColumn]) -> Iterator[list[PageColumn]]:
    """Yield the columns of each benchmark, in the registry's order."""
    families = grouped((column.family.name, column) for column in listed)
    for benchmark in registry.benchmarks():
        if benchmark.name in families:
            yield families[benchmark.name]


def table(
    caption: str, models: Mapping[str, str], listed: Sequence[PageColumn], kind: str
) -> Table:
    """Make the page's table, with models in rows and benchmarks in columns.

    Args:
        caption: What it shows.
        models: Each with what is said of it.
        listed: The scores.
        kind: Of the rows, runs or published ones.
    """
    made = [_columns(family, models, kind) for family in _families(listed)]
    columns = list(chain.from_iterable(made))
    heads = [Column("Model"), *(head for head, _ in columns)]
    names = [Cell(model, note=note) for model, note in models.items()]
    cells = zip(names, *(cells for _, cells in columns), strict=True)
    return Table(caption, heads, cells)


def by_benchmark(made: Table, is_open: bool, suffix: str = "") -> Iterator[Table]:
    """Yield the page's table split by benchmark, optionally with a column per task."""
    placed = []
    for place, head in enumerate(made.columns):
        if isinstance(head, PageHead) and (is_open or head.kind != "inner"):
            placed.append((head.benchmark, place))
    for places in grouped(placed).values():
        rows: list[Row] = []
        for row in made.rows:
            cells = [row[place] for place in places]
            if not {cell.text for cell in cells} <= {NOT_RUN, NONE}:
                texts = (", ".join(filter(None, (c.text, c.note))) for c in cells)
                rows.append([row[0], *texts])
        heads = [Column(made.columns[place].note, True) for place in places]
        if rows:
            label = made.columns[places[0]].label
            yield Table(f"{label}{suffix}", ["Model", *heads], rows)


def published_models(shown: Sequence[PageColumn]) -> dict[str, str]:
    """Return the papers' models, with the papers' tables."""
    found: dict[str, dict[str, None]] = {}
    for column in shown:
        for row in column.board.rows:
            has_value = not math.isnan(row.cells[column.score.name].value)
            if row.kind == PUBLISHED and has_value:
                found.setdefault(row.model, {})[row.source] = None
    return {model: "; ".join(sources) for model, sources in found.items()}
