"""Files of a user's own, CSV and YAML, each checked against a JSON Schema whose descriptions are the errors' words."""

from __future__ import annotations

import csv
import io

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


def rows(
    text: str, where: str, package: str, schema: str
) -> list[tuple[str, dict[str, str]]]:
    """Read the rows of a CSV with their places; a :class:`BiasError` if one doesn't fit the schema."""
    reader = csv.DictReader(io.StringIO(text, newline=""), restkey="more", strict=True)
    listed = []
    try:
        for row in reader:
            place = f"{where}: line {reader.line_num}"
            cells = {}
            for name, cell in row.items():
                cells[name.strip().lower()] = (
                    cell.strip() if isinstance(cell, str) else cell
                )
            check(cells, place, package, schema)
            listed.append((place, cells))
    except csv.Error as error:
        raise BiasError(
            f"{where}: line {reader.line_num}: not valid CSV ({error})"
        ) from error
    if not listed:
        raise BiasError(f"{where}: it has no rows")
    return listed
