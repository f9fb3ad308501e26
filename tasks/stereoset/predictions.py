"""The StereoSet authors' prediction files, read for rescoring."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from lm_eval_bias.core.answers import AlikeAnswers, NotOurs, Reader, Saved, whole
from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.files import check_plain
from lm_eval_bias.tasks.stereoset import released_sets
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, TEST_KEYS, Item

_LARGEST = 1 << 26  # characters; predictions for all candidates have about a million
_CANDIDATES = 3  # of an item
_MOST_UNKNOWN = 0.1  # of the candidates: a file with more is of other data


def _open(path: Path) -> IO[str]:
    check_plain(path, _LARGEST)
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def _content(path: Path) -> Any:
    """Read the file's JSON; a small gzip file can hold more than fits into memory."""
    with _open(path) as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise ValueError(f"more than {_LARGEST >> 20} million characters")
    if "\0" in text:
        raise ValueError("it holds NUL bytes, so it is not a text file")
    return json.loads(text)


def matches(path: Path) -> bool:
    """Whether a file looks like predictions: JSON, perhaps gzipped, whose beginning names a test."""
    if not path.name.endswith((".json", ".json.gz")):
        return False
    try:
        with _open(path) as file:
            beginning = file.read(2000)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        return path.name.endswith(".json.gz")  # damaged: say so when it is read
    return beginning.lstrip().startswith("{") and any(f'"{name}"' in beginning for name in TEST_KEYS.values())


def _scores(path: Path, content: Any, name: str) -> dict[str, float]:
    entries = content[name]
    if not isinstance(entries, list):
        raise BiasError(f"{path}: {name} is not a list of predictions")
    scores: dict[str, float] = {}
    for number, entry in enumerate(entries):
        at = f"{path}: {name} entry {number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            raise BiasError(f"{at}: no id")
        score = entry.get("score")
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not abs(score) < math.inf:
            raise BiasError(f"{at}: candidate {entry['id']} has the score {score!r}: a number is needed")
        if entry["id"] in scores:
            raise BiasError(f"{at}: candidate {entry['id']} appears twice")
        try:
            scores[entry["id"]] = float(score)
        except OverflowError as error:
            raise BiasError(f"{at}: the score of candidate {entry['id']} is too large for a number") from error
    return scores


def _items(path: Path, language: str, test: str, scores: Mapping[str, float]) -> tuple[list[Item], int]:
    """Find a test's items, whose candidates must all have scores; count the scores of other candidates.

    All languages have the same candidates, but translations lack single items, which files made elsewhere may score.
    """
    items = released_sets.read(language, test)
    ids = {candidate["id"] for item in items for candidate in item["candidates"]}
    if missing := [name for name in ids if name not in scores]:
        raise BiasError(
            f"{path}: {TEST_KEYS[test]} has no score for {len(missing)} of {len(ids)} candidates, {min(missing)} "
            f"among them: are these predictions for {language}, and complete?"
        )
    unknown = [name for name in scores if name not in ids]
    if len(unknown) > _MOST_UNKNOWN * len(ids) or len(unknown) % _CANDIDATES:
        raise BiasError(
            f"{path}: {TEST_KEYS[test]} scores {len(unknown)} candidates that the released {language} data don't have, "
            f"{min(unknown)} among them: are these predictions for {language}, and undamaged?"
        )
    return items, len(unknown)


def read(path: Path, language: str | None) -> list[Saved]:
    """Read a prediction file as saved answers of ``stereoset_<language>``, or of its one test.

    Args:
        path: ``{"intrasentence": [{"id", "score"}], "intersentence": [...]}``, plain or gzipped; one test may be
            absent.
        language: What the file itself doesn't say.

    Raises:
        BiasError: No or an unknown language, or another than the file's name says; a damaged file; a missing or doubled
            candidate, or many unknown ones; a score that is no number.
    """
    languages = ", ".join(LANGUAGES)
    if language is None:
        raise NotOurs(
            f"{path}: prediction files don't state their language: name it with --language (one of {languages})"
        )
    if language not in LANGUAGES:
        raise BiasError(f"--language {language}: unknown.{did_you_mean(language, LANGUAGES)} Known: {languages}")
    named = re.search(rf"_({'|'.join(LANGUAGES)})\.json(\.gz)?$", path.name)  # as the authors name their files
    if named and named[1] != language:
        raise BiasError(f"{path}: predictions for {named[1]!r} by its name, not {language!r}: if wrong, rename it")
    try:
        content = _content(path)
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise BiasError(f"{path}: cannot be read: truncated or damaged ({error})") from error
    tests = [test for test, name in TEST_KEYS.items() if isinstance(content, dict) and name in content]
    if not tests:
        raise BiasError(f"{path}: holds neither {' nor '.join(TEST_KEYS.values())}")
    docs: list[dict[str, Any]] = []
    results: list[list[Any]] = []
    left_out = {}
    for test in tests:
        scores = _scores(path, content, TEST_KEYS[test])
        items, unknown = _items(path, language, test, scores)
        numbers = AlikeAnswers()
        numbers.add([(score,) for score in scores.values()])
        if problem := numbers.problem():
            raise BiasError(f"{path}: {TEST_KEYS[test]}: {problem}: they can't be scored; run the model again")
        if unknown:
            left_out[TEST_KEYS[test]] = {"candidates": unknown, "items": unknown // _CANDIDATES}
        docs += [{"benchmark": "stereoset", "language": language, **item} for item in items]
        results += [[(scores[candidate["id"]],) for candidate in item["candidates"]] for item in items]
    if left_out:
        docs[0]["left_out"] = left_out
    task = f"stereoset_{language}" + ("" if len(tests) == len(TEST_KEYS) else f"_{tests[0]}")
    return [Saved(path, task, "none", "stereoset", docs, results)]


READER = Reader("the StereoSet authors' predictions (JSON)", matches, whole(read))
