"""The writer of every CSV: nothing in a cell that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence

from lm_eval_bias.core.numbers import plain

# Excel and its kin take cells that begin so for formulas; guarded texts are guarded again
_FORMULA = re.compile(r"'* *[=+\-@＝＋－＠\t\r\n]")


def guarded(raw: str) -> str:
    """Quote a text cell that a spreadsheet would take for a formula.

    >>> guarded("=1+1"), guarded("gpt2"), guarded("'=x"), guarded("a=b")
    ("'=1+1", 'gpt2', "''=x", 'a=b')
    """
    return f"'{raw}" if _FORMULA.match(raw) else raw


def unguarded(cell: str) -> str:
    """Undo :func:`guarded`.

    >>> unguarded("'=1+1"), unguarded("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell


def _field(value: object) -> object:
    if isinstance(value, str):
        return guarded(value.replace("\0", "\\u0000"))  # Python 3.10 can't write it
    value = plain(value)
    return json.dumps(value) if isinstance(value, list) else value


def csv_text(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Write CSV; cells without a finite number are empty, and texts can't run as formulas."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows(map(_field, row) for row in [header, *rows])
    return out.getvalue()
