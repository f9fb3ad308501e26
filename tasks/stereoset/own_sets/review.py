"""The review sheet: items that need a person, their corrections, and what becomes of them.

A sheet is a table for a spreadsheet program with a row an item: why it is listed, for each of its texts the source, the
present one and an empty cell for a better one, a cell to accept it as it is, and one for a comment. ``version`` stands
for the present texts as the person sees them: what was accepted is these and no later ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.files import write_whole
from lm_eval_bias.tasks.stereoset import released_sets
from lm_eval_bias.tasks.stereoset.own_sets import csv_io, parts
from lm_eval_bias.tasks.stereoset.own_sets.parts import NAMES, Parts
from lm_eval_bias.tasks.stereoset.own_sets.set_checks import PROBLEM, Finding
from lm_eval_bias.tasks.stereoset.released_sets import Item

SOURCE, CORRECT = "source {}", "correct {}"
_TEXTS = [column for name in NAMES for column in (SOURCE.format(name), name, CORRECT.format(name))]
COLUMNS = ["id", "test", "bias type", "term", "reasons", "accept", "comment", *_TEXTS, "version"]
_YES, _NO = ("x", "yes", "y", "1", "true"), ("", "no", "n", "0", "false")


def version(texts: Mapping[str, str]) -> str:
    """A short hash of an item's texts, line ends and outer spaces aside."""
    shown = [[name, " ".join(texts[name].split())] for name in NAMES if texts.get(name)]
    return "v" + hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:12]  # no spreadsheet takes it for a number


@dataclass(frozen=True)
class Edit:
    """What a person did in a row.

    Attributes:
        where: File and row, for messages.
        row: The row's cells by column.
        corrected: Better texts.
        accept: Whether the item is to be taken in spite of the reasons.
        comment: Anything.
    """

    where: str
    row: dict[str, str]
    corrected: Parts
    accept: bool
    comment: str


@dataclass
class Decision:
    """What was decided about an item.

    Attributes:
        corrected: Texts by a person.
        replaced: What stood there before.
        accepted: The :func:`version` that was accepted in spite of findings, or nothing.
        comment: The last comment.
    """

    corrected: Parts = field(default_factory=dict)
    replaced: Parts = field(default_factory=dict)
    accepted: str = ""
    comment: str = ""


@dataclass(frozen=True)
class State:
    """An item after all decisions.

    Attributes:
        texts: Its texts; some may lack.
        findings: What is to be said about them.
        accepted: A person took exactly these texts as they are.
        open: It needs a person before it can be used.
    """

    texts: Parts
    findings: list[Finding]
    accepted: bool
    open: bool


Check = Callable[[str, Parts], list[Finding]]


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
                f"{path}: unknown column {name!r}.{did_you_mean(name, COLUMNS)} Notes belong into the column 'comment'"
            )
    twice = next((name for name in head if name and head.count(name) > 1), None)
    if twice or "id" not in head:
        raise BiasError(f"{path}: " + (f"the column {twice!r} stands there twice" if twice else "no column 'id'"))
    found: dict[str, Edit] = {}
    for number, cells in table[1:]:
        where = f"{path} row {number}"
        if any(cell.strip() for cell, name in zip(cells, [*head, *[""] * len(cells)], strict=False) if not name):
            raise BiasError(f"{where}: a cell without a column's name above it: notes belong into the column 'comment'")
        texts = (csv_io.plain(cell.strip()) for cell in [*cells, *[""] * len(head)])
        row = {name: text for name, text in zip(head, texts, strict=False) if name}
        edit = _edit(row, where)
        if row["id"] in found:
            raise BiasError(f"{where}: the item {row['id']} stands in a row above too: keep one of them")
        found[row["id"]] = edit
    return found


def _edit(row: dict[str, str], where: str) -> Edit:
    if not row["id"]:
        raise BiasError(f"{where}: no id: the row belongs to no item; fill it in, or delete the row")
    accept = row.get("accept", "").lower()
    if accept not in (*_YES, *_NO):
        raise BiasError(f"{where} (item {row['id']}): accept {accept[:40]!r}: must be x or empty")
    named = {name: " ".join(row.get(CORRECT.format(name), "").split()) for name in NAMES}
    corrected = {name: text for name, text in named.items() if text}
    told = row.get("version")
    touched = bool(corrected) or accept in _YES
    if told and told != version(row) and not touched and all(name in row for name in NAMES):
        raise BiasError(
            f"{where} (item {row['id']}): its present texts were changed: put better texts into the columns named "
            "'correct ...', or delete the row: it is written anew"
        )
    return Edit(where, row, corrected, accept in _YES, row.get("comment", ""))


def write(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Write a sheet, if it isn't there as it is; none where no row is left.

    Raises:
        BiasError: It cannot be written.
    """
    content = csv_io.as_csv([COLUMNS, *rows])
    try:
        if not rows:
            path.unlink(missing_ok=True)
        elif not path.exists() or path.read_bytes() != content:
            write_whole(path, content)
    except OSError as error:
        raise BiasError(f"{path} cannot be written: {error.strerror}") from error


def row_of(item: Item, source: Item | None, state: State, pending: Pending | None) -> list[str]:
    """An item's row; what a person wrote and couldn't be merged yet stays in it, with what is wrong with that."""
    findings = pending.findings if pending else state.findings
    edit = pending.edit if pending else None
    problems = [finding for finding in findings if finding.level == PROBLEM]
    notes = [finding for finding in findings if finding.level != PROBLEM]
    said = [f"{finding.part}: {finding.text}" for finding in problems]
    said += [f"(note) {finding.part}: {finding.text}" for finding in notes]
    originals = parts.of(source) if source is not None else {}
    cells = {
        "id": item["id"],
        "test": item["test"],
        "bias type": item["bias_type"],
        "term": item["term"],
        "reasons": "; ".join(said),
        "comment": edit.comment if edit else "",
        "version": version(state.texts),
    }
    for name in NAMES:
        cells[SOURCE.format(name)] = originals.get(name, "")
        cells[name] = state.texts.get(name, "")
        better = edit.corrected.get(name, "") if edit else ""
        cells[CORRECT.format(name)] = better if better != state.texts.get(name) else ""
    return [cells.get(column, "") for column in COLUMNS]


def state_of(item: Item, found: Parts, decision: Decision, check: Check) -> State:
    """An item with what was decided about it."""
    texts = parts.completed(item, found, decision.corrected)
    findings = check(item["id"], texts)
    accepted = bool(findings) and decision.accepted == version(texts) and _usable(item, texts)
    problem = any(finding.level == PROBLEM for finding in findings)
    return State(texts, findings, accepted, problem and not accepted)


def _usable(item: Item, texts: Parts) -> bool:
    """Whether a task can have the item at all: with every text, and a blank where there has to be one."""
    if len(texts) < len(parts.of(item)):
        return False
    try:
        released_sets.check_items([parts.with_texts(item, texts)], "")
    except BiasError:
        return False
    return True


def listed(state: State) -> bool:
    """Whether an item has a row of its own: it needs a person, or grammar may decide between its candidates."""
    return state.open or (not state.accepted and any(finding.code == "grammar" for finding in state.findings))


@dataclass(frozen=True)
class Pending:
    """An edit that can't be merged yet, and what is to be said about the item with it."""

    edit: Edit
    findings: list[Finding]


@dataclass(frozen=True)
class Merged:
    """What came of a sheet.

    Attributes:
        decisions: New ones, by item.
        pending: What can't be merged yet, by item.
        stale: Items whose acceptance was for other texts than the present ones.
    """

    decisions: dict[str, Decision]
    pending: dict[str, Pending]
    stale: list[str]


def merge(
    items: Mapping[str, Item],
    found: Mapping[str, Parts],
    decided: Mapping[str, Decision],
    edits: Iterable[Edit],
    check: Check,
) -> Merged:
    """Check what a person wrote like everything else, and take it in where it holds or was accepted.

    Args:
        items: By id, those that edits are about.
        found: Their texts before any decision.
        decided: Earlier decisions.
        edits: Of a sheet.
        check: Finds what is to be said about an item's texts.

    Raises:
        BiasError: A correction of a text that the item doesn't have.
    """
    made = Merged({}, {}, [])
    for edit in edits:
        name = edit.row["id"]
        item, before = items[name], decided.get(name, Decision())
        present = parts.completed(item, found[name], before.corrected)
        for part in edit.corrected:
            if part not in parts.of(item):
                raise BiasError(f"{edit.where} (item {name}): it has no {part!r} to correct: clear that cell")
        changed = {part: text for part, text in edit.corrected.items() if present.get(part) != text}
        after = Decision(
            {**before.corrected, **changed},
            {**before.replaced, **{part: present.get(part, "") for part in changed}},
            before.accepted,
            edit.comment or before.comment,
        )
        seen = _seen(edit, present)
        state = state_of(item, found[name], after, check)
        if edit.accept and not state.accepted:
            if seen:
                after.accepted = version(state.texts)
                state = state_of(item, found[name], after, check)
            else:
                made.stale.append(name)
        if state.open or (listed(state) and not changed):
            if edit.corrected or edit.comment:
                made.pending[name] = Pending(edit, state.findings)
        elif after != before:
            made.decisions[name] = after
    return made


def _seen(edit: Edit, present: Mapping[str, str]) -> bool:
    """Whether the row shows the present texts (as far as it shows any)."""
    if edit.row.get("version"):
        return edit.row["version"] == version(present)
    shown = {name: edit.row[name].split() for name in NAMES if name in edit.row}
    return all(present.get(name, "").split() == words for name, words in shown.items())
