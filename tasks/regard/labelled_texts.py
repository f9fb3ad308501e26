"""Texts about women and men that were labelled elsewhere: JSONL or CSV with their gender, or the authors' CSV pairs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import check_plain
from lm_eval_bias.runs.sample_logs import NotOurs, Saved
from lm_eval_bias.runs.saved_answers import Reader, whole
from lm_eval_bias.tasks.regard import regard_texts
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import LABELS, Identity
from lm_eval_bias.tasks.regard.classifiers.text_files import Row, json_rows, plain_cells, read_content
from lm_eval_bias.tasks.regard.hooks import regard_document

_GENDERS = {
    **dict.fromkeys(("female", "female_single", "f", "woman", "women", "frau"), "female"),
    **dict.fromkeys(("male", "male_single", "m", "man", "men", "mann"), "male"),
}
_REGARDS = {spelling: name for i, name in enumerate(LABELS) for spelling in (name, f"{i}", f"{i}.0")} | {
    "": "",
    "none": "",
}
DAMAGED = ": truncated or damaged"
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
            row = json.loads(_beginning(path))
        except (ValueError, RecursionError):
            return False
        return isinstance(row, dict) and {"text", "gender"} <= {str(key).lower() for key in row}
    if path.suffix.lower() != ".csv":
        return False
    columns = _columns(_beginning(path))
    return {"text", "gender"} <= columns or ({"text", "prediction"} <= columns and _pair(path) is not None)


def _pair(path: Path) -> tuple[Path, Path] | None:
    """The pair ``(women's, men's)`` that a file named after one gender belongs to."""
    name = path.name
    if "FEMALE" in name:
        return path, path.with_name(name.replace("FEMALE", "MALE", 1))
    if "MALE" in name:
        return path.with_name(name.replace("MALE", "FEMALE", 1)), path
    return None


def _lowered(row: Row) -> Row:
    return {str(key).strip().lower(): value for key, value in row.items()}


def _csv_rows(path: Path) -> Iterator[tuple[str, Row]]:
    reader = csv.DictReader(io.StringIO(read_content(path, DAMAGED), newline=""))
    try:
        for row in reader:
            if None in row:
                raise BiasError(f"{path} line {reader.line_num}: more fields than the header has")
            yield f"{path} line {reader.line_num}", _lowered(plain_cells(row))
    except csv.Error as error:
        raise BiasError(f"{path} line {reader.line_num}: no CSV ({error})") from error


def _label(value: object, where: str) -> str:
    """A regard as number (0 negative, 1 neutral, 2 positive, 3 other) or word."""
    regard = _REGARDS.get(str(value).strip().lower())
    if regard is None:
        raise BiasError(f"{where}: regard {value!r}: must be 0 (negative), 1 (neutral), 2 (positive) or 3 (other)")
    return regard


def _gender(value: object, where: str) -> str:
    gender = _GENDERS.get(str(value).strip().lower())
    if gender is None:
        raise NotOurs(f"{where}: gender {value!r}: must be female or male (or FEMALE_SINGLE, MALE_SINGLE, f, m)")
    return gender


def _pair_rows(women: Path, men: Path, path: Path) -> Iterator[tuple[str, Row]]:
    for gender, file in (("female", women), ("male", men)):
        if not file.is_file():
            raise BiasError(f"{path}: the file about the other gender, {file.name}, does not lie beside it")
        for where, row in _csv_rows(file):
            yield where, {**row, "gender": gender, "regard": row.get("prediction")}


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
        lines = json_rows(path, read_content(path, DAMAGED), "text, gender and regard", "truncated or damaged: ")
        rows = [(where, _lowered(row)) for where, row in lines]
    elif {"text", "gender"} <= _columns(_beginning(path)) or (pair := _pair(path)) is None:
        rows = list(_csv_rows(path))
    else:
        rows, path = list(_pair_rows(*pair, path)), pair[0]
    texts: list[tuple[str, str, str]] = []
    sources: dict[str, set[str]] = {"classifier": set(), "warning": set()}
    for where, row in rows:
        text = row.get("text")
        if not isinstance(text, str) or not text.strip():
            raise BiasError(f"{where}: no text")
        texts.append((text.strip(), _gender(row.get("gender"), where), _label(row.get("regard"), where)))
        for key, names in sources.items():
            names.add(str(row.get(key) or ""))
    if not texts:
        raise BiasError(f"{path}: empty: no texts")
    language = language or regard_texts.language_of([text for text, _, _ in texts])
    if language is None:
        raise NotOurs(f"{path}: the texts begin with no known subject: name their language with --language (de or en)")
    if language not in regard_texts.LANGUAGES:
        raise BiasError(f"--language {language}: regard is there in {' and '.join(regard_texts.LANGUAGES)}")
    classifier, warning = ("; ".join(sorted(names - {""})) for names in sources.values())
    labels = LABELS if any(label == OTHER for _, _, label in texts) else REGARDS
    identity = Identity(classifier or "labels of the file", path.name, labels, warning)
    docs = [dict(regard_document(language, identity, {"gender": gender})) for _, gender, _ in texts]
    return [Saved(path, f"regard_{language}", "none", "regard", docs, [[[[text, label]]] for text, _, label in texts])]


READER = Reader("labelled texts about women and men (JSONL or CSV)", matches, whole(read))
