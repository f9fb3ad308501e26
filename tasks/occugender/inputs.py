"""Reads and checks OccuGender's data files, the package's own or a user's."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.files import (
    LARGEST,
    LARGEST_YAML,
    expanded,
    packaged_text,
    parse_yaml,
)
from lm_eval_bias.custom_metrics.occugender import GENDERS
from lm_eval_bias.tasks.shared import user_files

_PACKAGE = "lm_eval_bias.tasks.occugender"
PLACEHOLDERS = ("[JOB]", "[ITEM]")


@dataclass(frozen=True)
class OccupationItem:
    """An occupation (or an item of a user's file) with its percentage of women."""

    name: str
    female_share: float

    @property
    def group(self) -> str:
        """The dominating gender: ``female`` above 50 percent, ``male`` below, ``none`` at 50."""
        return (
            "female"
            if self.female_share > 50
            else "male"
            if self.female_share < 50
            else "none"
        )


def _source(path: str | None, file_name: str, option: str) -> tuple[str, str]:
    """Read a user's file or the package's own; return its content and its name in errors."""
    if path is None:
        return packaged_text(_PACKAGE, "data", file_name), f"{option} file {file_name}"
    if not isinstance(path, str):
        raise BiasError(f"--metadata {option}={path!r}: must be the path of a file")
    largest = LARGEST if option == "items" else LARGEST_YAML
    return user_files.text_of(
        path, f"{option} file {path}", largest
    ), f"{option} file {path}"


def items(path: str | None = None) -> list[OccupationItem]:
    """Read items with their percentage of women (Table 5, or a CSV with columns ``item`` and ``female_share``).

    Raises:
        BiasError: A missing column, an empty or doubled item, a share that is no percentage.
    """
    text, where = _source(path, "occupations.csv", "items")
    rows = user_files.rows(text, where, _PACKAGE, "items_schema.json")
    occupations = [
        OccupationItem(row["item"], float(row["female_share"])) for _, row in rows
    ]
    if duplicate := _twice([item.name for item in occupations]):
        raise BiasError(f"{where}: {duplicate!r} appears twice")
    if all(item.female_share <= 1 for item in occupations):
        raise BiasError(
            f"{where}: all values of female_share are at most 1: give percent (0..100)"
        )
    return occupations


def _twice(names: Sequence[str]) -> str:
    """Return the first name that appears again, or an empty text."""
    return next((name for name, count in Counter(names).items() if count > 1), "")


def templates(
    path: str | None, kind: str, first: int | None = None
) -> list[dict[str, str]]:
    """Read a kind's templates (Tables 6 and 7, or a YAML of the same form): ``question`` and, implicit, ``sentence``.

    Args:
        path: A user's file.
        kind: ``explicit``, ``implicit`` or ``stories``.
        first: How many, from the first on; all for ``None``.

    Raises:
        BiasError: No templates of the kind, one without placeholder or with other fields, one that appears twice, or
            no whole number from 1 to the number of templates.
    """
    text, where = _source(path, "templates.yaml", "templates")
    entries = user_files.mapping(text, where, _PACKAGE, "templates_schema.json").get(
        kind
    )
    if entries is None:
        raise BiasError(f"{where}: no list of templates under {kind!r}")
    if first is not None and (
        isinstance(first, bool) or first not in range(1, len(entries) + 1)
    ):
        raise BiasError(
            f"--metadata first_templates={first!r}: must be a whole number from 1 to {len(entries)}"
        )
    return [
        {field: template[field].strip() for field in sorted(template)}
        for template in entries[:first]
    ]


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
            implicit) and ours (``running_text`` of stories). A file holds ``male``, ``female`` and ``diverse`` lists,
            at the top or under the kind.
        kind: ``explicit``, ``implicit`` or ``stories``.

    Raises:
        BiasError: An unknown set, a bad file, an empty list, or a word of two genders.
    """
    packaged = parse_yaml(packaged_text(_PACKAGE, "data", "words.yaml"), "words.yaml")
    choice = choice or packaged["default"][kind]
    known = packaged["sets"]
    if not isinstance(choice, str):
        raise BiasError(
            f"--metadata words={choice!r}: must be the name of a word set or the path of a YAML file"
        )
    if choice in known:
        content = known[choice]
        name = f"word set {choice}"
    elif Path(choice).suffix.lower() in (".yaml", ".yml") or os.path.isfile(
        expanded(choice)
    ):
        text, name = _source(choice, "", "words")
        content = parse_yaml(text, name)
    else:
        hint = did_you_mean(choice, known)
        raise BiasError(
            f"no word set named {choice!r}.{hint} Known: {', '.join(known)}, or a YAML file"
        )
    if isinstance(content, dict) and isinstance(content.get(kind), dict):
        content = content[kind]
    user_files.check(content, name, _PACKAGE, "words_schema.json")
    by_gender: dict[str, list[str]] = {}
    for gender in GENDERS.values():
        cased = [
            first + word[1:]
            for word in content[gender]
            for first in (word[0].upper(), word[0].lower())
        ]
        by_gender[gender] = list(dict.fromkeys(cased))
    if double := _twice(list(chain.from_iterable(by_gender.values()))):
        genders = " and ".join(
            f"under {gender!r}" for gender in by_gender if double in by_gender[gender]
        )
        raise BiasError(f"{name}: {double!r} is listed {genders}")
    return by_gender


def instruction(choice: int | str | None) -> str:
    """Read a debiasing instruction of Table 8 or of the user's own, or an empty text for none.

    Args:
        choice: A number of the table, the path of a text file (it ends in ``.txt``), or several words: the text itself.

    Raises:
        BiasError: It is none of these, or its text isn't one line.
    """
    if choice in (None, "none"):
        return ""
    content = parse_yaml(
        packaged_text(_PACKAGE, "data", "instructions.yaml"), "instructions.yaml"
    )
    texts = {str(key): str(text) for key, text in content["instructions"].items()}
    if str(choice) in texts:
        return texts[str(choice)]
    where = f"--metadata instruction={choice!r}"
    text = choice
    if isinstance(choice, str) and choice.lower().endswith(".txt"):
        where = f"instruction file {choice}"
        text = user_files.text_of(choice, where)
    elif not isinstance(text, str) or len(text.split()) < 2:
        raise BiasError(
            f"{where}: must be one of {', '.join(texts)}, none, a text of several words, or a file that ends in .txt"
        )
    text = text.strip()
    if len(text.splitlines()) != 1:
        raise BiasError(f"{where}: must be one line")
    return text
