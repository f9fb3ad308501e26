"""The StereoSet authors' prediction files: read for rescoring, written from our own runs."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from lm_eval_bias.core.answers import DAMAGE, NotOurs, Reader, Saved, damaged, whole
from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.files import check_plain, write_whole, writing
from lm_eval_bias.tasks.stereoset import hooks, released_sets
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, TEST_KEYS, Document, Item

_LARGEST = 1 << 26  # characters; predictions for all candidates have about a million
_CANDIDATES = 3  # of an item
_MOST_UNKNOWN = 0.1  # of the candidates: a file with more is of other data


def _open(path: Path) -> IO[str]:
    check_plain(path, _LARGEST)
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def _content(path: Path) -> Any:
    """The file's JSON; a small gzip file can hold more than fits into memory."""
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
    """The items of a test, each of whose candidates has a score, and of how many candidates beyond them there are some.

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
    """A prediction file as saved answers of ``stereoset_<language>``, or of its one test.

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
        if unknown:
            left_out[TEST_KEYS[test]] = {"candidates": unknown, "items": unknown // _CANDIDATES}
        docs += [{"benchmark": "stereoset", "language": language, **item} for item in items]
        results += [[(scores[candidate["id"]],) for candidate in item["candidates"]] for item in items]
    if left_out:
        docs[0]["left_out"] = left_out
    task = f"stereoset_{language}" + ("" if len(tests) == len(TEST_KEYS) else f"_{tests[0]}")
    return [Saved(path, task, "none", "stereoset", docs, results)]


def _candidates(part: Saved, variant: str | None) -> dict[str, dict[str, float]]:
    """Scores by test and candidate id."""
    by_test: dict[str, dict[str, float]] = {}
    for doc, answers in zip(part.docs, part.results, strict=True):
        scored = hooks.candidate_scores(cast(Document, doc), answers)
        if part.benchmark == "stereoset_variants" and variant not in scored:
            raise BiasError(f"{part.path}: five scores per candidate: choose with --variant ({', '.join(scored)})")
        if part.benchmark == "stereoset" and variant is not None:
            raise BiasError(f"{part.path}: has one score per candidate, --variant is for the _variants tasks")
        method_scores = scored[variant] if variant is not None else next(iter(scored.values()))
        for candidate, score in zip(doc["candidates"], method_scores, strict=True):
            if math.isnan(score):
                raise BiasError(f"{part.path}: item {doc['id']}: the score of candidate {candidate['id']} is nan")
            by_test.setdefault(doc["test"], {})[candidate["id"]] = score
    return by_test


def collect(
    parts: Sequence[Saved], variant: str | None = None, language: str | None = None
) -> dict[str, list[dict[str, str | float]]]:
    """Saved answers as one set of predictions, in the released order.

    Args:
        parts: Saved answers of one language, each test once (other benchmarks' are passed over).
        variant: Which score of a comparison of generative variants.
        language: Which language, where there are several.

    Raises:
        BiasError: Nothing of StereoSet, several languages, a test twice, or items that were not run.
    """
    samples = [
        part for part in parts if part.benchmark in ("stereoset", "stereoset_variants")
    ]  # choices have no scores
    samples = [part for part in samples if language is None or part.docs[0].get("language") == language]
    if not samples:
        subject = "StereoSet" if language is None else f"StereoSet in {language!r}"
        raise BiasError(f"no samples of {subject}: run its tasks with --log_samples")
    languages = sorted({str(doc.get("language")) for part in samples for doc in part.docs})
    if len(languages) > 1:
        raise BiasError(f"samples of several languages ({', '.join(languages)}): choose one with --language")
    scores: dict[str, dict[str, float]] = {}
    for part in samples:
        try:
            candidates = _candidates(part, variant)
        except BiasError:
            raise
        except DAMAGE as error:
            raise damaged(part, error, "a document") from error
        for test, test_scores in candidates.items():
            if test in scores:
                raise BiasError(f"{part.path}: {TEST_KEYS[test]} was scored by several runs: export one of them")
            scores[test] = test_scores
    predictions: dict[str, list[dict[str, str | float]]] = {}
    for test in ("intra", "inter"):
        if test in scores:
            items = released_sets.read(languages[0], test)
            order = [candidate["id"] for item in items for candidate in item["candidates"]]
            lacking = sum(name not in scores[test] for name in order)
            if lacking:
                raise BiasError(
                    f"{TEST_KEYS[test]}: {lacking // 3} of {len(items)} items were not run (--limit?), and the "
                    "authors' script needs all"
                )
            predictions[TEST_KEYS[test]] = [{"id": name, "score": scores[test][name]} for name in order]
    return predictions


def write(path: Path, predictions: Mapping[str, Any]) -> None:
    """Write predictions as JSON, gzipped where the name ends in ``.gz``; nothing half-written is left.

    Raises:
        BiasError: The place cannot be written.
    """
    text = (json.dumps(predictions, indent=2) + "\n").encode()
    with writing(path):
        write_whole(path, gzip.compress(text, mtime=0) if path.name.endswith(".gz") else text)


READER = Reader("the StereoSet authors' predictions (JSON)", matches, whole(read))
