"""CSV as spreadsheet programs write and read it."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import read_bytes
from lm_eval_bias.report.escaping import guarded

_DELIMITERS = ",;\t"
_LOOK = 50  # rows tell the delimiter


def _decoded(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise BiasError(
            f"{path}: byte {error.start} is not UTF-8: save it as 'CSV UTF-8' in the spreadsheet program"
        ) from error


def _parsed(text: str, delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    number = 0
    try:
        for number, row in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), 1):
            yield number, row
    except csv.Error as error:
        raise BiasError(f"{path} row {number + 1}: not CSV ({error})") from error


def two_cells(row: Sequence[str]) -> bool:
    """Whether a row has two filled cells."""
    return sum(bool(cell.strip()) for cell in row) == 2


def rows(path: Path, fits: Callable[[Sequence[str]], bool] = two_cells) -> tuple[list[tuple[int, list[str]]], bytes]:
    """A table's rows with their numbers, and its bytes.

    Args:
        path: The file: UTF-8 or UTF-16; comma, semicolon or tab between cells, whichever makes most rows fit.
        fits: Whether a row is one of such a table.

    Raises:
        BiasError: The file cannot be read, or is no table.
    """
    try:
        raw = read_bytes(path)
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {error.strerror}") from error
    text = _decoded(path, raw)
    if "\0" in text:
        raise BiasError(f"{path}: holds NUL bytes: save it as 'CSV UTF-8' in the spreadsheet program")

    def fitting(delimiter: str) -> int:
        try:
            return sum(fits(row) for _, row in itertools.islice(_parsed(text, delimiter, path), _LOOK))
        except BiasError:
            return 0

    order = "\t,;" if path.suffix.lower() == ".tsv" else _DELIMITERS
    table = list(_parsed(text, max(order, key=fitting), path))
    if table and re.fullmatch(r"sep=.?", "".join(table[0][1]).strip()):  # a line for spreadsheet programs
        table = table[1:]
    return table, raw


def as_csv(table: Sequence[Sequence[str]]) -> bytes:
    """A table for spreadsheet programs: UTF-8 with a byte order mark, no formulas."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows([guarded(cell) for cell in row] for row in table)
    return buffer.getvalue().encode("utf-8-sig", "replace")
