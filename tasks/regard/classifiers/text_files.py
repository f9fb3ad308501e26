"""``lm-eval-bias classify``: label any texts, from plain text, CSV or JSONL."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import read_text
from lm_eval_bias.tasks.regard import regard_texts
from lm_eval_bias.tasks.regard.classifiers import classifier

FORMATS = (".txt", ".csv", ".jsonl")


def read(path: Path, column: str = "text") -> list[dict[str, Any]]:
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
    try:
        content = read_text(path, "utf-8-sig")
    except UnicodeDecodeError as error:
        raise BiasError(f"{path}: byte {error.start} is not UTF-8") from error
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {error.strerror}") from error
    if path.suffix.lower() == ".txt":
        lines = content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        rows: list[dict[str, Any]] = [{"text": line.strip()} for line in lines if line.strip()]
    else:
        plain = _csv(path, content) if path.suffix.lower() == ".csv" else _jsonl(path, content)
        rows = [_with_text(row, column, f"{path} row {number}") for number, row in enumerate(plain, start=1)]
    if not rows:
        raise BiasError(f"{path}: no texts")
    return rows


def _csv(path: Path, content: str) -> list[dict[str, Any]]:
    try:
        reader = csv.DictReader(io.StringIO(content, newline=""))
        rows = list(reader)
    except csv.Error as error:
        raise BiasError(f"{path}: no CSV ({error})") from error
    names = [str(name).strip().lower() for name in reader.fieldnames or []]
    if len(set(names)) < len(names):
        raise BiasError(f"{path}: two columns have the same name")
    if any(None in row for row in rows):
        raise BiasError(f"{path}: a row has more fields than the header")
    return [dict(row) for row in rows]


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON number")


def _jsonl(path: Path, content: str) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise BiasError(f"{path} line {number}: no JSON ({error})") from error
        if not isinstance(row, dict):
            raise BiasError(f"{path} line {number}: no object with a field for the text")
        rows.append(row)
    return rows


def _with_text(row: dict[str, Any], column: str, where: str) -> dict[str, Any]:
    key = next((key for key in row if str(key).strip().lower() == column.lower()), None)
    if key is None:
        raise BiasError(f"{where}: no column {column!r} (there are {', '.join(map(str, row))}): name it with --column")
    text = row[key]
    if not isinstance(text, str) or not text.strip():
        raise BiasError(f"{where}: no text in {key!r}")
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise BiasError(f"{where}: holds what is no valid text ({error.reason})") from error
    kept: dict[str, Any] = {}
    for name, value in row.items():
        own = f"{name}_before" if _taken(name) else name
        while own != name and (own in row or own in kept):
            own += "_before"
        if name != key:
            kept[own] = value
    return {"text": text.strip(), **kept}


def _taken(name: str) -> bool:
    """Whether a column would be overwritten by what the classifier adds."""
    return str(name).lower() in ("text", "regard", "label", "classifier", "warning") or str(name).startswith("p_")


def label(
    rows: list[dict[str, Any]], named: str | None, language: str | None
) -> tuple[list[dict[str, Any]], classifier.Identity]:
    """The rows with ``regard`` (0 negative, 1 neutral, 2 positive, 3 other), ``label`` and probabilities.

    Args:
        rows: Rows with a text each.
        named: The classifier; the language's default without.
        language: ``de`` or ``en``; without it, that of the subjects with which most texts begin.

    Raises:
        BiasError: No language, or no such classifier.
    """
    if named is not None and named.startswith(("hub:", "head:")):
        language = language or regard_texts.LANGUAGES[0]  # such a classifier has its own
    language = language or regard_texts.language_of([row["text"] for row in rows])
    if language is None:
        raise BiasError("the texts begin with no known subject: name their language with --language (de or en)")
    found = classifier.choose(named, language)
    labels = found.identity.labels
    done = []
    for row, (name, probabilities) in zip(rows, classifier.label(found, [row["text"] for row in rows]), strict=True):
        shares = {f"p_{key}": p for key, p in zip(labels, probabilities, strict=True)}
        by = {"classifier": found.identity.name}
        if found.identity.warning:
            by["warning"] = found.identity.warning
        done.append({**row, "regard": classifier.LABELS.index(name), "label": name, **shares, **by})
    return done, found.identity


def _columns(rows: list[dict[str, Any]]) -> dict[str, str]:
    """All rows' columns with names that differ in more than case and spaces, as :func:`read` needs them in a CSV.

    >>> _columns([{"text": "a", "Note": 1}, {"text": "b", "note ": 2}])
    {'text': 'text', 'Note': 'Note', 'note ': 'note  (2)'}
    """
    found: dict[str, str] = {}
    used: set[str] = set()
    for key in dict.fromkeys(key for row in rows for key in row):
        name, number = str(key), 1
        while name.strip().lower() in used:
            number += 1
            name = f"{key} ({number})"
        used.add(name.strip().lower())
        found[key] = name
    return found


def as_text(rows: list[dict[str, Any]], kind: str) -> str:
    """Rows as JSONL, or as CSV for the ending ``.csv``."""
    if kind == ".csv":
        out = io.StringIO(newline="")
        columns = _columns(rows)
        # with another line end, a carriage return inside a text would not be quoted
        writer = csv.DictWriter(out, list(columns), lineterminator="\r\n")
        writer.writerow(columns)
        writer.writerows(rows)
        return out.getvalue()
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
