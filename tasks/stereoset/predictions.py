"""The StereoSet authors' prediction files, read for rescoring."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from pathlib import Path
from typing import IO

from lm_eval_bias.core import Data, registry
from lm_eval_bias.core.answers import (
    NotOurs,
    Reader,
    SavedSample,
    SavedSamples,
    SavedTask,
)
from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.files import check_plain
from lm_eval_bias.tasks.stereoset import stereoset_items
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, TEST_KEYS

_LARGEST = 1 << 26  # bytes; predictions for all candidates have about a million


def _open(path: Path) -> IO[str]:
    check_plain(path, _LARGEST)
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def matches(path: Path) -> bool:
    """Return whether a file looks like predictions: JSON, perhaps gzipped, whose beginning names a test."""
    if not path.name.endswith((".json", ".json.gz")):
        return False
    try:
        with _open(path) as file:
            beginning = file.read(2000)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        return path.name.endswith(".json.gz")  # damaged: say so when it is read
    return beginning.lstrip().startswith("{") and any(
        f'"{name}"' in beginning for name in TEST_KEYS.values()
    )


def _scores(entries: object, where: str) -> dict[str, float]:
    if not isinstance(entries, list):
        raise BiasError(f"{where} is not a list of predictions")
    scores = {}
    for number, entry in enumerate(entries):
        try:
            name = str(entry["id"])
            score = float(entry["score"])
        except (KeyError, TypeError, ValueError, OverflowError):
            name = ""
            score = math.nan
        if not name or not math.isfinite(score):
            raise BiasError(
                f"{where} entry {number}: {str(entry)[:90]}: an id and a number as its score are needed"
            )
        if name in scores:
            raise BiasError(f"{where} entry {number}: candidate {name} appears twice")
        scores[name] = score
    return scores


def _checked(language: str | None, path: Path) -> str:
    """Return a file's language; refuse an unknown one, or one that its name contradicts."""
    languages = ", ".join(LANGUAGES)
    if language is None:
        raise NotOurs(
            f"{path}: prediction files don't state their language: name it with --language (one of {languages})"
        )
    if language not in LANGUAGES:
        raise BiasError(
            f"--language {language}: unknown.{did_you_mean(language, LANGUAGES)} Known: {languages}"
        )
    # as the authors name their files
    named = re.search(rf"_({'|'.join(LANGUAGES)})\.json(\.gz)?$", path.name)
    if named and named[1] != language:
        raise BiasError(
            f"{path}: predictions for {named[1]!r} by its name, not {language!r}: if wrong, rename it"
        )
    return language


def _content(path: Path) -> Data:
    """Read a file's JSON."""
    try:
        with _open(path) as file:
            text = file.read(_LARGEST + 1)  # a small file may hold any number, packed
        if len(text) > _LARGEST:
            raise ValueError(f"larger than {_LARGEST >> 20} MiB")
        content: Data = json.loads(text)
        if not isinstance(content, dict):
            raise ValueError("it is not a mapping")
        return content
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise BiasError(
            f"{path}: cannot be read: truncated or damaged ({error})"
        ) from error


def read(path: Path, language: str | None) -> SavedSamples:
    """Read a prediction file as saved answers of ``stereoset_<language>``, or of its one test.

    All languages have the same candidates, but translations lack single items, which files made elsewhere may score:
    these scores are left out, and said to be.

    A file holds ``{"intrasentence": [{"id", "score"}], "intersentence": [...]}``, plain or gzipped; one test may be
    absent. It doesn't say its language.

    Raises:
        BiasError: No or an unknown language, or another than the file's name says; a damaged file; a missing or doubled
            candidate, or many unknown ones; a score that is no number.
    """
    language = _checked(language, path)
    content = _content(path)
    tests = {test: key for test, key in TEST_KEYS.items() if key in content}
    if not tests:
        raise BiasError(f"{path}: holds neither {' nor '.join(TEST_KEYS.values())}")
    docs = []
    results = []
    left_out = {}
    for test, key in tests.items():
        where = f"{path}: {key}"
        items = stereoset_items.read(language, test)
        scores = _scores(content[key], where)
        ids = {candidate["id"] for item in items for candidate in item["candidates"]}
        missing = ids - scores.keys()
        unknown = scores.keys() - ids
        hint = f"among them: are these predictions for {language}, and"
        if missing:
            raise BiasError(
                f"{where} has no score for {len(missing)} of {len(ids)} candidates, {min(missing)} {hint} complete?"
            )
        extra = len(unknown)
        if extra > 0.1 * len(ids) or extra % 3:  # other data, or a part of an item
            raise BiasError(
                f"{where} scores {extra} candidates that the released {language} data don't have, "
                f"{min(unknown)} {hint} undamaged?"
            )
        if extra:
            left_out[key] = {"candidates": extra, "items": extra // 3}
        for item in items:
            docs.append({"benchmark": "stereoset", "language": language, **item})
            results.append([(scores[c["id"]],) for c in item["candidates"]])
    if left_out:
        docs[0]["left_out"] = left_out
    task = "_".join(["stereoset", language, *tests])
    if len(tests) > 1:
        task = f"stereoset_{language}"
    part = SavedTask(path, task, "none", registry.get("stereoset"))
    for doc, answers in zip(docs, results, strict=True):
        yield SavedSample(part, doc, answers)


READER = Reader("the StereoSet authors' predictions (JSON)", matches, read)
