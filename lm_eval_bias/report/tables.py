"""Tables, drawn as text, Markdown or LaTeX (as HTML: ``macros.html.j2``), and the data formats CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence

from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.report.escaping import Markup, guarded, latex, latex_comment, markdown


def grid(
    columns: Sequence[Column | str],
    rows: Iterable[Sequence[str]],
    style: str = "simple",
) -> str:
    """Lines of text set in columns, escaped by no rule but the style's own.

    Args:
        columns: Headings; a mere text heads a column of words.
        rows: Texts, one per column.
        style: One of tabulate's.
    """
    from tabulate import tabulate

    headed = [
        Column(column) if isinstance(column, str) else column for column in columns
    ]
    align = ["right" if column.numeric else "left" for column in headed]
    labels = [column.label for column in headed]
    return tabulate(
        list(rows),
        headers=labels,
        tablefmt=style,
        colalign=align,
        disable_numparse=True,
    )


def _annotated(column: Column, cell: Cell) -> str:
    return (
        f"{cell.text} ({cell.note})" if cell.note and not column.numeric else cell.whole
    )


def _texts(table: Table) -> list[list[str]]:
    return [
        [_annotated(*pair) for pair in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]


def markdown_table(table: Table) -> Markup:
    """A table in Markdown."""
    rows = ([markdown(text) for text in row] for row in _texts(table))
    return Markup(
        grid(
            [
                Column(markdown(column.label), column.numeric)
                for column in table.columns
            ],
            rows,
            "pipe",
        )
    )


def text_table(table: Table) -> str:
    """A table for a terminal."""
    return grid(table.columns, _texts(table))


def latex_table(table: Table) -> Markup:
    """A table in LaTeX, which needs the package booktabs: headings in several lines, intervals below their values."""

    def head(column: Column) -> str:
        if not column.numeric:
            return latex(column.label)
        return rf"\parbox[b]{{2.3cm}}{{\raggedleft {latex(column.label)}}}"

    def cell(column: Column, cell: Cell) -> str:
        if not column.numeric:
            return latex(_annotated(column, cell))
        text, note = latex(cell.text), latex(cell.note)
        return (
            rf"\shortstack[r]{{{text} \\ {{}}{{\scriptsize {note}}}}}" if note else text
        )

    def line(texts: Iterable[str]) -> str:
        # LaTeX would take a bracket or a star behind the end of a row for its argument
        return " & ".join(f"{{}}{text}" for text in texts) + r" \\"

    places = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        rf"\begin{{tabular}}{{{places}}}",
        r"\toprule",
        line(map(head, table.columns)),
        r"\midrule",
        *(line(map(cell, table.columns, row)) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return Markup("\n".join(lines))


def titled(form: str, table: Table) -> str:
    """A table with its caption in front, as ``text``, ``md`` or ``latex``."""
    if form == "latex":
        return f"{latex_comment(table.caption)}\n{latex_table(table)}"
    if form == "md":
        return f"**{markdown(table.caption)}**\n\n{markdown_table(table)}"
    return f"{table.caption}\n{text_table(table)}"


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
