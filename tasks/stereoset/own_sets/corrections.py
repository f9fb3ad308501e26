"""What people decided about a translation's items, kept in its folder line by line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeGuard

from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.stereoset.own_sets import jsonl
from lm_eval_bias.tasks.stereoset.own_sets.parts import NAMES, Parts
from lm_eval_bias.tasks.stereoset.own_sets.review import Decision

FILE = "corrections.jsonl"


def read(folder: Path) -> dict[str, Decision]:
    """The last decision about each item.

    Raises:
        BiasError: The file is damaged.
    """
    found = {}
    for record in jsonl.read(folder / FILE, ("id", "accepted", "comment")):
        corrected, replaced = (record.get(name) for name in ("corrected", "replaced"))
        if not _are_texts(corrected) or not _are_texts(replaced):
            raise BiasError(f"{folder / FILE}: item {record['id']}: damaged: no texts; remove the line")
        found[record["id"]] = Decision(corrected, replaced, record["accepted"], record["comment"])
    return found


def _are_texts(given: Any) -> TypeGuard[Parts]:
    return isinstance(given, dict) and all(name in NAMES and isinstance(text, str) for name, text in given.items())


def add(folder: Path, decisions: Mapping[str, Decision]) -> None:
    """Keep new decisions.

    Raises:
        BiasError: The file cannot be written.
    """
    if decisions:
        jsonl.append(folder / FILE, [{"id": name, **asdict(made)} for name, made in decisions.items()])
