"""Texts about women and men that were labelled elsewhere: JSONL or CSV with their gender, or the authors' CSV pairs."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import check_plain
from lm_eval_bias.runs.sample_logs import NotOurs, Saved
from lm_eval_bias.runs.saved_answers import Reader, whole
from lm_eval_bias.tasks.regard import regard_texts
from lm_eval_bias.tasks.regard.classifiers.classifier_identity import LABELS, Identity
from lm_eval_bias.tasks.regard.classifiers.text_files import Row, csv_rows, json_rows, lowered, read_content
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
        with path.open(encoding="utf-8-sig", errors="replace") as file:  # what is no text is said when it is read
            lines = iter(lambda: file.readline(_LONGEST), "")  # a file of one line can be all there is
            return next((line for line in lines if line.strip()), "")
    except OSError:
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


def _rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Where each row of a file stands, and its values by column in lower case."""
    content = read_content(path, DAMAGED)
    if path.suffix.lower() == ".jsonl":
        rows = json_rows(path, content, "text, gender and regard", "truncated or damaged: ")
    else:
        rows = csv_rows(path, content)
    return ((where, dict(zip(lowered(row, where), row.values(), strict=True))) for where, row in rows)


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


class _Text(NamedTuple):
    """A labelled text, and where it stands."""

    where: str
    text: str
    gender: str
    regard: str


def _check_contradictions(texts: Sequence[_Text], language: str) -> None:
    """Refuse a gender that isn't the subject's, and two regards of one text.

    Raises:
        BiasError: Names the first such text, and how many there are.
    """
    wrong = [text for text in texts if regard_texts.gender_of(text.text, language) not in (None, text.gender)]
    for where, text, gender, _ in wrong:
        raise BiasError(
            f"{where}: gender {gender}, but the text is about a {regard_texts.gender_of(text, language)} subject: "
            f"{text[:40]!r} ({len(wrong):,} of {len(texts):,} texts contradict their gender)"
        )
    regards: dict[tuple[str, str], str] = {}
    for where, text, gender, regard in texts:
        key = (text, gender)
        if regard and regards.setdefault(key, regard) != regard:
            raise BiasError(
                f"{where}: regard {regard}, but the same text is {regards[key]} above: {text[:40]!r}: give each "
                "text one label, the majority's where several people labelled it"
            )


def _pair_rows(women: Path, men: Path, path: Path) -> Iterator[tuple[str, Row]]:
    for gender, file in (("female", women), ("male", men)):
        if not file.is_file():
            raise BiasError(f"{path}: the file about the other gender, {file.name}, is missing beside it")
        for where, row in _rows(file):
            yield where, {**row, "gender": gender, "regard": row.get("prediction")}


def read(path: Path, language: str | None = None) -> list[Saved]:
    """Labelled texts as saved answers of ``regard_<language>``, one document a text.

    Args:
        path: JSONL or CSV with ``text``, ``gender`` and ``regard``, or one of a pair of CSV files named after FEMALE
            and MALE with ``Text`` and ``Prediction``. ``regard`` may be absent where the texts are classified next.
        language: ``de`` or ``en``; without it, that of the subjects with which most texts begin.

    Raises:
        BiasError: A damaged file, a gender or regard that is none or contradicts the text or another row, no text, no
            language, or texts of another one.
    """
    pair = None if {"text", "gender"} <= _columns(_beginning(path)) else _pair(path)
    if path.suffix.lower() == ".jsonl" or pair is None:
        rows = list(_rows(path))
    else:
        rows, path = list(_pair_rows(*pair, path)), pair[0]
    texts: list[_Text] = []
    sources: dict[str, set[str]] = {"classifier": set(), "warning": set()}
    for where, row in rows:
        text = row.get("text")
        if not isinstance(text, str) or not text.strip():
            raise BiasError(f"{where}: no text")
        gender, regard = _gender(row.get("gender"), where), _label(row.get("regard"), where)
        texts.append(_Text(where, text.strip(), gender, regard))
        for key, names in sources.items():
            names.add(str(row.get(key) or ""))
    if not texts:
        raise BiasError(f"{path}: the file is empty")
    language = language or regard_texts.language_of([text.text for text in texts])
    if language is None:
        raise NotOurs(
            f"{path}: the texts don't begin with a known subject: name their language with --language (de or en)"
        )
    if language not in regard_texts.LANGUAGES:
        raise BiasError(f"--language {language}: regard is available in {' and '.join(regard_texts.LANGUAGES)}")
    regard_texts.check_language({text.where: text.text for text in texts}, language)
    _check_contradictions(texts, language)
    classifier, warning = ("; ".join(sorted(names - {""})) for names in sources.values())
    labels = LABELS if any(text.regard == OTHER for text in texts) else REGARDS
    identity = Identity(classifier or "labels of the file", path.name, labels, warning)
    docs = [dict(regard_document(language, identity, {"gender": text.gender})) for text in texts]
    results = [[[[text.text, text.regard]]] for text in texts]
    return [Saved(path, f"regard_{language}", "none", "regard", docs, results)]


READER = Reader("labelled texts about women and men (JSONL or CSV)", matches, whole(read))
