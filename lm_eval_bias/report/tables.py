"""Tables, drawn as text, Markdown or LaTeX (as HTML: ``macros.html.j2``), and the data formats CSV and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from lm_eval_bias.core.numbers import plain
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.report.escaping import Markup, latex, markdown


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
) -> str:
    """Set lines of text in columns.

    Args:
        columns: Headings; a mere text heads a column of words.
        rows: Texts, one per column.
    """
    return text_table(Table("", columns, rows))


def _latex_cell(text: str) -> str:
    """Escape a cell, also a leading bracket or star, which LaTeX would take for an argument of the row's end."""
    written = latex(text)
    return f"{{}}{written}" if written.startswith(("[", "*")) else written


def latex_tabular(table: Table) -> Markup:
    """Write a table's rows and head in LaTeX, with the rules of booktabs."""
    body = _grid(table, "latex_raw", _latex_cell)
    for rule in ("toprule", "midrule", "bottomrule"):
        body = body.replace(r"\hline", rf"\{rule}", 1)
    return Markup(body)


def json_text(data: object, indent: int | None) -> str:
    """Write JSON that any reader accepts: no NaN; on one line without an indent."""
    ends = None if indent else (",", ":")
    written = json.dumps(
        plain(data), indent=indent, separators=ends, ensure_ascii=False
    )
    return written + "\n"
