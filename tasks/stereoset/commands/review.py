"""Review by a person: a sheet (CSV) with the items that need one, which keeps what that person writes.

A row says why the item is listed and has for each of its texts the source, the present one and an empty cell for a
better one, a cell to accept it as it is, and one for a comment. The sheet is the record: rows with corrections stay in
it, and are applied whenever it is read. ``version`` stands for the texts beside which an item was accepted.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.files import write_whole, writing
from lm_eval_bias.core.questions import BLANK
from lm_eval_bias.tasks.stereoset import own_sets
from lm_eval_bias.tasks.stereoset.commands import set_checks
from lm_eval_bias.tasks.stereoset.commands.set_checks import PROBLEM, SetFinding
from lm_eval_bias.tasks.stereoset.stereoset_items import LABELS, Item, check_items

Texts = dict[str, str]
NAMES = ("target", "context", *(name for label in LABELS for name in (f"{label} word", label)))
_NOUNS_ARE_CAPITAL = ("de", "lb", "nds")
_FINAL = (".", "!", "?", "\u3002", "\uff01", "\uff1f", "\u0964")
COLUMNS = ["id", "test", "bias type", "term", "reasons", "accept", "comment"]
COLUMNS += [column for name in NAMES for column in (f"source {name}", name, f"correct {name}")] + ["version"]
HOW = "write better texts into the columns 'correct ...', or x into 'accept'"  # what a person does in a sheet


def texts_of(item: Item) -> Texts:
    """Return an item's target, context, candidates' sentences and, within sentences, their words.

    >>> item = {"test": "intra", "target": "nurse", "context": "A BLANK nurse.",
    ...         "candidates": [{"label": "unrelated", "word": "red", "sentence": "A red nurse."}]}
    >>> texts_of(item)
    {'target': 'nurse', 'context': 'A BLANK nurse.', 'unrelated word': 'red', 'unrelated': 'A red nurse.'}
    """
    texts = {"target": item["target"], "context": item["context"]}
    for candidate in item["candidates"]:
        if item["test"] == "intra":
            texts[f"{candidate['label']} word"] = candidate["word"] or ""
        texts[candidate["label"]] = candidate["sentence"]
    return texts


def requested(item: Item) -> Texts:
    """Return what an engine has to translate: within sentences no candidates' sentences, which follow from the rest.

    The released translations were made in this way: all their sentences are the context with the word in its blank.
    """
    return {name: text for name, text in texts_of(item).items() if item["test"] == "inter" or name not in LABELS}


def like_source(text: str, source: str, language: str) -> str:
    """Take off the full stop and the capital letter that engines give to a word that stands alone.

    >>> like_source("Gentile.", "kind", "it"), like_source("Duro", "Hard", "it"), like_source("Gut.", "good", "de")
    ('gentile', 'Duro', 'Gut')
    """
    if source[-1:] not in _FINAL and text[-1:] in _FINAL and len(text) > 1:
        text = text[:-1].rstrip()
    if source[:1].islower() and language.partition("-")[0] not in _NOUNS_ARE_CAPITAL and text[1:] == text[1:].lower():
        text = text[:1].lower() + text[1:]
    return text


def completed(item: Item, texts: Mapping[str, str], corrected: Mapping[str, str]) -> Texts:
    """Apply a person's corrections to texts, and add what follows from them.

    Within sentences a candidate's sentence is the context with the word in its blank, unless a person wrote another;
    then its word is what stands in the blank, unless they wrote that, too.
    """
    complete = {**texts, **corrected}
    for label in LABELS if item["test"] == "intra" and "context" in complete else ():
        word, context = f"{label} word", complete["context"]
        if label not in corrected and word in complete:
            complete[label] = context.replace(BLANK, complete[word])
        elif label in corrected and word not in corrected and (filling := own_sets.word_of(context, corrected[label])):
            complete[word] = filling
    return complete


def with_texts(item: Item, texts: Mapping[str, str]) -> Item:
    """Return the item with other texts; its ids, labels, bias type and term stay."""
    candidates = item["candidates"]
    return {
        **item,
        "target": texts["target"],
        "context": texts["context"],
        "candidates": [
            {**c, "sentence": texts[c["label"]], "word": texts.get(f"{c['label']} word", c["word"])} for c in candidates
        ],
    }


def read_table(
    path: str | Path, fits: Callable[[list[str]], bool] = lambda row: "id" in row
) -> list[tuple[str, list[str]]]:
    """Read the rows of a CSV file that aren't empty, each with its place for messages.

    Between its cells stands a comma, a semicolon or a tab, whichever makes most rows fit.

    Raises:
        BiasError: The file cannot be read, or is no table.
    """
    text = own_sets.text_of(path)

    def parsed(mark: str, strict: bool) -> Any:
        return csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=strict)

    reader = parsed(max(",;\t", key=lambda mark: sum(map(fits, parsed(mark, False)))), True)
    try:
        rows = list(reader)
    except csv.Error as error:
        raise BiasError(f"{path} line {reader.line_num}: not CSV ({error})") from error
    return [(f"{path} row {number}", row) for number, row in enumerate(rows, 1) if any(map(str.strip, row))]


@dataclass(frozen=True)
class ReviewState:
    """An item after its review."""

    texts: Texts  # with corrections; some may lack
    findings: list[SetFinding]
    corrected: bool
    accepted: bool  # a person took these texts in spite of the findings

    @property
    def open(self) -> bool:
        """Whether it needs a person before it can be used."""
        return not self.accepted and any(finding.level == PROBLEM for finding in self.findings)

    @property
    def way(self) -> str:
        """How it came about: ``left out``, ``accepted``, ``corrected`` or ``translated``."""
        if self.open or self.accepted:
            return "left out" if self.open else "accepted"
        return "corrected" if self.corrected else "translated"


def version(texts: Mapping[str, str]) -> str:
    """Return a short hash of an item's texts, line ends and outer spaces aside."""
    parts = [[name, " ".join(texts[name].split())] for name in NAMES if texts.get(name)]
    return "v" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]  # no spreadsheet takes it for a number


def as_csv(rows: Iterable[Sequence[str]]) -> bytes:
    """Return a table for spreadsheet programs: CSV in UTF-8 with a byte order mark."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue().encode("utf-8-sig", "replace")


def read_sheet(path: Path, items: Mapping[str, Item]) -> dict[str, dict[str, str]]:
    """Read a sheet's rows by item, in any order of columns, of which all but ``id`` may be gone; none without a file.

    Raises:
        BiasError: It can't be understood; names the row.
    """
    table = read_table(path) if path.exists() else []
    head = [cell.strip() for cell in table[0][1]] if table else ["id"]
    if unknown := [name for name in head if name and name not in COLUMNS]:
        hint = did_you_mean(unknown[0], COLUMNS)
        raise BiasError(f"{path}: unknown column {unknown[0]!r}.{hint} Notes belong in the column 'comment'")
    if "id" not in head:
        raise BiasError(f"{path}: no column 'id'")
    rows: dict[str, dict[str, str]] = {}
    for where, cells in table[1:]:
        row = {name: " ".join(cell.split()) for name, cell in zip(head, cells, strict=False) if name}
        name = row.get("id", "")
        if name not in items:
            raise BiasError(f"{where}: no item {name!r} in the source: correct the id, or delete the row")
        where = f"{where} (item {name})"
        if name in rows:
            raise BiasError(f"{where}: the item is also in a row above: keep one of them")
        if row.get("accept", "") not in ("", "x", "X"):
            raise BiasError(f"{where}: accept {row['accept'][:40]!r}: must be x or empty")
        corrected = [part for part in NAMES if row.get(f"correct {part}")]
        if foreign := [part for part in corrected if part not in texts_of(items[name])]:
            raise BiasError(f"{where}: it has no {foreign[0]!r} to correct: clear that cell")
        is_changed = row.get("version", version(row)) not in ("", version(row)) and set(NAMES) <= set(row)
        if is_changed and not corrected and not row.get("accept"):
            raise BiasError(
                f"{where}: its original texts were changed: write better texts into the columns 'correct ...', or "
                "delete the row, and it is written again"
            )
        rows[name] = row
    return rows


def review(
    sources: Mapping[str, Item], texts: Mapping[str, Texts], language: str, sheet: Path
) -> dict[str, ReviewState]:
    """Apply a sheet to present texts (some may lack), check them, and write it anew; no file where nothing is listed.

    Raises:
        BiasError: The sheet can't be understood or written.
    """
    rows = read_sheet(sheet, sources)
    states = {name: _state(sources[name], texts[name], language, rows.get(name, {})) for name in texts}
    listed = [name for name, state in states.items() if state.open or state.accepted or _written(rows.get(name, {}))]
    table: list[dict[str, str]] = []
    for name in sorted(listed, key=lambda name: not states[name].open):
        source, state, shown = sources[name], states[name], completed(sources[name], texts[name], {})
        reasons = [f"{f.part}: {f.text}" for f in state.findings if f.level == PROBLEM]
        reasons += [f"(note) {f.part}: {f.text}" for f in state.findings if f.level != PROBLEM]
        row = {"id": name, "test": source["test"], "bias type": source["bias_type"], "term": source["term"]}
        row |= {"reasons": "; ".join(reasons), "accept": "x" if state.accepted else "", "version": version(shown)}
        originals = {f"source {part}": text for part, text in texts_of(source).items()}
        table.append(_written(rows.get(name, {})) | row | shown | originals)
    table += [row for name, row in rows.items() if name not in texts]
    with writing(sheet):
        if table:
            write_whole(sheet, as_csv([COLUMNS, *([row.get(column, "") for column in COLUMNS] for row in table)]))
        else:
            sheet.unlink(missing_ok=True)
    return states


def _written(row: Mapping[str, str]) -> dict[str, str]:
    """Return what a person wrote beside what they accepted."""
    return {column: cell for column, cell in row.items() if cell and column.partition(" ")[0] in ("comment", "correct")}


def _state(source: Item, present: Texts, language: str, row: Mapping[str, str]) -> ReviewState:
    better = {part: row[f"correct {part}"] for part in NAMES if row.get(f"correct {part}")}
    texts = completed(source, present, better)
    if lacking := [part for part in requested(source) if part not in texts]:
        findings = [SetFinding("lacking", part, "no translation yet") for part in lacking]
        return ReviewState(texts, findings, bool(better), False)
    item = with_texts(source, texts)
    findings = set_checks.check_item(item, source, language)
    seen = row.get("version") in (None, "", version(completed(source, present, {})))
    accepted = bool(findings and seen and row.get("accept"))
    try:
        check_items([item], "")
    except BiasError:  # no task can have it
        accepted = False
    return ReviewState(texts, findings, bool(better), accepted)
