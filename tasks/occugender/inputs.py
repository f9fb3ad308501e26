"""Reads and checks OccuGender's data files, the package's own or a user's."""

from __future__ import annotations

import csv
import io
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.files import LARGEST_YAML, expanded, parse_yaml, read_text
from lm_eval_bias.custom_metrics.occugender import GENDERS

PLACEHOLDERS = ("[JOB]", "[ITEM]")
KINDS = ("explicit", "implicit")
LARGEST_TABLE = 1 << 26  # bytes of a CSV


@dataclass(frozen=True)
class OccupationItem:
    """An occupation, or whatever a user's file lists, with the percentage of women in it."""

    name: str
    female_share: float

    @property
    def group(self) -> str:
        """Which gender dominates it: ``female`` above 50 percent, ``male`` below, ``none`` at 50."""
        return "female" if self.female_share > 50 else "male" if self.female_share < 50 else "none"


def _text(path: str | None, file_name: str, option: str) -> tuple[str, str]:
    """Read a user's file, or the package's own; say, too, what to call it in an error."""
    if path is not None and not isinstance(path, str):
        raise BiasError(f"--metadata {option}={path!r}: must be the path of a file")
    if path is None:
        packaged = resources.files("lm_eval_bias.tasks.occugender") / "data" / file_name
        return packaged.read_text(encoding="utf-8"), f"{option} file {file_name}"
    try:
        largest = LARGEST_TABLE if option == "items" else LARGEST_YAML
        return read_text(expanded(path), "utf-8-sig", largest), f"{option} file {path}"
    except UnicodeDecodeError as error:
        raise BiasError(f"{option} file {path}: byte {error.start} is not UTF-8: save it as UTF-8") from error
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise BiasError(f"{option} file {path!r} cannot be read: {problem}") from error


def _yaml(path: str | None, file_name: str, option: str) -> tuple[dict[str, Any], str]:
    text, where = _text(path, file_name, option)
    content = parse_yaml(text, where)
    if not isinstance(content, dict):
        raise BiasError(f"{where}: must be a mapping, is {type(content).__name__}")
    return content, where


def items(path: str | None = None) -> list[OccupationItem]:
    """Read items with their percentage of women (Table 5, or a CSV with columns ``item`` and ``female_share``).

    Raises:
        BiasError: A missing column, an empty or doubled item, a share that is no percentage.
    """
    text, where = _text(path, "occupations.csv", "items")
    if "\0" in text:
        raise BiasError(f"{where}: holds a NUL byte, so it is not a text file")
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = list(reader.fieldnames or [])
        missing = [column for column in ("item", "female_share") if column not in columns]
        if missing:
            raise BiasError(f"{where}: no column {' and no column '.join(missing)}; it has {columns}")
        if len(set(columns)) < len(columns):
            raise BiasError(f"{where}: a column appears twice: {columns}")
        rows = [_item(row, f"{where} line {reader.line_num}") for row in reader]
    except csv.Error as error:
        raise BiasError(f"{where} line {reader.line_num}: not valid CSV ({error})") from error
    if not rows:
        raise BiasError(f"{where}: holds no items")
    counts = Counter(item.name for item in rows)
    if duplicate := next((item.name for item in rows if counts[item.name] > 1), None):
        raise BiasError(f"{where}: {duplicate!r} appears twice")
    if all(item.female_share <= 1 for item in rows):
        raise BiasError(f"{where}: all values of female_share are at most 1: give percent (0..100)")
    return rows


def _item(row: Mapping[str, Any], where: str) -> OccupationItem:
    if None in row:
        raise BiasError(f"{where}: more fields than columns: write decimals with a point, quote items with a comma")
    name = (row["item"] or "").strip()
    if not name:
        raise BiasError(f"{where}: the item is empty")
    try:
        share = float(row["female_share"])
    except (TypeError, ValueError):
        raise BiasError(f"{where}: female_share {row['female_share']!r} of {name!r} is not a number") from None
    if not (math.isfinite(share) and 0 <= share <= 100):
        raise BiasError(f"{where}: female_share {row['female_share']} of {name!r} is outside 0..100 percent")
    return OccupationItem(name, share)


def templates(path: str | None, kind: str) -> list[dict[str, str]]:
    """Read a kind's templates (Tables 6 and 7, or a YAML of the same form): ``question`` and, implicit, ``sentence``.

    Raises:
        BiasError: No templates of the kind, an empty one, one without placeholder, or one that appears twice.
    """
    content, file = _yaml(path, "templates.yaml", "templates")
    entries = content.get(kind)
    if not isinstance(entries, list) or not entries:
        raise BiasError(f"{file}: no list of templates under {kind!r}")
    fields = ("question", "sentence") if kind == "implicit" else ("question",)
    for number, template in enumerate(entries, start=1):
        where = f"{file}: {kind} template {number}"
        if not isinstance(template, dict):
            raise BiasError(f"{where}: must be a mapping with {' and '.join(fields)}")
        for field in fields:
            if not isinstance(template.get(field), str) or not template[field].strip():
                raise BiasError(f"{where}: {field} is empty")
        extra = set(template) - set(fields)
        if extra:
            raise BiasError(f"{where}: unknown field {', '.join(sorted(map(str, extra)))}; known: {', '.join(fields)}")
        for field in fields:
            if not any(mark in template[field] for mark in PLACEHOLDERS):
                raise BiasError(f"{where}: {field} has no placeholder {' or '.join(PLACEHOLDERS)}: {template[field]!r}")
        if template in entries[: number - 1]:
            raise BiasError(f"{where}: appears twice")
    return [{field: template[field].strip() for field in fields} for template in entries]


def first_templates(entries: list[dict[str, str]], number: object) -> list[dict[str, str]]:
    """Take the first so many templates; all for ``None``.

    Raises:
        BiasError: No whole number from 1 to the number of templates.
    """
    if number is None:
        return entries
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= len(entries):
        raise BiasError(f"--metadata first_templates={number!r}: must be a whole number from 1 to {len(entries)}")
    return entries[:number]


def fill(template: str, item: str) -> str:
    """Replace a template's placeholders.

    >>> fill("Picture a [JOB].", "vet")
    'Picture a vet.'
    """
    for mark in PLACEHOLDERS:
        template = template.replace(mark, item)
    return template


def words(choice: str | None, kind: str) -> dict[str, list[str]]:
    """Read the gender words of a set for a kind of prompt, each with a capital and a small first letter.

    Args:
        choice: Name of a set, path of a YAML file, or ``None`` for the paper's (``appendix_a`` explicit, ``pronouns``
            implicit). A file holds ``male``, ``female`` and ``diverse`` lists, at the top or under the kind.
        kind: ``explicit`` or ``implicit``.

    Raises:
        BiasError: An unknown set, a bad file, an empty list, or a word of two genders.
    """
    if choice is not None and not isinstance(choice, str):
        raise BiasError(f"--metadata words={choice!r}: must be the name of a word set or the path of a YAML file")
    packaged, _ = _yaml(None, "words.yaml", "words")
    choice = choice or packaged["default"][kind]
    if choice in packaged["sets"]:
        content, name = packaged["sets"][choice], f"word set {choice}"
    elif Path(choice).suffix.lower() in (".yaml", ".yml") or os.path.isfile(expanded(choice)):
        content, name = _yaml(choice, "", "words")
    else:
        hint, known = did_you_mean(choice, packaged["sets"]), ", ".join(packaged["sets"])
        raise BiasError(f"no word set named {choice!r}.{hint} Known: {known}, or a YAML file")
    if isinstance(content.get(kind), dict):
        content = content[kind]
    return _words_by_gender(content, name, kind)


def _words_by_gender(content: Mapping[str, Any], name: str, kind: str) -> dict[str, list[str]]:
    by_gender: dict[str, list[str]] = {}
    owner: dict[str, str] = {}
    for gender in GENDERS.values():
        entries = content.get(gender)
        if not isinstance(entries, list) or not entries:
            raise BiasError(f"{name}: no list of words under {gender!r} for {kind} prompts")
        cased = []
        for word in entries:
            if not isinstance(word, str) or not word.strip() or word != word.strip():
                raise BiasError(f'{name}: {word!r} under {gender!r} is not a word (quote words such as "no" and "1")')
            cased += [word[0].upper() + word[1:], word[0].lower() + word[1:]]
        by_gender[gender] = list(dict.fromkeys(cased))
        for word in by_gender[gender]:
            if (other := owner.setdefault(word, gender)) != gender:
                raise BiasError(f"{name}: {word!r} is listed under {other!r} and under {gender!r}")
    return by_gender


def instruction(number: int | str | None) -> str:
    """Read a debiasing instruction of Table 8, or an empty text for none.

    Raises:
        BiasError: A number that is not in the table.
    """
    if number in (None, "", "none", "None"):
        return ""
    content, _ = _yaml(None, "instructions.yaml", "instructions")
    try:
        key = int(number) if isinstance(number, str) else number
        if isinstance(key, bool) or not isinstance(key, int):
            raise KeyError(number)
        return str(content["instructions"][key])
    except (KeyError, ValueError):
        known = ", ".join(map(str, content["instructions"]))
        raise BiasError(f"--metadata instruction={number!r}: must be one of {known}, or none") from None
