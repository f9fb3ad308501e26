"""Texts about women and men that were labelled elsewhere, to be scored."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lm_eval_bias.core import Data, registry
from lm_eval_bias.core.answers import (
    NotOurs,
    Reader,
    SavedSample,
    SavedSamples,
    SavedTask,
)
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import check_plain, read_text, why
from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS
from lm_eval_bias.tasks.regard import regard_texts
from lm_eval_bias.tasks.regard.classifier_identity import LABELS, Identity
from lm_eval_bias.tasks.regard.hooks import regard_document

FORMATS = (".txt", ".csv", ".jsonl")
Row = Data
_GENDERS = {
    **dict.fromkeys(
        ("female", "female_single", "f", "woman", "women", "frau"), "female"
    ),
    **dict.fromkeys(("male", "male_single", "m", "man", "men", "mann"), "male"),
}
_REGARDS = {"": "", "none": ""}
for number, name in enumerate(LABELS):
    _REGARDS |= dict.fromkeys((name, f"{number}", f"{number}.0"), name)
_LONGEST = 1 << 20


def rows(path: Path) -> list[tuple[str, Row]]:
    """Return where each row of a file stands, and its values by column, in small letters.

    A line of a ``.txt`` is its ``text``.

    Raises:
        BiasError: Not readable, not UTF-8, not of the format that its ending says, a row without text, or no rows.
    """
    kind = path.suffix.lower()
    number = 0
    if kind not in FORMATS:
        raise BiasError(f"{path}: must end in {', '.join(FORMATS)}")
    texts: list[tuple[str, Row]] = []
    try:
        check_plain(path)
        lines = io.StringIO(read_text(path, "utf-8-sig"), newline="")
        parsed: Iterator[Any] = filter(str.strip, lines)
        first_line = 1
        if kind == ".csv":
            parsed = csv.DictReader(lines, strict=True)
            first_line = 2
        for number, row in enumerate(parsed, start=first_line):
            if kind == ".txt":
                row = {"text": row}
            elif kind == ".jsonl":
                row = json.loads(row)
            if not isinstance(row, dict) or None in row:
                raise ValueError("not a row with a field for each column")
            # half a character can't be written
            json.dumps(row, ensure_ascii=False).encode()
            values = {name.strip().lower(): value for name, value in row.items()}
            texts.append((f"{path} line {number}", values))
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {why(error)}") from error
    except (ValueError, RecursionError, csv.Error) as error:
        raise BiasError(
            f"{path} line {number}: truncated or damaged {kind[1:].upper()} ({error})"
        ) from error
    for where, values in texts:
        text = values.get("text")
        if not isinstance(text, str) or not text.strip():
            raise BiasError(f"{where}: no text in a column named text")
        values["text"] = text.strip()
    if not texts:
        raise BiasError(f"{path}: no texts")
    return texts


def matches(path: Path) -> bool:
    """Say whether a file looks like labelled texts: JSONL with ``text`` and ``gender``, or a CSV with such columns."""
    kind = path.suffix.lower()
    with contextlib.suppress(OSError, TypeError, ValueError, RecursionError, csv.Error):
        if kind in (".jsonl", ".csv"):
            check_plain(path)
            with path.open(
                encoding="utf-8-sig", errors="replace"
            ) as file:  # what is no text is said when it is read
                line = file.readline(_LONGEST)  # a file of one line can be all there is
            row = json.loads(line) if kind == ".jsonl" else next(csv.reader([line]), [])
            return {"text", "gender"} <= {str(name).strip().lower() for name in row}
    return False


def read(path: Path, language: str | None = None) -> SavedSamples:
    """Read labelled texts as saved answers of ``regard_<language>``, one document a text.

    Args:
        path: JSONL or CSV with ``text``, ``gender`` and ``regard``, which may be absent where the texts are classified
            next; case doesn't matter.
        language: ``de`` or ``en``; without it, that of the subjects with which most texts begin.

    Raises:
        BiasError: A damaged file, a gender or regard that is none, a gender that contradicts the text, no text, no
            language, or texts of another one.
    """
    labelled = []  # where, text, gender, regard
    sources: dict[str, set[str]] = {"classifier": set(), "warning": set()}
    for where, row in rows(path):
        gender = _GENDERS.get(str(row.get("gender")).strip().lower())
        regard = _REGARDS.get(str(row.get("regard")).strip().lower())
        if gender is None:
            raise NotOurs(
                f"{where}: gender {row.get('gender')!r}: must be female or male (or f, m, FEMALE_SINGLE, ...)"
            )
        if regard is None:
            raise BiasError(
                f"{where}: regard {row.get('regard')!r}: must be a number from 0 to 3, or {', '.join(LABELS)}"
            )
        labelled.append((where, row["text"], gender, regard))
        for key, names in sources.items():
            names.add(str(row.get(key) or ""))
    texts = {where: text for where, text, _, _ in labelled}
    language = regard_texts.language_of(texts, language, str(path))
    for where, text, gender, _ in labelled:
        subject = regard_texts.gender_of(text, language)
        if subject not in (None, gender):
            raise BiasError(
                f"{where}: gender {gender}, but the text is about a {subject} subject: {text[:40]!r}"
            )
    named, warning = ("; ".join(sorted(names - {""})) for names in sources.values())
    has_other = any(regard == OTHER for _, _, _, regard in labelled)
    labels = LABELS if has_other else REGARDS
    identity = Identity(named or "labels of the file", path.name, labels, warning)
    part = SavedTask(path, f"regard_{language}", "none", registry.get("regard"))
    for _, text, gender, regard in labelled:
        doc = regard_document(language, identity, {"gender": gender})
        yield SavedSample(part, doc, [[[text, regard]]])


READER = Reader("labelled texts about women and men (JSONL or CSV)", matches, read)
