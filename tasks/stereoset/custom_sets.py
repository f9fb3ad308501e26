"""A data set of your own in StereoSet's form: its file, its items for a task, and task YAMLs for its language."""

from __future__ import annotations

import hashlib
import json
import re
import string
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from lm_eval_bias.core import Data, Facts, files
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.files import (
    LARGEST,
    expanded,
    packaged_text,
    parse_yaml,
    read_bytes,
    write_whole,
    writing,
)
from lm_eval_bias.core.questions import BLANK
from lm_eval_bias.tasks.shared import user_files
from lm_eval_bias.tasks.stereoset.commands.set_checks import check_items
from lm_eval_bias.tasks.stereoset.stereoset_items import (
    LANGUAGES,
    TEST_KEYS,
    TEST_NAMES,
    TESTS,
)

_FIELDS = ("id", "target", "term", "bias_type", "context")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True)
class DataSet:
    """Items of one language."""

    language: str  # ISO 639, perhaps with script or region: pt-BR
    items: list[Data]  # as .stereoset_items.read returns them

    @property
    def tests(self) -> list[str]:
        """The tests that have items."""
        present = {item["test"] for item in self.items}
        return [test for test in TESTS if test in present]


def digest(path: Path) -> str:
    """Return the SHA-256 of a data set's file; a :class:`BiasError` if it cannot be read."""
    try:
        return hashlib.sha256(read_bytes(expanded(path))).hexdigest()
    except OSError as error:
        raise BiasError(f"{path}: cannot be read ({error.strerror})") from error


def check_language(language: object, where: str) -> str:
    """Return a valid language code, else raise a :class:`BiasError`."""
    if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
        raise BiasError(
            f"{where}: {language!r} is not a language code such as it, nl or pt-BR"
        )
    return language


def read(path: str | Path, language: str | None = None) -> DataSet:
    """Read a data set in StereoSet's JSON layout, also the original ``dev.json``, which lacks a language.

    What makes an item bad, but can be said about it by :mod:`.set_checks`, is read as it is.

    Raises:
        BiasError: It cannot be read, isn't in that form, or doesn't say its language; names the file and item.
    """
    text = user_files.text_of(path, str(path), LARGEST)
    try:
        content = json.loads(text)
        json.dumps(
            content, ensure_ascii=False, allow_nan=False
        ).encode()  # half characters, NaN
    except (ValueError, RecursionError) as error:
        raise BiasError(f"{path}: not valid JSON ({one_line(error)})") from error
    user_files.check(
        content, str(path), "lm_eval_bias.tasks.stereoset", "set_schema.json"
    )
    items = []
    for test, key in TEST_KEYS.items():
        for entry in content["data"].get(key, []):
            candidates = []
            for part in entry["sentences"]:
                sentence = part["sentence"]
                word = None
                if test == "intra":
                    word = part.get("word", word_of(entry["context"], sentence))
                head = {"id": part["id"], "label": part["gold_label"]}
                candidates.append({**head, "sentence": sentence, "word": word})
            item = {"term": entry["target"]}
            item |= {field: entry[field] for field in _FIELDS if field in entry}
            items.append({**item, "test": test, "candidates": candidates})
    named = content.get("language")
    if named is not None and language not in (None, named):
        raise BiasError(f"{path}: is in language {named!r}, not {language!r}")
    if named is None and language is None:
        raise BiasError(f"{path}: doesn't state its language: name it with --language")
    language = check_language(named or language, str(path))
    if not items:
        raise BiasError(f"{path}: holds no items")
    return DataSet(language, items)


def write(path: str | Path, data_set: DataSet) -> None:
    """Write a data set as JSON, whole or not at all; :func:`read` gives back an equal one.

    Raises:
        BiasError: The place cannot be written.
    """
    data: dict[str, list[Data]] = {TEST_KEYS[test]: [] for test in data_set.tests}
    for item in data_set.items:
        sentences = []
        for candidate in item["candidates"]:
            part = {key: candidate[key] for key in ("id", "sentence", "word")}
            if part["word"] is None:
                del part["word"]
            sentences.append({**part, "gold_label": candidate["label"]})
        entry = {key: item[key] for key in _FIELDS}
        data[TEST_KEYS[item["test"]]].append({**entry, "sentences": sentences})
    content = {"version": "1.0", "language": data_set.language, "data": data}
    text = json.dumps(content, ensure_ascii=False, indent=1)
    files.write(f"{text}\n", str(path))


def word_of(context: str, sentence: str) -> str:
    """Return the words of a sentence that fill the blank of its context; empty if unclear.

    >>> word_of("A BLANK dog.", "a big black dog."), word_of("He is BLANK.", "He was tall!"), word_of("BLANK", "x")
    ('big black', 'tall', 'x')
    """
    if context.count(BLANK) == 1:
        before, after = context.split(BLANK)
        fits = sentence.casefold().startswith(
            before.casefold()
        ) and sentence.casefold().endswith(after.casefold())
        if fits and len(before) + len(after) < len(sentence):
            return sentence[len(before) : len(sentence) - len(after)].strip()
    # as StereoSet's own code does it: the word at the same place
    places = [i for i, word in enumerate(context.split()) if BLANK in word]
    words = sentence.split()
    if not places or len(words) != len(context.split()):
        return ""
    return words[places[0]].strip(string.punctuation)


@lru_cache(maxsize=4)
def _scorable(path: str, language: str, digest: str) -> DataSet:
    """Read a data set whose items can be scored; the tasks of a language share it (a changed file has a new digest)."""
    data_set = read(path, language)
    check_items(data_set.items, path)
    return data_set


def items_of(file: object, fixed: Facts) -> tuple[list[Data], dict[str, str]]:
    """Return the items of a task's tests from a file, and the file's identity.

    ``fixed`` is what the task's YAML sets: ``language``, ``tests`` and perhaps ``dataset`` with the ``sha256`` that the
    file had when the task was written.

    Raises:
        BiasError: It can't be read or scored, is in another language, has no items of a test, or was changed.
    """
    if not isinstance(file, str) or not file:
        raise BiasError(
            f"--metadata dataset={file!r}: must be the path of a data set (docs/new_language.md)"
        )
    path = str(expanded(file).absolute())
    anew = f"write the tasks again: lm-eval-bias stereoset tasks {path} -o DIR"
    pinned = fixed.get("dataset") or {}
    is_pinned = pinned.get("file") == file
    try:
        sha256 = digest(Path(path))
    except BiasError as error:
        raise BiasError(
            f"{error}: put it back, or {anew}" if is_pinned else str(error)
        ) from error
    if is_pinned and sha256 != pinned["sha256"]:
        raise BiasError(f"{path} was changed since the task was written for it: {anew}")
    data_set = _scorable(path, fixed["language"], sha256)
    items = []
    for test in fixed["tests"]:
        if test not in data_set.tests:
            other = f"stereoset_{data_set.language}_{data_set.tests[0]}"
            raise BiasError(
                f"{path} has no items {TEST_NAMES[test]}: run the task of the other test, {other}"
            )
        items += [item for item in data_set.items if item["test"] == test]
    return items, {"file": path, "sha256": sha256}


def write_tasks(folder: str | Path, file: str | Path, data_set: DataSet) -> list[Path]:
    """Write the task YAMLs of a custom language into a folder, like English's, for its tests.

    Raises:
        BiasError: The language has tasks already, the items can't be scored, or the folder can't be written.
    """
    language = data_set.language
    if language in LANGUAGES:
        option = f'--metadata \'{{"dataset": "{file}"}}\''
        raise BiasError(
            f"{file}: {language} already has tasks: run them with {option} instead of writing new ones"
        )
    check_items(data_set.items, str(file))
    path = expanded(file).absolute()
    package = "lm_eval_bias.tasks.stereoset"
    base = packaged_text(package, "_stereoset_base_yaml")
    head = "# Written by 'lm-eval-bias stereoset tasks FILE -o DIR', again when FILE changes.\n"
    paths = []
    with writing(folder):
        expanded(folder).mkdir(parents=True, exist_ok=True)
        for ending in ("", "_inter", "_inter_variants", "_intra"):
            name = f"stereoset_en{ending}.yaml"
            english = parse_yaml(packaged_text(package, name), name)
            metadata = english["metadata"]
            tests = metadata["fixed"]["tests"]
            if not set(tests) <= set(data_set.tests):
                continue
            del metadata["data"]
            metadata["language"] = metadata["fixed"]["language"] = language
            metadata["measures"] = metadata["measures"].replace(
                "English", repr(language)
            )
            metadata["n_items"] = sum(item["test"] in tests for item in data_set.items)
            metadata["fixed"]["dataset"] = {"file": str(path), "sha256": digest(path)}
            task = {"task": f"stereoset_{language}{ending}", "metadata": metadata}
            paths.append(expanded(folder) / f"{task['task']}.yaml")
            write_whole(
                paths[-1],
                f"{head}{base}{yaml.safe_dump(task, sort_keys=False, width=1000)}".encode(),
            )
    return paths
