"""A data set in StereoSet's form as one file: its published JSON layout with a few keys more, or a table."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES
from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.files import expanded, read_bytes, write_whole, writing
from lm_eval_bias.scoring.questions import BLANK
from lm_eval_bias.tasks.stereoset import released_sets
from lm_eval_bias.tasks.stereoset.own_sets.item_texts import word_of
from lm_eval_bias.tasks.stereoset.stereoset_items import LABELS, TEST_KEYS, TESTS, Candidate, Item, check_known

VERSION = "1.0"
_LARGEST = 1 << 27  # bytes: the five published languages together are 40 million
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_DELIMITERS = ",;\t"


@dataclass(frozen=True)
class DataSet:
    """Items of one language.

    Attributes:
        language: Its code (ISO 639, perhaps with script or region: ``pt-BR``).
        items: As :func:`.released_sets.read` returns them; items between sentences come first.
        provenance: What made them, as plain JSON data.
    """

    language: str
    items: list[Item]
    provenance: dict[str, Any]

    def __post_init__(self) -> None:
        """Put the items of each test together, as they stand in a file."""
        object.__setattr__(self, "items", sorted(self.items, key=lambda item: TESTS.index(item["test"])))

    @property
    def tests(self) -> list[str]:
        """The tests that it has items of."""
        return [test for test in TESTS if any(item["test"] == test for item in self.items)]


def _content(path: str | Path) -> bytes:
    try:
        return read_bytes(expanded(path), _LARGEST)
    except OSError as error:
        raise BiasError(f"{path}: cannot be read ({error.strerror})") from error


def digest(path: Path) -> str:
    """SHA-256 of a data set's file; a file that cannot be read is a :class:`BiasError`."""
    return hashlib.sha256(_content(path)).hexdigest()


def check_language(language: Any, where: str) -> str:
    """The language code, if it is one, else a :class:`BiasError`."""
    if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
        raise BiasError(f"{where}: {language!r} is not a language code such as it, nl or pt-BR")
    return language


def read(path: str | Path, language: str | None = None) -> DataSet:
    """A data set from a file: ``.csv`` (or ``.tsv``) is a table in the wide form of the released frames, else JSON.

    What makes an item bad, but can be said about it by :mod:`.set_checks`, is read as it is.

    Args:
        path: The file. StereoSet's own ``dev.json`` is one.
        language: Its language, where the file doesn't say it.

    Raises:
        BiasError: It cannot be read, isn't in that form, or doesn't say its language; names the file and item.
    """
    try:
        text = _content(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BiasError(f"{path}: is not UTF-8 text (byte {error.start}): save it as UTF-8") from error
    is_table = Path(path).suffix.lower() in (".csv", ".tsv")
    file_language, items, provenance = _from_table(text, str(path)) if is_table else _from_json(text, str(path))
    if file_language is not None and language is not None and file_language != language:
        raise BiasError(f"{path}: is in language {file_language!r}, not {language!r}")
    language = file_language if language is None else language
    if language is None:
        raise BiasError(f"{path}: doesn't state its language: name it with --language")
    if not items:
        raise BiasError(f"{path}: holds no items")
    return DataSet(check_language(language, str(path)), items, provenance)


def _from_json(text: str, where: str) -> tuple[str | None, list[Item], dict[str, Any]]:
    """Language (if it says one), items and provenance of StereoSet's JSON layout."""
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError as error:
        raise BiasError(f"{where}: not valid JSON (nested too deeply)") from error
    except ValueError as error:  # half a character, and numbers too large for JSON, among them
        raise BiasError(f"{where}: not valid JSON ({one_line(error)})") from error
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, dict) or not any(key in data for key in TEST_KEYS.values()):
        raise BiasError(f'{where}: not in StereoSet\'s format: {{"data": {{"intrasentence": [...], ...}}}} is needed')
    provenance = content.get("provenance", {})
    if not isinstance(provenance, dict):
        raise BiasError(f"{where}: 'provenance' is not an object")
    items = []
    for test, key in TEST_KEYS.items():
        entries = data.get(key, [])
        if not isinstance(entries, list):
            raise BiasError(f"{where}: {key} is not a list of items")
        items += [_item_of(entry, test, f"{where}: {key} item {number}") for number, entry in enumerate(entries, 1)]
    language = content.get("language")
    return (None if language is None else check_language(language, where)), items, provenance


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    if key not in entry:
        raise BiasError(f"{where}: no {key!r}")
    if not isinstance(entry[key], str):
        raise BiasError(f"{where}: {key!r} is not a text")
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
        label = _text(sentence, "gold_label", at)
        candidates.append({"id": _text(sentence, "id", at), "label": label, "sentence": text, "word": word})
    item: Item = {
        "id": entry["id"],
        "test": test,
        "bias_type": _text(entry, "bias_type", where),
        "target": target,
        "term": _text(entry, "term", where) if "term" in entry else target,
        "context": context,
        "candidates": candidates,
    }
    return _check_kinds(item, where)


def _check_kinds(item: Item, where: str) -> Item:
    """The item, if its parts are of the known kinds, else a :class:`BiasError`."""
    if not item["id"].strip():
        raise BiasError(f"{where}: an empty id")
    check_known(item["bias_type"], BIAS_TYPES, "bias type", where)
    if len(item["candidates"]) != len(LABELS):
        raise BiasError(f"{where}: {len(item['candidates'])} candidates: {len(LABELS)} are needed")
    for candidate in item["candidates"]:
        check_known(candidate["label"], LABELS, "label", where)
    return item


def _from_table(text: str, where: str) -> tuple[str | None, list[Item], dict[str, Any]]:
    """Language (if it has such a column) and items of a table."""
    delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        lines = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise BiasError(f"{where} line {reader.line_num}: not a valid table ({error})") from error
    if not lines:
        raise BiasError(f"{where}: is empty")
    header = [name.strip() for name in lines[0][1]]
    if twice := next((name for name in header if name and header.count(name) > 1), None):
        raise BiasError(f"{where}: the column {twice!r} appears twice")
    if "\0" in text:
        raise BiasError(f"{where}: not a valid table (a zero byte)")
    for line, cells in lines[1:]:
        if len(cells) != len(header):
            raise BiasError(f"{where} line {line}: {len(cells)} cells, but the header has {len(header)}")
    rows = [(f"{where} line {line}", dict(zip(header, cells, strict=True))) for line, cells in lines[1:]]
    languages = sorted({row["language"].strip() for _, row in rows if "language" in row})
    if len(languages) > 1:
        raise BiasError(f"{where}: several languages ({', '.join(languages)}): put each into its own file")
    term = next((name for name in ("term", "target_original") if name in header), "target")
    tested = [(_test_of(row, at), at, row) for at, row in rows]
    items = []
    for test, at, row in sorted(tested, key=lambda entry: TESTS.index(entry[0])):
        for i in (1, 2, 3) if test == "intra" else ():
            row.setdefault(f"c{i}_word", word_of(row.get("context", ""), row.get(f"c{i}_sentence", "")))
        released_sets.check_columns(row, term, test, where)
        items.append(_check_kinds(released_sets.item_of(row, term, test), f"{at} ({row['id']})"))
    return (languages[0] if languages else None), items, {}


def _test_of(row: Mapping[str, str], where: str) -> str:
    """The test that a row belongs to: as it says, else within sentences where it has a blank or words."""
    name = row.get("test", "").strip()
    if name:
        test = next((test for test, key in TEST_KEYS.items() if name in (test, key)), name)
        check_known(test, TESTS, "test", where)
        return test
    words = any(row.get(f"c{i}_word", "").strip() for i in (1, 2, 3))
    return "intra" if words or BLANK in row.get("context", "") else "inter"


def write(path: str | Path, data_set: DataSet) -> None:
    """Write a data set as JSON, whole or not at all; :func:`read` gives back an equal one.

    Raises:
        BiasError: The place cannot be written, or the provenance is no plain data.
    """
    content = {
        "version": VERSION,
        "language": data_set.language,
        "provenance": data_set.provenance,
        "data": {
            TEST_KEYS[test]: [_entry_of(item) for item in data_set.items if item["test"] == test]
            for test in data_set.tests
        },
    }
    try:
        text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise BiasError(f"{path}: the data set isn't plain data ({one_line(error)})") from error
    with writing(path):
        write_whole(expanded(path), text)


def _entry_of(item: Item) -> dict[str, Any]:
    fields: Mapping[str, Any] = item
    return {
        **{key: fields[key] for key in ("id", "target", "term", "bias_type", "context")},
        "sentences": [
            {
                "id": candidate["id"],
                "sentence": candidate["sentence"],
                **({"word": candidate["word"]} if item["test"] == "intra" else {}),
                "gold_label": candidate["label"],
            }
            for candidate in item["candidates"]
        ],
    }
