"""Tables, drawn as text, Markdown or LaTeX (as HTML: ``macros.html.j2``), and the data formats CSV and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from lm_eval_bias.core.numbers import plain
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.report.escaping import (
    Markup,
    breakable,
    latex,
    latex_comment,
    markdown,
)


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


# centimetres: of a page's text and of one of two columns; of a column of numbers and of words, with what lies between
_WIDTHS = {False: 17.0, True: 8.0}
_LABELS = {False: 4.0, True: 2.4}  # what the first column needs
_COLUMN = {True: 2.2, False: 4.2}  # of numbers, and of words
_BETWEEN = 0.43
_DOWN = {
    True: 15,
    False: 6,
}  # rows on a page, of tables with numbers, and of words alone


def latex_tables(table: Table, column: bool = False) -> list[Markup]:
    r"""Write a table in LaTeX, in pieces that fit a page: intervals below their values, notes below the last piece.

    They need array, booktabs, ragged2e, tabularx and threeparttable, and are as wide as the text; each piece has the
    first column again.

    Args:
        table: The table.
        column: Whether it stands in one of two columns.
    """
    room = _WIDTHS[column] - _LABELS[column]
    chunks: list[list[int]] = [[]]
    taken = 0.0
    for place, head in enumerate(table.columns[1:], start=1):
        needed = _COLUMN[head.numeric] + _BETWEEN
        if chunks[-1] and taken + needed > room:
            chunks.append([])
            taken = 0.0
        chunks[-1].append(place)
        taken += needed
    down = _DOWN[any(head.numeric for head in table.columns)]
    pieces = []
    for first in range(0, max(len(table.rows), 1), down):
        rows = table.rows[first : first + down]
        pieces += [_tabularx(table, rows, [0, *chunk]) for chunk in chunks]
    pieces[-1] += "".join(f"\n{line}" for line in _table_notes(table.notes))
    begin, end = r"\begin{threeparttable}", r"\end{threeparttable}"
    return [Markup(f"{begin}\n{piece}\n{end}") for piece in pieces]


def latex_table(table: Table, column: bool = False) -> Markup:
    """Write a table in LaTeX, its pieces below each other."""
    pieces = latex_tables(table, column)
    return Markup("\n\n".join(f"\\medskip\\noindent\n{piece}" for piece in pieces))


def _tabularx(
    table: Table, rows: Sequence[Sequence[Cell]], places: Sequence[int]
) -> str:
    """Write some rows and columns of a table, as wide as the line."""
    columns = [table.columns[place] for place in places]

    def head(column: Column) -> str:
        text = latex(_head(column) if column.numeric else column.label)
        return rf"\footnotesize {breakable(text)}"

    def cell(column: Column, cell: Cell) -> str:
        if not column.numeric:
            return breakable(latex(_annotated(column, cell)))
        text = latex(cell.text)
        note = latex(cell.note)
        return rf"{text}\newline {{\scriptsize {note}}}" if note else text

    def line(texts: Iterable[str]) -> str:
        # LaTeX would take a bracket or a star behind the end of a row for its argument
        begun = (
            rf"{{}}\hspace{{0pt}}{text}" for text in texts
        )  # which lets a first word be divided
        return " & ".join(begun) + r" \tabularnewline"

    kinds = r">{\RaggedRight\arraybackslash}X"
    for head_of in columns[1:]:
        side = "Left" if head_of.numeric else "Right"
        width = min(_COLUMN[head_of.numeric], 3.9 if len(places) > 2 else 4.2)
        kinds += rf">{{\Ragged{side}\arraybackslash}}p{{{width}cm}}"
    lines = []
    for row in rows:
        lines.append(line(map(cell, columns, [row[place] for place in places])))
    return "\n".join(
        [
            rf"\begin{{tabularx}}{{\linewidth}}{{@{{}}{kinds}@{{}}}}",
            r"\toprule",
            line(map(head, columns)),
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabularx}",
        ]
    )


def _table_notes(notes: Sequence[str]) -> list[str]:
    if not notes:
        return []
    items = [rf"\item {latex(note)}" for note in notes]
    return [r"\begin{tablenotes}\footnotesize", *items, r"\end{tablenotes}"]


def titled(style: str, table: Table, column: bool = False) -> str:
    """Write a table with its caption in front, as ``text``, ``md`` or ``latex``."""
    if style == "latex":
        return f"\n{latex_comment(table.caption)}\n{latex_table(table, column)}"
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
