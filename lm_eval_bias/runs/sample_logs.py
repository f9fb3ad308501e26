"""The harness's sample logs: ``samples_<task>_<date>.jsonl`` beside ``results_<date>.json``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lm_eval_bias.core import Data, Facts, catalog, registry
from lm_eval_bias.core.answers import (
    DAMAGE,
    UNPARSED,
    NotOurs,
    SavedSample,
    SavedSamples,
    SavedTask,
)
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import check_plain, parse_json, read_json
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.runs.results_check import checked

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")
_LARGEST = 1 << 36  # bytes of a log, which is read line by line
_LONGEST = 1 << 25  # bytes of a line: a hundred texts with long thoughts
_EARLIER = {"[unreadable]": UNPARSED}  # what earlier releases wrote


def matches(path: Path) -> bool:
    """Return whether a file is called like a sample log."""
    return bool(_NAME.fullmatch(path.name))


def task_of(path: Path) -> str:
    """Return the task in a sample log's name; another file's name as it is."""
    match = _NAME.fullmatch(path.name)
    return match["task"] if match else path.stem


def results_beside(path: Path) -> Path:
    """Return the path of the results of a sample log's run."""
    return path.with_name(f"results_{path.stem.rpartition('_')[2]}.json")


def beside(results: Path) -> list[Path]:
    """List the sample logs of a results file's run."""
    date = results.stem.removeprefix("results_")
    logs = results.parent.glob(f"samples_*_{date}.jsonl")
    return sorted(filter(Path.is_file, logs))


def _whole_lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of a log with their numbers; an overlong line isn't read whole."""
    check_plain(path, _LARGEST)
    with path.open("rb") as file:
        pieces = iter(lambda: file.readline(_LONGEST + 1), b"")
        for number, line in enumerate(pieces, start=1):
            place = f"{path} line {number}"
            if len(line) > _LONGEST:
                problem = f"longer than {_LONGEST >> 20} MiB, which no sample is"
                raise BiasError(f"{place}: {problem}")
            yield place, line


def lines(path: Path) -> Iterator[tuple[str, Data]]:
    """Yield the samples of a log with their line numbers.

    Raises:
        BiasError: The file can't be read, or a line is no sample.
    """
    try:
        for place, line in _whole_lines(path):
            if line.strip():
                yield place, _sample(line, place)
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {error.strerror}") from error


def _sample(text: bytes, place: str) -> Data:
    try:
        sample = parse_json(text)
    except (ValueError, RecursionError) as error:
        problem = getattr(error, "msg", "not UTF-8, no number, or nested too deeply")
        raise BiasError(
            f"{place}: truncated or damaged ({problem}): run it again"
        ) from error
    doc = sample.get("doc") if isinstance(sample, dict) else None
    if not isinstance(doc, dict) or "filtered_resps" not in sample:
        raise BiasError(
            f"{place}: not a sample of a harness run (no doc or no filtered_resps)"
        )
    return sample


def samples(path: Path) -> SavedSamples:
    """Yield a log's documents and answers line by line, in little memory.

    Raises:
        BiasError: The log is damaged, truncated or another task's, or has a document twice. That it has fewer documents
            than the run is known only at its end.
    """
    task = task_of(path)
    beside = results_beside(path)
    results = _results(beside)
    entry = catalog.entries().get(task)
    usual = catalog.NO_FILTER if entry is None else entry.filter
    parts = {}
    numbers: dict[SavedTask, set[int]] = defaultdict(set)
    for place, sample in lines(path):
        name = str(sample["doc"].get("benchmark") or "")
        number = sample.get("doc_id")
        key = name, str(sample.get("filter", usual))
        if key not in parts:
            known = registry.by_name()
            if name not in known:
                raise NotOurs(
                    f"{place}: samples of task {task!r}, which is not a task of this package (known benchmarks: "
                    f"{', '.join(known)})"
                )
            parts[key] = SavedTask(path, task, key[1], known[name])
        part = parts[key]
        if not isinstance(number, int):
            raise BiasError(f"{place}: not a sample of a harness run (no doc_id)")
        if number in numbers[part]:
            raise BiasError(f"{place}: document {number} appears twice")
        numbers[part].add(number)
        try:
            answers = list(map(read_answer, sample["filtered_resps"]))
        except DAMAGE as error:
            raise BiasError(
                f"{place}: no requests or answers of a model ({error}): truncated or damaged"
            ) from error
        yield SavedSample(part, sample["doc"], answers, sample)
    if not numbers:
        raise BiasError(f"{path}: empty: the run wrote no samples")
    count = max(map(len, numbers.values()))
    scored = results.get("n-samples", {}).get(task, {}).get("effective")
    if scored not in (None, count):
        raise BiasError(
            f"{path}: {count} documents, but the run scored {scored} ({beside.name}): the file is truncated or mixed "
            "with another"
        )


def first_filter(path: Path) -> SavedSamples:
    """Read the documents and answers of the log's first filter, one by one.

    Raises:
        BiasError: As :func:`samples`.
    """
    first = None
    for sample in samples(path):
        first = first or sample.saved_task
        if sample.saved_task == first:
            yield sample


def collect(saved_samples: SavedSamples) -> dict[SavedTask, list[SavedSample]]:
    """Collect all documents and answers by part, without a log's other fields."""
    return grouped(
        (sample.saved_task, sample._replace(logged={})) for sample in saved_samples
    )


def _results(path: Path) -> Facts:
    """Read a results file; empty if there is none, or a damaged one."""
    try:
        return checked(read_json(path))
    except BiasError:
        return {}


def read_answer(raw: object) -> Any:
    """Read an answer that the harness has logged, with every number as text.

    Returns:
        A tuple of numbers; a text; or, of several texts, a list of each with what was read from it.

    >>> read_answer(["-1.5", "False"]), read_answer("He."), read_answer([["He.", "male"]])
    ((-1.5, False), 'He.', [['He.', 'male']])
    """
    if not isinstance(raw, list):
        return _EARLIER.get(str(raw), str(raw))
    if raw and isinstance(raw[0], list):
        return [[_EARLIER.get(str(part), str(part)) for part in text] for text in raw]
    return tuple(_number(str(part)) for part in raw)


def _number(text: str) -> bool | int | float:
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.lstrip("-").isdigit() else float(text)
