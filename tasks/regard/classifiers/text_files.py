"""``lm-eval-bias regard classify``: label any texts, from plain text, CSV or JSONL."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import read_text
from lm_eval_bias.report.escaping import guarded, unguarded
from lm_eval_bias.tasks.regard import regard_texts
from lm_eval_bias.tasks.regard.classifiers import classifier
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import LABELS, Identity

FORMATS = (".txt", ".csv", ".jsonl")
LARGEST = 1 << 28  # bytes: 256 MiB, some million texts
Row = dict[str, Any]


def read_content(path: Path, damage: str = "") -> str:
    """A file's text; ``damage`` is what an error about its bytes adds.

    Raises:
        BiasError: It cannot be read, is not UTF-8, or holds NUL bytes.
    """
    try:
        content = read_text(path, "utf-8-sig", LARGEST)
    except UnicodeDecodeError as error:
        raise BiasError(f"{path}: byte {error.start} is not UTF-8{damage}") from error
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {error.strerror}") from error
    if "\0" in content:
        line = content.count("\n", 0, content.index("\0")) + 1
        raise BiasError(f"{path} line {line}: holds a NUL byte, so it is not a text file{damage}")
    return content


def json_rows(
    path: Path, content: str, needed: str, damage: str = "", parse_constant: Callable[[str], Any] | None = None
) -> Iterator[tuple[str, Row]]:
    """Where each line of JSON stands that isn't empty, and its object.

    Raises:
        BiasError: A line is not JSON (with ``damage`` before that), no object (with what is ``needed``), has a key
            twice, a NUL byte or half a character.
    """
    for number, line in enumerate(content.split("\n"), start=1):
        if line.strip():
            try:
                row = json.loads(line, parse_constant=parse_constant)
                json.dumps(row, ensure_ascii=False).encode()
            except BiasError as error:
                raise BiasError(f"{path} line {number}: {error}") from error
            except UnicodeEncodeError as error:
                raise BiasError(f"{path} line {number}: holds invalid text ({error.reason})") from error
            except (ValueError, RecursionError) as error:
                raise BiasError(f"{path} line {number}: {damage}not JSON ({error})") from error
            if not isinstance(row, dict):
                raise BiasError(f"{path} line {number}: not an object with {needed}")
            if any("\0" in value for value in row.values() if isinstance(value, str)):
                raise BiasError(f"{path} line {number}: holds a NUL byte, so it is not a text file")
            yield f"{path} line {number}", row


def lowered(names: Iterable[str], where: str) -> list[str]:
    """Names of columns or fields in lower case, without spaces around them.

    Raises:
        BiasError: Two of them are the same then: which one is meant?
    """
    lower_names = [str(name).strip().lower() for name in names]
    if doubled := next((name for name in lower_names if lower_names.count(name) > 1), None):
        raise BiasError(f"{where}: {doubled!r} appears twice, ignoring case: keep one of them")
    return lower_names


def csv_rows(path: Path, content: str) -> Iterator[tuple[str, Row]]:
    """Where each row of a CSV ends, and its cells by column.

    Raises:
        BiasError: No CSV, two columns of the same name, or a row with more cells than there are columns.
    """
    reader = csv.DictReader(io.StringIO(content, newline=""), strict=True)
    try:
        lowered(map(unguarded, reader.fieldnames or []), f"{path} line {reader.line_num}")
        for row in reader:
            if None in row:
                raise BiasError(f"{path} line {reader.line_num}: more fields than the header has")
            yield f"{path} line {reader.line_num}", plain_cells(row)
    except csv.Error as error:
        raise BiasError(f"{path} line {reader.line_num}: not CSV ({error})") from error


def read(path: Path, column: str = "text") -> list[Row]:
    """Rows with a text each.

    Args:
        path: ``.txt`` (one text a line), ``.csv`` or ``.jsonl``.
        column: Which column or field holds the text (case doesn't matter).

    Returns:
        The rows, the text under ``text``; other columns as they are.

    Raises:
        BiasError: Not readable, no such column, a row without text, no texts at all.
    """
    if path.suffix.lower() not in FORMATS:
        raise BiasError(f"{path}: must end in {', '.join(FORMATS)}")
    content = read_content(path)
    if path.suffix.lower() == ".txt":
        lines = io.StringIO(content, newline=None)
        rows: list[Row] = [{"text": line.strip()} for line in lines if line.strip()]
    else:
        is_table = path.suffix.lower() == ".csv"
        objects = json_rows(path, content, "a field for the text", parse_constant=_no_number)
        rows = [_with_text(row, column, where) for where, row in (csv_rows(path, content) if is_table else objects)]
    if not rows:
        raise BiasError(f"{path}: no texts")
    return rows


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _with_text(row: Row, column: str, where: str) -> Row:
    keys = [key for key in row if str(key).strip().lower() == column.lower()]
    if not keys:
        raise BiasError(f"{where}: no column {column!r} (there are {', '.join(map(str, row))}): name it with --column")
    lowered(keys, where)
    text = row[key := keys[0]]
    if not isinstance(text, str) or not text.strip():
        raise BiasError(f"{where}: no text in {key!r}")
    columns: Row = {}
    for name, value in row.items():
        new_name = f"{name}_before" if _is_output_column(name) else name
        while new_name != name and (new_name in row or new_name in columns):
            new_name += "_before"
        if name != key:
            columns[new_name] = value
    return {"text": text.strip(), **columns}


def _is_output_column(name: str) -> bool:
    """Whether a column would be overwritten by what the classifier adds."""
    return str(name).lower() in ("text", "regard", "label", "classifier", "warning") or str(name).startswith("p_")


def label(rows: list[Row], name: str | None, language: str | None) -> tuple[list[Row], Identity]:
    """The rows with ``regard`` (0 negative, 1 neutral, 2 positive, 3 other), ``label`` and probabilities.

    Args:
        rows: Rows with a text each.
        name: The classifier; the language's default without.
        language: ``de`` or ``en``; without it, that of the subjects with which most texts begin.

    Raises:
        BiasError: No language, texts that begin as those of another do, or no such classifier.
    """
    texts = [row["text"] for row in rows]
    if language is None and name is not None and name.startswith(("hub:", "head:")):
        language = regard_texts.LANGUAGES[0]  # such a classifier has its own
    else:
        language = language or regard_texts.language_of(texts)
        if language is None:
            raise BiasError(
                "the texts don't begin with a known subject: name their language with --language (de or en)"
            )
        regard_texts.check_language({f"text {number}": text for number, text in enumerate(texts, start=1)}, language)
    model = classifier.choose(name, language)
    identity = model.identity
    source = {"classifier": identity.name, **({"warning": identity.warning} if identity.warning else {})}
    labelled_rows = []
    for row, (regard, probabilities) in zip(rows, classifier.label(model, texts), strict=True):
        shares = {f"p_{key}": p for key, p in zip(identity.labels, probabilities, strict=True)}
        labelled_rows.append({**row, "regard": LABELS.index(regard), "label": regard, **shares, **source})
    return labelled_rows, identity


def _columns(rows: list[Row]) -> dict[str, str]:
    """All rows' columns with names that differ in more than case and spaces, as :func:`read` needs them in a CSV.

    >>> _columns([{"text": "a", "Note": 1}, {"text": "b", "note ": 2}])
    {'text': 'text', 'Note': 'Note', 'note ': 'note  (2)'}
    """
    columns: dict[str, str] = {}
    lower_names: set[str] = set()
    for key in dict.fromkeys(key for row in rows for key in row):
        names = (key if number == 1 else f"{key} ({number})" for number in itertools.count(1))
        columns[key] = next(name for name in names if name.strip().lower() not in lower_names)
        lower_names.add(columns[key].strip().lower())
    return columns


def _cell(value: Any) -> Any:
    """A value as a cell: text is guarded against spreadsheets, but for plain numbers, which they take for numbers."""
    if not isinstance(value, str) or re.fullmatch(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?", value):
        return value
    return guarded(value)


def plain_cells(row: Row) -> Row:
    """A row of a CSV with the texts that :func:`as_text` guarded as they were."""
    return {
        unguarded(key) if isinstance(key, str) else key: unguarded(value) if isinstance(value, str) else value
        for key, value in row.items()
    }


def as_text(rows: list[Row], kind: str) -> str:
    """Rows as JSONL, or as CSV for the ending ``.csv``."""
    if kind == ".csv":
        buffer = io.StringIO(newline="")
        columns = _columns(rows)
        # with another line end, a carriage return inside a text would not be quoted
        writer = csv.DictWriter(buffer, list(columns), lineterminator="\r\n")
        writer.writerow({key: guarded(name) for key, name in columns.items()})
        writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
        return buffer.getvalue()
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
