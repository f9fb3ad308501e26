"""Texts about women and men that were labelled elsewhere: JSONL or CSV with their gender, or the authors' CSV pairs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import check_plain, read_text
from lm_eval_bias.runs.sample_logs import NotOurs, Saved
from lm_eval_bias.runs.saved_answers import Reader, whole
from lm_eval_bias.tasks.regard import regard_texts

LABELS = (*REGARDS, OTHER)
_GENDERS = {
    **dict.fromkeys(("female", "female_single", "f", "woman", "women", "frau"), "female"),
    **dict.fromkeys(("male", "male_single", "m", "man", "men", "mann"), "male"),
}
UNLABELLED = ""
_LONGEST = 1 << 20


def _beginning(path: Path) -> str:
    try:
        check_plain(path)
        with path.open(encoding="utf-8-sig") as file:
            lines = iter(lambda: file.readline(_LONGEST), "")  # a file of one line can be all there is
            return next((line for line in lines if line.strip()), "")
    except (OSError, UnicodeDecodeError):
        return ""


def _columns(line: str) -> set[str]:
    try:
        return {name.strip().lower() for name in next(csv.reader([line]), [])}
    except csv.Error:
        return set()


def matches(path: Path) -> bool:
    """Whether a file looks like labelled texts: JSONL with ``text`` and ``gender``, or a CSV with such columns."""
    if path.suffix.lower() == ".jsonl":
        try:
            first = json.loads(_beginning(path))
        except (ValueError, RecursionError):
            return False
        return isinstance(first, dict) and {"text", "gender"} <= {str(key).lower() for key in first}
    if path.suffix.lower() != ".csv":
        return False
    columns = _columns(_beginning(path))
    return {"text", "gender"} <= columns or ({"text", "prediction"} <= columns and _other_half(path) is not None)


def _other_half(path: Path) -> tuple[Path, Path] | None:
    """The pair ``(women's, men's)`` that a file named after one gender belongs to."""
    name = path.name
    if "FEMALE" in name:
        return path, path.with_name(name.replace("FEMALE", "MALE", 1))
    if "MALE" in name:
        return path.with_name(name.replace("MALE", "FEMALE", 1)), path
    return None


def _text(path: Path) -> str:
    try:
        return read_text(path, "utf-8-sig")
    except UnicodeDecodeError as error:
        raise BiasError(f"{path}: byte {error.start} is not UTF-8: truncated or damaged") from error
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {error.strerror}") from error


def _csv_rows(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(_text(path), newline=""))
    rows: list[tuple[str, Mapping[str, Any]]] = []
    try:
        for row in reader:
            if None in row:
                raise BiasError(f"{path} line {reader.line_num}: more fields than the header has")
            rows.append((f"{path} line {reader.line_num}", {str(key).strip().lower(): row[key] for key in row}))
    except csv.Error as error:
        raise BiasError(f"{path} line {reader.line_num}: no CSV ({error})") from error
    return rows


def _json_rows(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    rows: list[tuple[str, Mapping[str, Any]]] = []
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BiasError(f"{path} line {number}: truncated or damaged: no JSON ({error})") from error
            if not isinstance(row, dict):
                raise BiasError(f"{path} line {number}: no object with text, gender and regard")
            rows.append((f"{path} line {number}", {str(key).strip().lower(): row[key] for key in row}))
    return rows


def _label(value: Any, where: str) -> str:
    """A regard as number (0 negative, 1 neutral, 2 positive, 3 other) or word."""
    given = str(value).strip().lower() if value is not None else ""
    if given in ("", "none"):
        return UNLABELLED
    if given in LABELS:
        return given
    number = given.removesuffix(".0")
    if number in ("0", "1", "2", "3"):
        return LABELS[int(number)]
    raise BiasError(f"{where}: regard {value!r}: must be 0 (negative), 1 (neutral), 2 (positive) or 3 (other)")


def _gender(value: Any, where: str) -> str:
    found = _GENDERS.get(str(value).strip().lower())
    if found is None:
        raise NotOurs(f"{where}: gender {value!r}: must be female or male (or FEMALE_SINGLE, MALE_SINGLE, f, m)")
    return found


def _pair(path: Path) -> tuple[Path, list[tuple[str, Mapping[str, Any]]]]:
    """The rows of both files of a pair, under the women's file's name."""
    pair = _other_half(path)
    assert pair is not None
    rows: list[tuple[str, Mapping[str, Any]]] = []
    for gender, half in zip(("female", "male"), pair, strict=True):
        if not half.is_file():
            raise BiasError(f"{path}: the file about the other gender, {half.name}, does not lie beside it")
        rows += [(where, {**row, "gender": gender, "regard": row.get("prediction")}) for where, row in _csv_rows(half)]
    return pair[0], rows


def read(path: Path, language: str | None = None) -> list[Saved]:
    """Labelled texts as saved answers of ``regard_<language>``, one document a text.

    Args:
        path: JSONL or CSV with ``text``, ``gender`` and ``regard``, or one of a pair of CSV files named after FEMALE
            and MALE with ``Text`` and ``Prediction``. ``regard`` may be absent where the texts are classified next.
        language: ``de`` or ``en``; without it, that of the subjects with which most texts begin.

    Raises:
        BiasError: A damaged file, a gender or regard that is none, no text, or no language.
    """
    if path.suffix.lower() == ".jsonl":
        rows = _json_rows(path)
    elif {"text", "gender"} <= _columns(_beginning(path)):
        rows = _csv_rows(path)
    else:
        path, rows = _pair(path)
    if not rows:
        raise BiasError(f"{path}: empty: no texts")
    found = []
    for where, row in rows:
        text = row.get("text")
        if not isinstance(text, str) or not text.strip():
            raise BiasError(f"{where}: no text")
        found.append((text.strip(), _gender(row.get("gender"), where), _label(row.get("regard"), where)))
    language = language or regard_texts.language_of([text for text, _, _ in found])
    if language is None:
        raise NotOurs(f"{path}: the texts begin with no known subject: name their language with --language (de or en)")
    if language not in regard_texts.LANGUAGES:
        raise BiasError(f"--language {language}: regard is there in {' and '.join(regard_texts.LANGUAGES)}")
    has_other = any(label == OTHER for _, _, label in found)
    by, warnings = ({str(row.get(key) or "") for _, row in rows} for key in ("classifier", "warning"))
    identity = {
        "name": "; ".join(sorted(by - {""})) or "labels of the file",
        "detail": path.name,
        "labels": list(LABELS if has_other else REGARDS),
        "warning": "; ".join(sorted(warnings - {""})),
    }
    docs = [
        {
            "benchmark": "regard",
            "language": language,
            "gender": gender,
            "has_other": has_other,
            "classifier": identity,
        }
        for _, gender, _ in found
    ]
    results = [[[[text, label]]] for text, _, label in found]
    return [Saved(path, f"regard_{language}", "none", "regard", docs, results)]


READER = Reader("labelled texts about women and men (JSONL or CSV)", matches, whole(read))
