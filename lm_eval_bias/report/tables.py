"""Tables, drawn as text, Markdown or LaTeX (as HTML: ``macros.html.j2``), and the data formats CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lm_eval_bias.report.escaping import Markup, guarded, latex, markdown


@dataclass(frozen=True)
class Column:
    """A table's column.

    Attributes:
        label: Its heading.
        numeric: Whether its cells are numbers: set right and sorted by value.
        note: In small print below the heading of a page's table.
    """

    label: str
    numeric: bool = False
    note: str = ""


@dataclass(frozen=True)
class Cell:
    """A table's cell.

    Attributes:
        text: What is shown.
        value: What it is sorted by where the text alone would sort wrongly; ``None`` sorts by the text, ``nan`` last.
        note: A remark or an interval, in small print below the text.
        link: Where a page's reader gets from it.
    """

    text: str
    value: float | None = None
    note: str = ""
    link: str = ""

    @property
    def whole(self) -> str:
        """Text and note on one line, for tables of text."""
        return f"{self.text} {self.note}" if self.note else self.text

    @property
    def key(self) -> str:
        """The sorting key as the page's script reads it; empty where there is none."""
        return "" if self.value is None or math.isnan(self.value) else repr(float(self.value))


@dataclass(frozen=True)
class Table:
    """A table that readers can sort by each column, with keyboard or mouse.

    Attributes:
        caption: What it shows.
        columns: Headings.
        rows: Cells, one per column; the first is the row's heading.
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]] = field(default_factory=list)


def grid(columns: Sequence[Column | str], rows: Iterable[Sequence[str]], style: str = "simple") -> str:
    """Lines of text set in columns, escaped by no rule but the style's own.

    Args:
        columns: Headings; a mere text heads a column of words.
        rows: Texts, one per column.
        style: One of tabulate's.
    """
    from tabulate import tabulate

    headed = [Column(column) if isinstance(column, str) else column for column in columns]
    align = ["right" if column.numeric else "left" for column in headed]
    labels = [column.label for column in headed]
    return tabulate(list(rows), headers=labels, tablefmt=style, colalign=align, disable_numparse=True)


def _annotated(column: Column, cell: Cell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note and not column.numeric else cell.whole


def markdown_table(table: Table, figure: Callable[[str], str] = markdown) -> Markup:
    """A table in Markdown; the text of its numeric columns is escaped by ``figure``."""
    rows = [
        [
            figure(cell.whole) if column.numeric else markdown(_annotated(column, cell))
            for column, cell in zip(table.columns, row, strict=True)
        ]
        for row in table.rows
    ]
    return Markup(grid([Column(markdown(column.label), column.numeric) for column in table.columns], rows, "pipe"))


def text_table(table: Table, figure: object = None) -> str:
    """A table for a terminal; ``figure`` is for the templates that Markdown shares, and changes nothing."""
    rows = [[_annotated(column, cell) for column, cell in zip(table.columns, row, strict=True)] for row in table.rows]
    return grid(table.columns, rows)


def latex_table(table: Table) -> Markup:
    """A table in LaTeX."""

    def cell_text(column: Column, cell: Cell) -> str:
        text = latex(_annotated(column, cell))
        # behind the end of a row these would be taken for options of that
        return f"{{}}{text}" if text.startswith(("[", "*")) else text

    rows = [[cell_text(column, cell) for column, cell in zip(table.columns, row, strict=True)] for row in table.rows]
    return Markup(grid([latex(column.label) for column in table.columns], rows, "latex_raw"))


def _field(value: object) -> object:
    if isinstance(value, str):
        return guarded(value)
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    return json.dumps(value) if isinstance(value, (list, tuple)) else value


def csv_text(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Comma-separated values: nothing where there is no finite number, and no text that a spreadsheet would run."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(map(_field, row) for row in rows)
    return out.getvalue()


def json_text(data: object, indent: int) -> str:
    """JSON that any reader accepts: no NaN."""
    return json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"
