"""The harness's sample logs: ``samples_<task>_<date>.jsonl`` beside ``results_<date>.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.answers import DAMAGE, NotOurs, Saved, SavedPart, SavedSample
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import check_plain, read_json

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")
_LARGEST = 1 << 36  # bytes of a log, which is read line by line


def matches(path: Path) -> bool:
    """Whether a file is called like a sample log."""
    return bool(_NAME.fullmatch(path.name))


def task_of(path: Path) -> str:
    """The task that a sample log's name tells; the name itself where it is called otherwise."""
    match = _NAME.fullmatch(path.name)
    return match["task"] if match else path.stem


def results_beside(path: Path) -> Path:
    """Return where the results of a sample log's run lie."""
    return path.with_name(f"results_{path.stem.rpartition('_')[2]}.json")


def lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read each sample of a log, with the place of its line; the samples aren't looked at.

    Raises:
        BiasError: A file that can't be read, or a line that is no sample.
    """
    try:
        check_plain(path, _LARGEST)
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield (place := f"{path} line {number}"), _sample(line, place)
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {error.strerror}") from error


def _sample(text: bytes, place: str) -> dict[str, Any]:
    try:
        sample = _parsed(text)
    except (ValueError, RecursionError) as error:
        problem = getattr(error, "msg", "not UTF-8, no number, or nested too deeply")
        raise BiasError(
            f"{place}: truncated or damaged ({problem}): run it again"
        ) from error
    if (
        not isinstance(sample, dict)
        or not isinstance(sample.get("doc"), dict)
        or "filtered_resps" not in sample
    ):
        raise BiasError(
            f"{place}: not a sample of a harness run (no doc or no filtered_resps)"
        )
    return sample


def _parsed(text: bytes) -> Any:
    """Parse a line with orjson, several times as fast; what only Python's parser takes, such as NaN, with that."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def samples(path: Path) -> Iterator[SavedSample]:
    """The file's documents and answers, line after line: a log of any length takes no more memory than its numbers.

    Raises:
        BiasError: Damaged or truncated, another task's samples, a document twice, fewer documents than the run had,
            which is known at the end only.
    """
    task, beside = task_of(path), results_beside(path)
    results = _results(beside)
    entry = catalog.entries().get(task)
    described = (
        entry.benchmark if entry is not None and entry.path is None else None
    )  # a task of the harness's own
    usual = catalog.TAKE_FIRST if entry is None else entry.filter
    numbers: dict[SavedPart, set[int]] = {}
    for place, sample in lines(path):
        benchmark, number = (
            sample["doc"].get("benchmark") or described,
            sample.get("doc_id"),
        )
        if benchmark not in registry.by_name():
            names = ", ".join(registry.by_name())
            raise NotOurs(
                f"{place}: samples of task {task!r}, which is not a task of this package (known benchmarks: {names})"
            )
        part = SavedPart(path, task, str(sample.get("filter", usual)), benchmark)
        if not isinstance(number, int):
            raise BiasError(f"{place}: not a sample of a harness run (no doc_id)")
        if number in numbers.setdefault(part, set()):
            raise BiasError(f"{place}: document {number} appears twice")
        numbers[part].add(number)
        try:
            answers = [_read_answer(raw) for raw in sample["filtered_resps"]]
        except DAMAGE as error:
            raise BiasError(
                f"{place}: no requests or answers of a model ({error}): truncated or damaged"
            ) from error
        yield SavedSample(part, sample["doc"], answers, sample)
    if not numbers:
        raise BiasError(f"{path}: empty: the run wrote no samples")
    count, scored = (
        max(map(len, numbers.values())),
        results.get("n-samples", {}).get(task, {}).get("effective"),
    )
    if scored not in (None, count):
        raise BiasError(
            f"{path}: {count} documents, but the run scored {scored} ({beside.name}): the file is truncated or mixed "
            "with another"
        )


def first_filter(path: Path) -> Iterator[SavedSample]:
    """The documents and answers of the log's first filter, one by one.

    Raises:
        BiasError: As :func:`samples`.
    """
    first = None
    for sample in samples(path):
        first = first or sample.part
        if sample.part == first:
            yield sample


def collect(saved_samples: Iterable[SavedSample]) -> dict[SavedPart, Saved]:
    """All documents and answers, by part."""
    parts: dict[SavedPart, Saved] = {}
    for sample in saved_samples:
        part = sample.part
        saved = parts.setdefault(
            part, Saved(part.path, part.task, part.filter, part.benchmark, [], [])
        )
        saved.docs.append(sample.doc)
        saved.results.append(sample.answers)
    return parts


def _results(path: Path) -> dict[str, Any]:
    """The content of a results file; empty where there is none, or a damaged one."""
    try:
        content = read_json(path)
    except BiasError:
        return {}
    parts = ("config", "configs", "n-samples")
    is_sound = isinstance(content, dict) and all(
        isinstance(content.get(part), dict) for part in parts
    )
    return content if is_sound else {}


def _read_answer(raw: Any) -> Any:
    """Read an answer that the harness has logged, with every number as text.

    Returns:
        A tuple of numbers; a text; or, of several texts, a list of each with what was read from it.

    >>> _read_answer(["-1.5", "False"]), _read_answer("He."), _read_answer([["He.", "male"]])
    ((-1.5, False), 'He.', [['He.', 'male']])
    """
    if not isinstance(raw, list):
        return str(raw)
    if raw and isinstance(raw[0], list):
        return [[str(part) for part in text] for text in raw]
    return tuple(_number(str(part)) for part in raw)


def _number(text: str) -> bool | int | float:
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.lstrip("-").isdigit() else float(text)
