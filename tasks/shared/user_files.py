"""Files of a user's own, CSV and YAML, each checked against a JSON Schema whose descriptions are the errors' words."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from lm_eval_bias.core import Data
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import (
    LARGEST_YAML,
    expanded,
    parse_yaml,
    read_text,
    schema_validator,
    why,
)


def text_of(path: object, where: str, largest: int = LARGEST_YAML) -> str:
    """Read a user's text file; a :class:`BiasError` with its name if that fails."""
    try:
        return read_text(expanded(str(path)), "utf-8-sig", largest)
    except (OSError, ValueError) as error:
        raise BiasError(f"{where}: {why(error)}") from error


def check(content: object, where: str, package: str, schema: str) -> None:
    """Validate content by a schema of a task's package; the error names the place and the rule."""
    error = next(schema_validator(package, f"data/{schema}").iter_errors(content), None)
    if error is not None:
        place = "".join(f"{step}: " for step in error.absolute_path)
        description = error.schema.get("description")
        problems = (
            f"{repr(error.instance)[:200]} {description}"
            if description
            else error.message[:300]
        )
        raise BiasError(f"{where}: {place}{problems}")


def mapping(text: str, where: str, package: str, schema: str) -> Data:
    """Read YAML that fits a schema; a :class:`BiasError` if it doesn't."""
    content: Data = parse_yaml(text, where)
    check(content, where, package, schema)
    return content


def _bare(cell: object) -> object:
    return cell.strip() if isinstance(cell, str) else cell


def rows(
    text: str, where: str, package: str, schema: str, kind: str = ".csv"
) -> list[tuple[str, Data]]:
    """Read the rows of a CSV, or of JSON Lines, with their places; names of columns are in lower case.

    Raises:
        BiasError: One doesn't fit the schema, or there are none.
    """
    lines = io.StringIO(text, newline="")
    parsed: Iterator[Any] = map(json.loads, filter(str.strip, lines))
    first = 1
    if kind == ".csv":
        parsed = csv.DictReader(lines, restkey="more", strict=True)
        first = 2
    listed: list[tuple[str, Data]] = []
    number = 0
    try:
        for number, row in enumerate(parsed, first):
            place = f"{where}: line {getattr(parsed, 'line_num', number)}"
            # half a character can't be written
            json.dumps(row, ensure_ascii=False).encode()
            cells = row
            if isinstance(row, dict):
                cells = {name.strip().lower(): _bare(row[name]) for name in row}
            check(cells, place, package, schema)
            listed.append((place, cells))
    except (csv.Error, ValueError, RecursionError) as error:
        raise BiasError(
            f"{where}: line {number + 1}: not valid {kind[1:].upper()} ({error})"
        ) from error
    if not listed:
        raise BiasError(f"{where}: it has no rows")
    return listed
