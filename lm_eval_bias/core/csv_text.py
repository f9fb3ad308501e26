"""The writer of every CSV: nothing in a cell that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

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


_ENDS = ("interval", "fixed_interval", "simultaneous", "range", "rank")


def flat(record: Mapping[str, object]) -> dict[str, object]:
    """Return a record with each end of its intervals by a name of its own.

    >>> flat({"score": "ss", "interval": (0.5, 0.7), "range": None})
    {'score': 'ss', 'interval_low': 0.5, 'interval_high': 0.7, 'range_low': None, 'range_high': None}
    """
    cells: dict[str, object] = {}
    for name, value in record.items():
        if name in _ENDS:
            ends = value if isinstance(value, (list, tuple)) else (None, None)
            cells[f"{name}_low"], cells[f"{name}_high"] = ends
        else:
            cells[name] = value
    return cells


def csv_of(records: Iterable[Mapping[str, object]]) -> str:
    """Write a line of CSV for each record, with a column for each of their names."""
    rows = list(map(flat, records))
    header = list(dict.fromkeys(chain.from_iterable(rows)))
    return csv_text(header, ([row.get(name) for name in header] for row in rows))
