"""A data set in StereoSet's form as one file, its published JSON layout with a few keys more; CSV of people."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.files import expanded, read_bytes, write_whole, writing
from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES
from lm_eval_bias.tasks.stereoset import released_sets
from lm_eval_bias.tasks.stereoset.own_sets.item_texts import word_of
from lm_eval_bias.tasks.stereoset.stereoset_items import (
    LABELS,
    LANGUAGES,
    TEST_KEYS,
    TESTS,
    Candidate,
    Item,
    check_known,
)

VERSION = "1.0"
_LARGEST = 1 << 27  # bytes: the five published languages together are 40 million
Row = tuple[str, list[str]]  # of a table: its place for messages, and its cells
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True)
class DataSet:
    """Items of one language.

    ``items`` are what :func:`.released_sets.read` returns; those between sentences come first.
    """

    language: str  # ISO 639, perhaps with script or region: pt-BR
    items: list[Item]
    provenance: dict[str, Any]  # what made them, as plain JSON data

    def __post_init__(self) -> None:
        """Put the items of each test together, as they stand in a file."""
        object.__setattr__(self, "items", sorted(self.items, key=lambda item: TESTS.index(item["test"])))

    @property
    def tests(self) -> list[str]:
        """The tests that it has items of."""
        return [test for test in TESTS if any(item["test"] == test for item in self.items)]


def content_of(path: str | Path) -> bytes:
    """Read a user's file; a :class:`BiasError` if it cannot be read."""
    try:
        return read_bytes(expanded(path), _LARGEST)
    except OSError as error:
        raise BiasError(f"{path}: cannot be read ({error.strerror})") from error


def text_of(path: str | Path) -> str:
    """Read a user's file of UTF-8 text; a :class:`BiasError` if it is none."""
    try:
        return content_of(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BiasError(f"{path}: is not UTF-8 text (byte {error.start}): save it as UTF-8") from error


def digest(path: Path) -> str:
    """Return the SHA-256 of a data set's file; a :class:`BiasError` if it cannot be read."""
    return hashlib.sha256(content_of(path)).hexdigest()


def check_language(language: Any, where: str) -> str:
    """Return the language code, if it is one, else raise a :class:`BiasError`."""
    if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
        raise BiasError(f"{where}: {language!r} is not a language code such as it, nl or pt-BR")
    return language


def read(path: str | Path, language: str | None = None) -> DataSet:
    """Read a data set in StereoSet's JSON layout; its own ``dev.json`` is one.

    What makes an item bad, but can be said about it by :mod:`.set_checks`, is read as it is.

    Args:
        path: The file.
        language: Its language, where the file doesn't say it.

    Raises:
        BiasError: It cannot be read, isn't in that form, or doesn't say its language; names the file and item.
    """
    try:
        content = json.loads(text_of(path))
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError as error:
        raise BiasError(f"{path}: not valid JSON (nested too deeply)") from error
    except BiasError:
        raise
    except ValueError as error:  # half a character, and numbers that JSON doesn't have, among them
        raise BiasError(f"{path}: not valid JSON ({one_line(error)})") from error
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, dict) or not any(key in data for key in TEST_KEYS.values()):
        raise BiasError(f'{path}: not in StereoSet\'s format: {{"data": {{"intrasentence": [...], ...}}}} is needed')
    if not isinstance(provenance := content.get("provenance", {}), dict):
        raise BiasError(f"{path}: 'provenance' is not an object")
    items = []
    for test, key in TEST_KEYS.items():
        if not isinstance(entries := data.get(key, []), list):
            raise BiasError(f"{path}: {key} is not a list of items")
        items += [_item_of(entry, test, f"{path}: {key} item {number}") for number, entry in enumerate(entries, 1)]
    told = content.get("language")
    if told is not None and language not in (None, told):
        raise BiasError(f"{path}: is in language {told!r}, not {language!r}")
    if told is None and language is None:
        raise BiasError(f"{path}: doesn't state its language: name it with --language")
    language = check_language(told or language, str(path))
    if not items:
        raise BiasError(f"{path}: holds no items")
    return DataSet(language, items, provenance)


def load(name: str, language: str | None = None) -> DataSet:
    """Return a published language's data set, or one from a file; raises what :func:`read` raises."""
    if name in LANGUAGES:
        return DataSet(name, released_sets.read_all(name), {"published": True})
    return read(name, language)


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    if not isinstance(entry.get(key), str):
        raise BiasError(f"{where}: {key!r} is not a text" if key in entry else f"{where}: no {key!r}")
    return str(entry[key])


def _item_of(entry: Any, test: str, where: str) -> Item:
    if not isinstance(entry, dict):
        raise BiasError(f"{where}: no object")
    where = f"{where} ({_text(entry, 'id', where)})"
    sentences = entry.get("sentences")
    if not isinstance(sentences, list) or not all(isinstance(sentence, dict) for sentence in sentences):
        raise BiasError(f"{where}: 'sentences' is not a list of candidates")
    context, target = _text(entry, "context", where), _text(entry, "target", where)
    candidates: list[Candidate] = []
    for number, sentence in enumerate(sentences, 1):
        at = f"{where}, candidate {number}"
        text = _text(sentence, "sentence", at)
        word = None
        if test == "intra":
            word = _text(sentence, "word", at) if "word" in sentence else word_of(context, text)
        check_known(label := _text(sentence, "gold_label", at), LABELS, "label", at)
        candidates.append({"id": _text(sentence, "id", at), "label": label, "sentence": text, "word": word})
    if not entry["id"].strip():
        raise BiasError(f"{where}: an empty id")
    check_known(_text(entry, "bias_type", where), BIAS_TYPES, "bias type", where)
    if len(candidates) != len(LABELS):
        raise BiasError(f"{where}: {len(candidates)} candidates: {len(LABELS)} are needed")
    return {
        "id": entry["id"],
        "test": test,
        "bias_type": entry["bias_type"],
        "target": target,
        "term": _text(entry, "term", where) if "term" in entry else target,
        "context": context,
        "candidates": candidates,
    }


def read_table(path: str | Path, fits: Callable[[list[str]], bool] = lambda row: "id" in row) -> list[Row]:
    """Read the rows of a CSV file that aren't empty, each with its place for messages.

    Args:
        path: The file, in UTF-8.
        fits: Whether a row is one of such a table: a comma, semicolon or tab stands between cells, whichever makes
            most rows fit.

    Raises:
        BiasError: The file cannot be read, or is no table.
    """
    text, rows = text_of(path), []

    def parsed(mark: str, strict: bool) -> Any:
        return csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=strict)

    number = 0
    try:
        mark = max(",;\t", key=lambda mark: sum(fits(row) for row in parsed(mark, False)))
        for number, row in enumerate(parsed(mark, True), 1):
            rows.append((f"{path} row {number}", row))
    except csv.Error as error:
        raise BiasError(f"{path} row {number + 1}: not CSV ({error})") from error
    return [(where, row) for where, row in rows if any(map(str.strip, row))]


def write(path: str | Path, data_set: DataSet) -> None:
    """Write a data set as JSON, whole or not at all; :func:`read` gives back an equal one.

    Raises:
        BiasError: The place cannot be written.
    """
    data: dict[str, list[dict[str, Any]]] = {TEST_KEYS[test]: [] for test in data_set.tests}
    for item in data_set.items:
        sentences = []
        for candidate in item["candidates"]:
            sentence = {"id": candidate["id"], "sentence": candidate["sentence"], "word": candidate["word"]}
            sentences.append({**sentence, "gold_label": candidate["label"]})
            if item["test"] == "inter":
                del sentences[-1]["word"]
        fields: Mapping[str, Any] = item
        entry = {key: fields[key] for key in ("id", "target", "term", "bias_type", "context")}
        data[TEST_KEYS[item["test"]]].append({**entry, "sentences": sentences})
    head = {"version": VERSION, "language": data_set.language, "provenance": data_set.provenance}
    with writing(path):
        write_whole(expanded(path), json.dumps({**head, "data": data}, ensure_ascii=False, indent=1).encode() + b"\n")
