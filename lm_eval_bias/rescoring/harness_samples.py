"""The harness's sample logs: ``samples_<task>_<date>.jsonl`` beside ``results_<date>.json``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_bias.benchmarks import BENCHMARKS
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import read_text

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")


class NotOurs(BiasError):
    """A sample log of a task that this package doesn't have."""


@dataclass(frozen=True)
class Saved:
    """The saved answers of one task under one filter.

    Attributes:
        path: The file.
        task: Task name.
        filter: The harness's filter name.
        benchmark: Key into :data:`lm_eval_bias.benchmarks.BENCHMARKS`.
        docs: Documents.
        results: Per document, its requests' filtered answers.
    """

    path: Path
    task: str
    filter: str
    benchmark: str
    docs: list[dict[str, Any]]
    results: list[list[Any]]


# what reading a document raises whose fields are gone or something else
DAMAGE = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, OSError)


def damaged(part: Saved, error: Exception, at: str) -> BiasError:
    """What to say about a document that cannot be scored or written."""
    if isinstance(error, BiasError):
        return BiasError(f"{part.path}: {error}")
    problem = f"no field {error}" if isinstance(error, KeyError) else str(error)
    return BiasError(f"{part.path}: {at}: {problem}: damaged, or logged by another version of {part.benchmark}")


def matches(path: Path) -> bool:
    """Whether a file is called like a sample log."""
    return bool(_NAME.fullmatch(path.name))


def _line(text: str, where: str) -> dict[str, Any]:
    try:
        sample = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        problem = getattr(error, "msg", "nested too deeply")
        raise BiasError(f"{where}: truncated or damaged ({problem}): the run has to be made again") from error
    if not isinstance(sample, dict) or not isinstance(sample.get("doc"), dict) or "filtered_resps" not in sample:
        raise BiasError(f"{where}: no sample of a harness run (no doc, no filtered_resps)")
    return sample


def read(path: Path, language: str | None = None) -> list[Saved]:
    """The file's documents and answers, one part per filter; documents say their language themselves.

    Raises:
        BiasError: Damaged or truncated, another task's samples, a document twice, fewer documents than the run had.
    """
    named = _NAME.fullmatch(path.name)
    task = named["task"] if named else path.stem
    parts: dict[str, tuple[dict[Any, None], list[dict[str, Any]], list[list[Any]]]] = {}
    benchmark = ""
    try:
        text = read_text(path)
    except UnicodeDecodeError as error:
        raise BiasError(f"{path}: byte {error.start} is not UTF-8: truncated or damaged") from error
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {error.strerror}") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path} line {number}"
        sample = _line(line, where)
        name = sample["doc"].get("benchmark")
        if not isinstance(name, str) or name not in BENCHMARKS:
            known = ", ".join(BENCHMARKS)
            raise NotOurs(f"{where}: samples of task {task!r}, which is not one of ours (known benchmarks: {known})")
        if benchmark and name != benchmark:
            raise BiasError(f"{where}: a sample of {name} in a file of {benchmark}")
        benchmark = name
        if not isinstance(sample.get("doc_id"), int):
            raise BiasError(f"{where}: no sample of a harness run (no doc_id)")
        ids, docs, results = parts.setdefault(str(sample.get("filter", "none")), ({}, [], []))
        if sample.get("doc_id") in ids:
            raise BiasError(f"{where}: document {sample.get('doc_id')} stands there twice")
        ids[sample.get("doc_id")] = None
        docs.append(sample["doc"])
        try:
            results.append([BENCHMARKS[benchmark].read_answer(raw) for raw in sample["filtered_resps"]])
        except DAMAGE as error:
            raise BiasError(f"{where}: filtered_resps holds no answers of a model ({error})") from error
    if not parts:
        raise BiasError(f"{path}: empty: the run wrote no samples")
    _check_count(path, task, named["date"] if named else "", max(len(docs) for _, docs, _ in parts.values()))
    return [Saved(path, task, name, benchmark, docs, results) for name, (_, docs, results) in parts.items()]


def _check_count(path: Path, task: str, date: str, found: int) -> None:
    """Compare with the number of documents in the run's own result file, where that lies beside the log."""
    beside = path.with_name(f"results_{date}.json")
    try:
        counts = json.loads(read_text(beside))["n-samples"][task]
        expected = int(counts["effective"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    if found != expected:
        raise BiasError(f"{path}: {found} documents, but the run scored {expected} ({beside.name}): truncated or mixed")
