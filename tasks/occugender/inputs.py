"""Reads and checks OccuGender's data files, the package's own or a user's."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.files import LARGEST, LARGEST_YAML, expanded, packaged_text, parse_yaml, read_text
from lm_eval_bias.custom_metrics.occugender import GENDERS

PLACEHOLDERS = ("[JOB]", "[ITEM]")


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
        return packaged_text("lm_eval_bias.tasks.occugender", "data", file_name), f"{option} file {file_name}"
    try:
        largest = LARGEST if option == "items" else LARGEST_YAML
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
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = list(reader.fieldnames or [])
        missing = [column for column in ("item", "female_share") if column not in columns]
        if missing:
            raise BiasError(f"{where}: no column {' and no column '.join(missing)}; it has {columns}")
        rows = [_item(row, f"{where} line {reader.line_num}") for row in reader]
    except csv.Error as error:
        raise BiasError(f"{where} line {reader.line_num}: not valid CSV ({error})") from error
    if not rows:
        raise BiasError(f"{where}: holds no items")
    if duplicate := _twice([item.name for item in rows]):
        raise BiasError(f"{where}: {duplicate!r} appears twice")
    if all(item.female_share <= 1 for item in rows):
        raise BiasError(f"{where}: all values of female_share are at most 1: give percent (0..100)")
    return rows


def _twice(names: Sequence[str]) -> str:
    """Return the first name that appears again, or an empty text."""
    return next((name for name, count in Counter(names).items() if count > 1), "")


def _item(row: Mapping[str, Any], where: str) -> OccupationItem:
    name = (row["item"] or "").strip()
    if None in row:
        raise BiasError(f"{where}: more fields than columns: write decimals with a point, quote items with a comma")
    if not name:
        raise BiasError(f"{where}: the item is empty")
    try:
        share = float(row["female_share"])
    except (TypeError, ValueError):
        raise BiasError(f"{where}: female_share {row['female_share']!r} of {name!r} is not a number") from None
    if not 0 <= share <= 100:
        raise BiasError(f"{where}: female_share {row['female_share']} of {name!r} is outside 0..100 percent")
    return OccupationItem(name, share)


def templates(path: str | None, kind: str, first: int | None = None) -> list[dict[str, str]]:
    """Read a kind's templates (Tables 6 and 7, or a YAML of the same form): ``question`` and, implicit, ``sentence``.

    Args:
        path: A user's file.
        kind: ``explicit`` or ``implicit``.
        first: How many, from the first on; all for ``None``.

    Raises:
        BiasError: No templates of the kind, one without placeholder or with other fields, one that appears twice, or
            no whole number from 1 to the number of templates.
    """
    content, file = _yaml(path, "templates.yaml", "templates")
    entries = content.get(kind)
    if not isinstance(entries, list) or not entries:
        raise BiasError(f"{file}: no list of templates under {kind!r}")
    fields = ("question", "sentence") if kind == "implicit" else ("question",)
    for number, template in enumerate(entries, start=1):
        where = f"{file}: {kind} template {number}"
        if not isinstance(template, dict) or set(template) != set(fields):
            found = f"has {', '.join(map(str, template))}" if isinstance(template, dict) else f"is {template!r}"
            raise BiasError(f"{where}: must be a mapping with {' and '.join(fields)}, {found[:100]}")
        for field, text in template.items():
            if not any(mark in str(text) for mark in PLACEHOLDERS):
                raise BiasError(f"{where}: {field} has no placeholder {' or '.join(PLACEHOLDERS)}: {text!r}")
        if template in entries[: number - 1]:
            raise BiasError(f"{where}: appears twice")
    if first is not None and (isinstance(first, bool) or first not in range(1, len(entries) + 1)):
        raise BiasError(f"--metadata first_templates={first!r}: must be a whole number from 1 to {len(entries)}")
    return [{field: str(template[field]).strip() for field in fields} for template in entries[:first]]


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
    packaged, _ = _yaml(None, "words.yaml", "words")
    choice = choice or packaged["default"][kind]
    known = packaged["sets"]
    if not isinstance(choice, str):
        raise BiasError(f"--metadata words={choice!r}: must be the name of a word set or the path of a YAML file")
    if choice in known:
        content, name = known[choice], f"word set {choice}"
    elif Path(choice).suffix.lower() in (".yaml", ".yml") or os.path.isfile(expanded(choice)):
        content, name = _yaml(choice, "", "words")
    else:
        hint = did_you_mean(choice, known)
        raise BiasError(f"no word set named {choice!r}.{hint} Known: {', '.join(known)}, or a YAML file")
    content = content[kind] if isinstance(content.get(kind), dict) else content
    by_gender: dict[str, list[str]] = {}
    for gender in GENDERS.values():
        entries = content.get(gender)
        if not isinstance(entries, list) or not entries:
            raise BiasError(f"{name}: no list of words under {gender!r} for {kind} prompts")
        for word in entries:
            if not isinstance(word, str) or not word.strip() or word != word.strip():
                raise BiasError(f'{name}: {word!r} under {gender!r} is not a word (quote words such as "no" and "1")')
        cased = [first + word[1:] for word in entries for first in (word[0].upper(), word[0].lower())]
        by_gender[gender] = list(dict.fromkeys(cased))
    if double := _twice([word for own in by_gender.values() for word in own]):
        genders = " and ".join(f"under {gender!r}" for gender, own in by_gender.items() if double in own)
        raise BiasError(f"{name}: {double!r} is listed {genders}")
    return by_gender


def instruction(number: int | str | None) -> str:
    """Read a debiasing instruction of Table 8, or an empty text for none.

    Raises:
        BiasError: A number that is not in the table.
    """
    if number in (None, "none"):
        return ""
    content, _ = _yaml(None, "instructions.yaml", "instructions")
    texts = {str(key): str(text) for key, text in content["instructions"].items()}
    if str(number) not in texts:
        raise BiasError(f"--metadata instruction={number!r}: must be one of {', '.join(texts)}, or none")
    return texts[str(number)]
