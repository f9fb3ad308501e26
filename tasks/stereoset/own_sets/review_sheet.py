"""The review sheet: a table for spreadsheet programs with the items that need a person, a row each.

A row says why the item is listed and has for each of its texts the source, the present one and an empty cell for a
better one, a cell to accept it as it is, and one for a comment. ``version`` stands for the present texts as the person
sees them: what was accepted is these and no later ones.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.files import write_whole, writing
from lm_eval_bias.report.escaping import unguarded
from lm_eval_bias.tasks.stereoset.own_sets import csv_io, item_texts
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import PROBLEM, Finding
from lm_eval_bias.tasks.stereoset.own_sets.item_texts import NAMES, Texts
from lm_eval_bias.tasks.stereoset.stereoset_items import Item

_SOURCE, _CORRECT = "source {}", "correct {}"
_TEXTS = [column for name in NAMES for column in (_SOURCE.format(name), name, _CORRECT.format(name))]
COLUMNS = ["id", "test", "bias type", "term", "reasons", "accept", "comment", *_TEXTS, "version"]
_YES, _NO = ("x", "yes", "y", "1", "true"), ("", "no", "n", "0", "false")


def version(texts: Mapping[str, str]) -> str:
    """A short hash of an item's texts, line ends and outer spaces aside."""
    parts = [[name, " ".join(texts[name].split())] for name in NAMES if texts.get(name)]
    return "v" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]  # no spreadsheet takes it for a number


@dataclass(frozen=True)
class Edit:
    """What a person did in a row."""

    where: str  # file and row, for messages
    row: dict[str, str]  # cells by column
    corrected: Texts  # better ones
    accept: bool  # the item is to be taken in spite of the reasons
    comment: str

    def shows(self, texts: Mapping[str, str]) -> bool:
        """Whether the row shows these texts (as far as it shows any)."""
        if self.row.get("version"):
            return self.row["version"] == version(texts)
        return all(texts.get(name, "").split() == self.row[name].split() for name in NAMES if name in self.row)


def read(path: Path) -> dict[str, Edit]:
    """A sheet's rows by item, whatever spreadsheet program wrote it; nothing where there is no file.

    Raises:
        BiasError: It can't be understood; names the row.
    """
    if not path.exists():
        return {}
    table, _ = csv_io.rows(path, fits=lambda row: "id" in [cell.strip().lower() for cell in row])
    table = [(number, row) for number, row in table if any(cell.strip() for cell in row)]
    if not table:
        return {}
    head = [" ".join(cell.split()).lower() for cell in table[0][1]]
    for name in head:
        if name and name not in COLUMNS:
            raise BiasError(
                f"{path}: unknown column {name!r}.{did_you_mean(name, COLUMNS)} Notes belong in the column 'comment'"
            )
    if twice := next((name for name in head if name and head.count(name) > 1), None):
        raise BiasError(f"{path}: the column {twice!r} appears twice")
    if "id" not in head:
        raise BiasError(f"{path}: no column 'id'")
    edits: dict[str, Edit] = {}
    for number, cells in table[1:]:
        where = f"{path} row {number}"
        pairs = list(itertools.zip_longest(head, cells, fillvalue=""))
        if any(cell.strip() for name, cell in pairs if not name):
            raise BiasError(f"{where}: a cell in a column without a name: notes belong in the column 'comment'")
        edit = _edit({name: unguarded(cell.strip()) for name, cell in pairs if name}, where)
        if edit.row["id"] in edits:
            raise BiasError(f"{where}: the item {edit.row['id']} is also in a row above: keep one of them")
        edits[edit.row["id"]] = edit
    return edits


def read_about(path: Path, items: Collection[str], set_name: str) -> dict[str, Edit]:
    """The rows of a sheet, all about items of the set of this name (``data set``), else a :class:`BiasError`."""
    edits = read(path)
    for name, edit in edits.items():
        if name not in items:
            raise BiasError(f"{edit.where}: no item {name!r} in the {set_name}: correct the id, or delete the row")
    return edits


def _edit(row: dict[str, str], where: str) -> Edit:
    if not row["id"]:
        raise BiasError(f"{where}: no id: the row belongs to no item; fill it in, or delete the row")
    accept = row.get("accept", "").lower()
    if accept not in (*_YES, *_NO):
        raise BiasError(f"{where} (item {row['id']}): accept {accept[:40]!r}: must be x or empty")
    cells = {name: " ".join(row.get(_CORRECT.format(name), "").split()) for name in NAMES}
    corrected = {name: text for name, text in cells.items() if text}
    touched = bool(corrected) or accept in _YES
    if row.get("version") not in (None, "", version(row)) and not touched and all(name in row for name in NAMES):
        raise BiasError(
            f"{where} (item {row['id']}): its original texts were changed: write better texts into the columns "
            "'correct ...', or delete the row, and it is written again"
        )
    return Edit(where, row, corrected, accept in _YES, row.get("comment", ""))


def write(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write a sheet, if it isn't there as it is; none where no row is left."""
    content = csv_io.as_csv([COLUMNS, *([row.get(column, "") for column in COLUMNS] for row in rows)])
    with writing(path):
        if not rows:
            path.unlink(missing_ok=True)
        elif not path.exists() or path.read_bytes() != content:
            write_whole(path, content)


def row_of(
    item: Item, source: Item | None, texts: Texts, findings: Sequence[Finding], edit: Edit | None = None
) -> dict[str, str]:
    """An item's row; what a person wrote and couldn't be merged yet (``edit``) stays in it."""
    problems = [f"{finding.part}: {finding.text}" for finding in findings if finding.level == PROBLEM]
    notes = [f"(note) {finding.part}: {finding.text}" for finding in findings if finding.level != PROBLEM]
    originals = item_texts.of(source) if source is not None else {}
    row = {
        "id": item["id"],
        "test": item["test"],
        "bias type": item["bias_type"],
        "term": item["term"],
        "reasons": "; ".join(problems + notes),
        "comment": edit.comment if edit else "",
        "version": version(texts),
    }
    for name in NAMES:
        present = texts.get(name, "")
        better = edit.corrected.get(name, "") if edit else ""
        row[_SOURCE.format(name)] = originals.get(name, "")
        row[name] = present
        row[_CORRECT.format(name)] = better if better != present else ""
    return row
