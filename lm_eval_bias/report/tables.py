"""Tables, drawn as text, Markdown or LaTeX (as HTML: ``macros.html.j2``), and the data formats CSV and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from lm_eval_bias.core.numbers import plain
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.report.escaping import Markup, latex, latex_comment, markdown


def _head(column: Column) -> str:
    return f"{column.label} ({column.note})" if column.note else column.label


def _annotated(column: Column, cell: Cell) -> str:
    if cell.note and not column.numeric:
        return f"{cell.text} ({cell.note})"
    return cell.whole


def _grid(table: Table, style: str, escape: Callable[[str], str]) -> str:
    from tabulate import tabulate

    rows = [map(escape, map(_annotated, table.columns, row)) for row in table.rows]
    return tabulate(
        rows,
        headers=[escape(_head(column)) for column in table.columns],
        tablefmt=style,
        colalign=["right" if column.numeric else "left" for column in table.columns],
        disable_numparse=True,
    )


def markdown_table(table: Table) -> Markup:
    """Write a table in Markdown."""
    notes = "".join(f"\n\n{markdown(note)}" for note in table.notes)
    return Markup(_grid(table, "pipe", markdown) + notes)


def text_table(table: Table) -> str:
    """Write a table for a terminal."""
    return "\n".join([_grid(table, "simple", str), *table.notes])


def grid(
    columns: Iterable[Column | str],
    rows: Iterable[Iterable[str]],
    style: str = "simple",
) -> str:
    """Set lines of text in columns, escaped by no rule but the style's own.

    Args:
        columns: Headings; a mere text heads a column of words.
        rows: Texts, one per column.
        style: One of tabulate's.
    """
    return _grid(Table("", columns, rows), style, str)


def latex_table(table: Table) -> Markup:
    """Write a table in LaTeX (needs booktabs): headings in several lines, intervals below their values."""

    def head(column: Column) -> str:
        if not column.numeric:
            return latex(column.label)
        return rf"\parbox[b]{{2.3cm}}{{\raggedleft {latex(_head(column))}}}"

    def cell(column: Column, cell: Cell) -> str:
        if not column.numeric:
            return latex(_annotated(column, cell))
        text = latex(cell.text)
        note = latex(cell.note)
        return (
            rf"\shortstack[r]{{{text} \\ {{}}{{\scriptsize {note}}}}}" if note else text
        )

    def line(texts: Iterable[str]) -> str:
        # LaTeX would take a bracket or a star behind the end of a row for its argument
        return " & ".join("{}" + text for text in texts) + r" \\"

    places = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        rf"\begin{{tabular}}{{{places}}}",
        r"\toprule",
        line(map(head, table.columns)),
        r"\midrule",
        *(line(map(cell, table.columns, row)) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\footnotesize {latex(note)}" for note in table.notes),
    ]
    return Markup("\n".join(lines))


def titled(style: str, table: Table) -> str:
    """Write a table with its caption in front, as ``text``, ``md`` or ``latex``."""
    if style == "latex":
        return f"{latex_comment(table.caption)}\n{latex_table(table)}"
    if style == "md":
        return f"**{markdown(table.caption)}**\n\n{markdown_table(table)}"
    return f"{table.caption}\n{text_table(table)}"


def json_text(data: object, indent: int | None) -> str:
    """Write JSON that any reader accepts: no NaN; on one line without an indent."""
    ends = None if indent else (",", ":")
    written = json.dumps(
        plain(data), indent=indent, separators=ends, ensure_ascii=False
    )
    return written + "\n"
