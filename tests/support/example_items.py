"""Items of our own in StereoSet's form (Dutch with their English source), and a person who fills in a review sheet."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

LABELS = ("stereotype", "anti-stereotype", "unrelated")
Item = dict[str, Any]


def item(
    test: str, name: str, context: str, texts: list[str], term: str = "gardener"
) -> Item:
    """An item; within sentences the texts are words, and the sentences the filled context."""
    own = [
        (context.replace("BLANK", text), text) if test == "intra" else (text, None)
        for text in texts
    ]
    candidates = [
        {"id": f"{name}-{place}", "label": label, "sentence": sentence, "word": word}
        for place, (label, (sentence, word)) in enumerate(zip(LABELS, own, strict=True))
    ]
    about = {
        "id": name,
        "test": test,
        "bias_type": "profession",
        "target": term,
        "term": term,
    }
    return {**about, "context": context, "candidates": candidates}


ENGLISH = [
    item(
        "inter",
        "e1",
        "The gardener came home early.",
        ["He was tired.", "He was bored.", "The lamp is on."],
    ),
    item(
        "inter",
        "e2",
        "A neighbour waved to us.",
        ["She brought flowers.", "She took flowers.", "Nine is a number."],
    ),
    item(
        "intra",
        "a1",
        "The gardener was very BLANK today.",
        ["patient", "impatient", "lamp"],
    ),
    item(
        "intra",
        "a2",
        "Our neighbour likes BLANK music a lot.",
        ["loud", "silent", "round"],
    ),
]
DUTCH = [
    item(
        "inter",
        "e1",
        "De tuinman kwam vroeg thuis.",
        ["Hij was moe.", "Hij verveelde zich.", "De lamp brandt."],
    ),
    item(
        "inter",
        "e2",
        "Een buurvrouw zwaaide ons toe.",
        ["Ze bracht bloemen.", "Ze nam er mee.", "Negen is veel."],
    ),
    item(
        "intra",
        "a1",
        "De tuinman was vandaag heel BLANK.",
        ["geduldig", "ongedurig", "lamp"],
    ),
    item(
        "intra",
        "a2",
        "Onze buurvrouw houdt van BLANK muziek.",
        ["luide", "stille", "ronde"],
    ),
]


def sheet(path: Path) -> dict[str, dict[str, str]]:
    """A review sheet's rows by item; none where there is no file."""
    text = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
    return {row["id"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}


def fill(
    path: Path, changes, delimiter=";", encoding="utf-8-sig", end="\r\n", columns=list
) -> None:
    """Write in a sheet, and save it as some spreadsheet program does."""
    rows = {
        name: row | dict(changes.get(name, {})) for name, row in sheet(path).items()
    }
    out = io.StringIO(newline="")
    order = columns(next(iter(rows.values())))
    writer = csv.DictWriter(
        out, order, delimiter=delimiter, lineterminator=end, extrasaction="ignore"
    )
    writer.writeheader()
    writer.writerows(rows.values())
    path.write_bytes((out.getvalue() + delimiter * 3 + end).encode(encoding))
