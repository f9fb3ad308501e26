"""The StereoSet authors' prediction files, read for rescoring and written from a run."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Sequence
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
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.files import check_plain, expanded, write_new
from lm_eval_bias.custom_metrics.score import Answers
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
    is_named = any(f'"{name}"' in beginning for name in TEST_KEYS.values())
    return beginning.lstrip().startswith("{") and is_named


def _scores(entries: object, where: str) -> dict[str, float]:
    """Return the score of each candidate of a test."""
    scores: dict[str, float] = {}
    if not isinstance(entries, list):
        raise BiasError(f"{where} is not a list of predictions")
    for number, entry in enumerate(entries):
        try:
            name, score = str(entry["id"]), float(entry["score"])
        except (KeyError, TypeError, ValueError, OverflowError):
            name, score = "", math.nan
        if not name or name in scores or not math.isfinite(score):
            raise BiasError(
                f"{where} entry {number}: {str(entry)[:90]}: an id that no entry above has and a number as its score "
                "are needed"
            )
        scores[name] = score
    return scores


def _check(language: str | None, path: Path) -> str:
    """Return a file's language; refuse none, an unknown one, or one that its name contradicts."""
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
        if not content.keys() & set(TEST_KEYS.values()):
            raise ValueError(f"holds neither {' nor '.join(TEST_KEYS.values())}")
        return content
    except (
        OSError,
        EOFError,
        ValueError,
        RecursionError,
        AttributeError,
        zlib.error,
    ) as error:
        raise BiasError(
            f"{path}: cannot be read: truncated, damaged or no predictions ({error})"
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
    language = _check(language, path)
    content = _content(path)
    tests = [test for test, key in TEST_KEYS.items() if key in content]
    docs: list[Data] = []
    scores: dict[str, float] = {}
    left_out = {}
    for test in tests:
        key = TEST_KEYS[test]
        where = f"{path}: {key}"
        given = _scores(content[key], where)
        items = stereoset_items.read(language, test)
        ids = {candidate["id"] for item in items for candidate in item["candidates"]}
        missing = ids - given.keys()
        unknown = given.keys() - ids
        if missing:
            raise BiasError(
                f"{where} has no score for {len(missing)} of {len(ids)} candidates, among them {min(missing)}: are "
                f"these predictions for {language}, and complete?"
            )
        extra = len(unknown)
        if extra > 0.1 * len(ids) or extra % 3:  # other data, or a part of an item
            raise BiasError(
                f"{where} scores {extra} candidates that the released {language} data don't have, among them "
                f"{min(unknown)}: are these predictions for {language}, and undamaged?"
            )
        if extra:
            left_out[key] = {"candidates": extra, "items": extra // 3}
        scores |= given
        head = {"benchmark": "stereoset", "language": language}
        docs += [{**head, **item} for item in items]
    if left_out:
        docs[0]["left_out"] = left_out
    ending = "" if len(tests) > 1 else f"_{tests[0]}"
    task = f"stereoset_{language}{ending}"
    part = SavedTask(path, task, "none", registry.get("stereoset"))
    for doc in docs:
        answers = [(scores[candidate["id"]],) for candidate in doc["candidates"]]
        yield SavedSample(part, doc, answers)


def written(
    docs: Documents, results: Sequence[Answers], name: str
) -> tuple[Documents, Sequence[Answers]]:
    """Write a task's scores to ``<language>_<tests>_<way of scoring>.json`` in a folder, and change nothing.

    Args:
        docs: Documents of one task.
        results: Their answers.
        name: The folder.

    Raises:
        BiasError: A file is there already, or can't be written; the answers are choices, or a score is nan.
    """
    from lm_eval_bias.tasks.stereoset import hooks

    if "order" in docs[0]:
        raise BiasError(f"--predictions {name}: choices have no scores")
    files: dict[str, dict[str, list[Data]]] = {}
    for doc, answers in zip(docs, results, strict=True):
        for method, scores in hooks.candidate_scores(doc, answers).items():
            if any(map(math.isnan, scores)):
                raise BiasError(f"item {doc['id']}: a score is nan")
            of_test = files.setdefault(method, {}).setdefault(
                TEST_KEYS[doc["test"]], []
            )
            for candidate, score in zip(doc["candidates"], scores, strict=True):
                of_test.append({"id": candidate["id"], "score": score})
    for method, content in files.items():
        tests = "_".join(sorted(content))
        path = expanded(name) / f"{docs[0]['language']}_{tests}_{method}.json"
        text = json.dumps(content, indent=2) + "\n"
        write_new(text, path, f"--predictions {name}")
    return docs, results


READER = Reader("the StereoSet authors' predictions (JSON)", matches, read)
