"""A data set in StereoSet's form as one file: its published JSON layout with a few keys more, or a table."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES
from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.files import expanded, read_bytes, write_whole
from lm_eval_bias.scoring.questions import BLANK
from lm_eval_bias.tasks.stereoset.released_sets import LABELS, TESTS, Item, from_frame

VERSION = "1.0"
KEYS = {"inter": "intersentence", "intra": "intrasentence"}  # of the tests in a file
_LARGEST = 1 << 27  # bytes: the five published languages together are 40 million
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


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


def digest(path: Path) -> str:
    """SHA-256 of a data set's file.

    Raises:
        BiasError: It cannot be read.
    """
    try:
        return hashlib.sha256(read_bytes(expanded(path), _LARGEST)).hexdigest()
    except OSError as error:
        raise BiasError(f"{path}: cannot be read ({error.strerror})") from error


def check_language(language: str, where: str) -> str:
    """The language code, if it is one.

    Raises:
        BiasError: It is none.
    """
    if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
        raise BiasError(f"{where}: {language!r} is no language code, such as it, nl or pt-BR")
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
        text = read_bytes(expanded(path), _LARGEST).decode("utf-8-sig")
    except OSError as error:
        raise BiasError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise BiasError(f"{path}: is no UTF-8 text (byte {error.start}): save it as UTF-8") from error
    table = Path(path).suffix.lower() in (".csv", ".tsv")
    said, items, provenance = _table(text, str(path)) if table else _layout(text, str(path))
    if said is not None and language is not None and said != language:
        raise BiasError(f"{path}: is in language {said!r}, not {language!r}")
    chosen = said if said is not None else language
    if chosen is None:
        raise BiasError(f"{path}: doesn't say its language: name it with --language")
    if not items:
        raise BiasError(f"{path}: holds no items")
    return DataSet(check_language(chosen, str(path)), items, provenance)


def _layout(text: str, where: str) -> tuple[str | None, list[Item], dict[str, Any]]:
    """Language (if it says one), items and provenance of StereoSet's JSON layout."""
    try:
        content = json.loads(text, parse_constant=_no_number)
        text_of = json.dumps(content, ensure_ascii=False, allow_nan=False)
        text_of.encode()
    except RecursionError as error:
        raise BiasError(f"{where}: no valid JSON (nested too deeply)") from error
    except ValueError as error:  # half a character, and numbers too large for JSON, among them
        raise BiasError(f"{where}: no valid JSON ({one_line(error)})") from error
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, dict) or not any(key in data for key in KEYS.values()):
        raise BiasError(f'{where}: not in StereoSet\'s form: {{"data": {{"intrasentence": [...], ...}}}} is needed')
    provenance = content.get("provenance", {})
    if not isinstance(provenance, dict):
        raise BiasError(f"{where}: 'provenance' is no object")
    items = []
    for test, key in KEYS.items():
        entries = data.get(key, [])
        if not isinstance(entries, list):
            raise BiasError(f"{where}: {key} is no list of items")
        items += [_item(entry, test, f"{where}: {key} item {number}") for number, entry in enumerate(entries, 1)]
    language = content.get("language")
    return (None if language is None else check_language(language, where)), items, provenance


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    if key not in entry:
        raise BiasError(f"{where}: no {key!r}")
    if not isinstance(entry[key], str):
        raise BiasError(f"{where}: {key!r} is no text")
    return str(entry[key])


def _item(entry: Any, test: str, where: str) -> Item:
    if not isinstance(entry, dict):
        raise BiasError(f"{where}: no object")
    name = _text(entry, "id", where)
    where = f"{where} ({name})"
    sentences = entry.get("sentences")
    if not isinstance(sentences, list) or not all(isinstance(sentence, dict) for sentence in sentences):
        raise BiasError(f"{where}: 'sentences' is no list of candidates")
    context, target = _text(entry, "context", where), _text(entry, "target", where)
    candidates = []
    for number, sentence in enumerate(sentences, 1):
        at = f"{where}, candidate {number}"
        text = _text(sentence, "sentence", at)
        word = None
        if test == "intra":
            word = _text(sentence, "word", at) if "word" in sentence else word_of(context, text)
        label = _text(sentence, "gold_label", at)
        candidates.append({"id": _text(sentence, "id", at), "label": label, "sentence": text, "word": word})
    return _checked(
        {
            "id": name,
            "test": test,
            "bias_type": _text(entry, "bias_type", where),
            "target": target,
            "term": _text(entry, "term", where) if "term" in entry else target,
            "context": context,
            "candidates": candidates,
        },
        where,
    )


def _checked(item: Item, where: str) -> Item:
    """The item, if its parts are of the known kinds.

    Raises:
        BiasError: They are not.
    """
    if not item["id"].strip():
        raise BiasError(f"{where}: an empty id")
    if item["bias_type"] not in BIAS_TYPES:
        raise BiasError(f"{where}: unknown bias type {item['bias_type']!r}: must be one of {', '.join(BIAS_TYPES)}")
    if len(item["candidates"]) != len(LABELS):
        raise BiasError(f"{where}: {len(item['candidates'])} candidates: {len(LABELS)} are needed")
    for candidate in item["candidates"]:
        if candidate["label"] not in LABELS:
            raise BiasError(f"{where}: unknown label {candidate['label']!r}: must be one of {', '.join(LABELS)}")
    return item


def word_of(context: str, sentence: str) -> str:
    """What fills the blank of a context in a sentence; empty where that can't be told.

    >>> word_of("A BLANK dog.", "a big black dog."), word_of("He is BLANK.", "He was tall!"), word_of("BLANK", "x")
    ('big black', 'tall', 'x')
    """
    if context.count(BLANK) == 1:
        before, after = context.split(BLANK)
        fits = sentence.casefold().startswith(before.casefold()) and sentence.casefold().endswith(after.casefold())
        if fits and len(before) + len(after) < len(sentence):
            return sentence[len(before) : len(sentence) - len(after)].strip()
    # as StereoSet's own code does it: the word at the same place
    places = [i for i, word in enumerate(context.split()) if BLANK in word]
    words = sentence.split()
    if not places or len(words) != len(context.split()):
        return ""
    return words[places[0]].strip(string.punctuation)


_DELIMITERS = ",;\t"


def _table(text: str, where: str) -> tuple[str | None, list[Item], dict[str, Any]]:
    """Language (if it has such a column) and items of a table."""
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise BiasError(f"{where} line {reader.line_num}: no valid table ({error})") from error
    if not rows:
        raise BiasError(f"{where}: is empty")
    header = [name.strip() for name in rows[0][1]]
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice:
        raise BiasError(f"{where}: the column {twice!r} stands there twice")
    if "\0" in text:
        raise BiasError(f"{where}: no valid table (a zero byte)")
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise BiasError(f"{where} line {line}: {len(row)} cells, but the head has {len(header)}")
    named = [(line, dict(zip(header, row, strict=True))) for line, row in rows[1:]]
    languages = sorted({row["language"].strip() for _, row in named if "language" in row})
    if len(languages) > 1:
        raise BiasError(f"{where}: several languages ({', '.join(languages)}): keep each in a file of its own")
    by_test: dict[str, list[tuple[int, dict[str, str]]]] = {test: [] for test in TESTS}
    for line, cells in named:
        by_test[_test_of(cells, f"{where} line {line}")].append((line, cells))
    items = []
    for test, own in by_test.items():
        columns = {name: [row[name] for _, row in own] for name in header}
        if test == "intra":
            for i in ("1", "2", "3"):
                columns.setdefault(f"c{i}_word", _words(columns, f"c{i}_sentence"))
        found = from_frame(columns, _term_column(header), test, where) if own else []
        items += [
            _checked(item, f"{where} line {line} ({item['id']})") for item, (line, _) in zip(found, own, strict=True)
        ]
    return (languages[0] if languages else None), items, {}


def _term_column(header: Sequence[str]) -> str:
    return next((name for name in ("term", "target_original") if name in header), "target")


def _words(columns: Mapping[str, list[str]], sentence: str) -> list[str]:
    pairs = zip(columns.get("context", []), columns.get(sentence, []), strict=False)
    return [word_of(context, text) for context, text in pairs]


def _test_of(row: Mapping[str, str], where: str) -> str:
    """The test that a row belongs to: as it says, else within sentences where it has a blank or words."""
    said = row.get("test", "").strip()
    if said:
        for test, key in KEYS.items():
            if said in (test, key):
                return test
        raise BiasError(f"{where}: unknown test {said!r}: must be one of {', '.join(TESTS)}")
    words = any(row.get(f"c{i}_word", "").strip() for i in (1, 2, 3))
    return "intra" if words or BLANK in row.get("context", "") else "inter"


def write(path: str | Path, data_set: DataSet) -> None:
    """Write a data set as JSON, whole or not at all; :func:`read` gives back an equal one.

    Raises:
        BiasError: The place cannot be written, or the provenance is no plain data.
    """
    data: dict[str, list[dict[str, Any]]] = {}
    for test in data_set.tests:
        data[KEYS[test]] = [
            {
                **{key: item[key] for key in ("id", "target", "term", "bias_type", "context")},
                "sentences": [
                    {
                        "id": candidate["id"],
                        "sentence": candidate["sentence"],
                        **({"word": candidate["word"]} if test == "intra" else {}),
                        "gold_label": candidate["label"],
                    }
                    for candidate in item["candidates"]
                ],
            }
            for item in data_set.items
            if item["test"] == test
        ]
    content = {
        "version": VERSION,
        "language": data_set.language,
        "provenance": data_set.provenance,
        "data": data,
    }
    try:
        made = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise BiasError(f"{path}: the data set is no plain data ({one_line(error)})") from error
    try:
        write_whole(expanded(path), made)
    except OSError as error:
        raise BiasError(f"{path} cannot be written: {error.strerror}") from error
