"""What people decided about a translation's items, kept in its folder line by line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from lm_eval_bias.errors import BiasError
from lm_eval_bias.stereosets import lines
from lm_eval_bias.stereosets.parts import NAMES
from lm_eval_bias.stereosets.review import Decision

FILE = "corrections.jsonl"


def read(folder: Path) -> dict[str, Decision]:
    """The last decision about each item.

    Raises:
        BiasError: The file is damaged.
    """
    found = {}
    for record in lines.read(folder / FILE, ("id", "accepted", "comment")):
        texts = [record.get("corrected"), record.get("replaced")]
        for own in texts:
            if not isinstance(own, dict) or not all(k in NAMES and isinstance(v, str) for k, v in own.items()):
                raise BiasError(f"{folder / FILE}: item {record['id']}: damaged: no texts; remove the line")
        found[record["id"]] = Decision(*texts, record["accepted"], record["comment"])
    return found


def add(folder: Path, decisions: Mapping[str, Decision]) -> None:
    """Keep new decisions.

    Raises:
        BiasError: The file cannot be written.
    """
    if decisions:
        lines.append(folder / FILE, [{"id": name, **asdict(made)} for name, made in decisions.items()])
