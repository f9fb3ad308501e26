"""Scores from saved answers, whatever file they come from.

Benchmarks bring readers of further formats (:class:`.SavedFiles`).
"""

from __future__ import annotations

import json
import os
import pkgutil
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.answers import (
    NotConcerned,
    NotOurs,
    Reader,
    SavedPart,
    SavedSample,
    blamed,
)
from lm_eval_bias.core.benchmark import Rewriting, SavedFiles, detailed
from lm_eval_bias.core.errors import BadOption, BiasError, did_you_mean
from lm_eval_bias.core.files import expanded, progress, under
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.custom_metrics.score import Estimate, Record, Score
from lm_eval_bias.runs import logged_texts, sample_logs

T = TypeVar("T")
SAMPLE_LOGS = Reader(
    "samples of a harness run (--log_samples)",
    sample_logs.matches,
    lambda path, language: sample_logs.samples(path),
)


@dataclass(frozen=True)
class Rescored:
    """The scores of one saved task.

    Attributes:
        part: What was read.
        documents: How many there were.
        scores: Each score with its estimate.
        provenance: What the benchmark tells about how they came about.
        items: A row per record, where they are wanted (:func:`_item`).
        read_otherwise: How many documents' texts are read otherwise today than when the run was made.
    """

    part: SavedPart
    documents: int
    scores: list[tuple[Score, Estimate]]
    provenance: dict[str, Any]
    items: Sequence[Mapping[str, Any]] = ()
    read_otherwise: int = 0


def known_rewritings() -> list[Rewriting]:
    """The benchmarks' ways to score saved answers otherwise, some of which are for several."""
    return list(
        dict.fromkeys(rewriting for _, rewriting in registry.extensions(Rewriting))
    )


def rescore(
    paths: list[str],
    language: str | None = None,
    rewritings: Sequence[tuple[Rewriting, str]] = (),
    with_items: bool = False,
    as_logged: bool = False,
) -> list[Rescored]:
    """Recompute every score of everything saved under the paths.

    Args:
        paths: Files or folders.
        language: The language of files that don't say it themselves.
        rewritings: Benchmarks' ways to score their saved answers otherwise, each with its value; files of other
            benchmarks are then passed over.
        with_items: Whether every record is wanted, too.
        as_logged: Whether to keep what was read from texts when the run was made, instead of reading them again.

    Raises:
        BiasError: Files that cannot be read or scored, a way that concerns none of them, or a language of no task.
    """
    languages = sorted(
        {
            name
            for entry in catalog.entries().values()
            for name in entry.language.split(", ")
            if name
        }
    )
    if language is not None and language not in languages:
        hint = did_you_mean(language, languages)
        raise BadOption(
            "language", language, f"unknown.{hint} Known: {', '.join(languages)}"
        )
    used: set[str] = set()
    take = partial(
        _file,
        rewritings=rewritings,
        used=used,
        with_items=with_items,
        as_logged=as_logged,
    )
    results = gather(paths, take, language)
    for rewriting, _ in rewritings:
        if results and rewriting.flag not in used:
            raise BiasError(
                f"--{rewriting.flag} has no effect on these files: it is for {_owner(rewriting)}"
            )
    return results


def recompute(task: TaskRun, as_logged: bool = False) -> tuple[dict[str, Value], int]:
    """Compute the scores of a task's sample log, by name, and count the documents that are read otherwise today.

    Args:
        task: The task with its log.
        as_logged: Whether to keep what was read from texts when the run was made.

    Raises:
        BiasError: There is no log, or one that can't be read.
    """
    if task.samples is None:
        raise BiasError(
            "there is no sample log beside the file: run with --log_samples, and name the run's folder"
        )
    benchmark = registry.get(task.benchmark)
    records: list[Record] = []
    otherwise = Counter[SavedPart]()
    samples = sample_logs.first_filter(task.samples)
    for sample in samples if as_logged else _read_again(samples, otherwise):
        with blamed(sample.part, f"document {len(records)}"):
            records.append(benchmark.record(sample.doc, sample.answers))
    scores = benchmark.scores(records, detailed=detailed(benchmark, task.metadata))
    values = {score.name: Value.of(score, score.compute(records)) for score in scores}
    return values, otherwise.total()


def _read_again(
    samples: Iterable[SavedSample], otherwise: Counter[SavedPart]
) -> Iterator[SavedSample]:
    """Read the texts of samples again, and count those that are read otherwise."""
    for sample in samples:
        with blamed(sample.part, f"document {sample.logged.get('doc_id')}"):
            again = logged_texts.read_again(sample)
        otherwise[sample.part] += again.answers != sample.answers
        yield again


def said_otherwise(count: int) -> str:
    """Say how many documents' texts are read otherwise today."""
    return f"the texts of {count:,} documents are read otherwise than when the run was made"


def _owner(rewriting: Rewriting) -> str:
    """Name the benchmarks that a way of scoring is for."""
    return " and ".join(
        own.title or own.name
        for own, one in registry.extensions(Rewriting)
        if one is rewriting
    )


def _file(
    samples: Iterator[SavedSample],
    rewritings: Sequence[tuple[Rewriting, str]],
    used: set[str],
    with_items: bool,
    as_logged: bool,
) -> dict[SavedPart, Rescored]:
    """Score a file's parts; of its documents no more is kept than the records, and what is wanted of the items."""
    items: dict[SavedPart, list[dict[str, Any]]] = defaultdict(list)
    parts: dict[SavedPart, tuple[Mapping[str, Any], list[Record]]] = {}
    otherwise = Counter[SavedPart]()
    if not as_logged:
        samples = _read_again(samples, otherwise)
    if (
        first_sample := next(samples, None) if rewritings else None
    ):  # all of a file's samples are of one benchmark
        samples, benchmark = (
            chain([first_sample], samples),
            registry.family(first_sample.part.benchmark),
        )
        own = [
            (way, value)
            for way, value in rewritings
            if benchmark is not None and way in benchmark.extensions
        ]
        if not own:
            flags = " and ".join(
                f"--{way.flag} is for {_owner(way)}" for way, _ in rewritings
            )
            raise NotConcerned(
                f"{first_sample.part.path}: {flags}, and this is {first_sample.part.benchmark}"
            )
        used.update(way.flag for way, _ in own)
        for way, value in own:
            samples = _rewritten(samples, way, value)
    for sample in samples:
        first, records = parts.setdefault(sample.part, (sample.doc, []))
        with blamed(sample.part, f"document {len(records)}"):
            record = registry.get(sample.part.benchmark).record(
                sample.doc, sample.answers
            )
            records.append(record)
            if with_items:
                items[sample.part].append(_item(sample, record))
    rescored = {}
    for part, (first, records) in parts.items():
        with blamed(part, "its scores"):
            scores = registry.get(part.benchmark).scores(records, detailed=True)
            estimates = [(score, score.compute(records)) for score in scores]
            facts = registry.get(part.benchmark).provenance([first])
            json.dumps(facts, allow_nan=False)
            rescored[part] = Rescored(
                part, len(records), estimates, facts, items[part], otherwise[part]
            )
    return rescored


def _item(sample: SavedSample, record: Record) -> dict[str, Any]:
    """Return a record as a row: its item, facets, answer, texts and readings, and its own value of each main score."""
    benchmark = registry.get(sample.part.benchmark)
    row: dict[str, Any] = {"task": sample.part.task, "filter": sample.part.filter}
    row["item"] = " / ".join(benchmark.key(sample.doc))
    row |= benchmark.facets(sample.doc)
    row["answer"] = json.dumps(sample.answers, ensure_ascii=False)
    row["text"] = "\n\n".join(text for text, _ in sample.written)
    row["read"] = "\n\n".join(read for _, read in sample.written)
    for score in benchmark.scores([record]):
        if score.name in benchmark.main:
            row[score.name] = score.contribution(record)
    return row


def _rewritten(
    samples: Iterable[SavedSample], rewriting: Rewriting, value: str
) -> Iterator[SavedSample]:
    """Saved documents and answers as a benchmark rewrites them."""
    for part, saved in sample_logs.collect(samples).items():
        with blamed(part, "its documents"):
            docs, results = rewriting.change(saved.docs, saved.results, value)
        yield from replace(
            saved, docs=list(map(dict, docs)), results=list(map(list, results))
        ).samples()


def _files(
    paths: Sequence[str], readers: Sequence[Reader]
) -> dict[Path, tuple[Reader, bool]]:
    """The files to read, in a fixed order, and whether each was named itself: folders are searched to any depth.

    Raises:
        BiasError: A path doesn't exist, or holds nothing that a reader knows.
    """
    files: dict[Path, tuple[Reader, bool]] = {}
    for name in paths:
        path = expanded(name)
        if not os.path.exists(path):
            raise BiasError(f"{name}: no such file or folder")
        candidates = under(path) if path.is_dir() else [path]
        hits = {
            p: (r, not path.is_dir())
            for p in candidates
            for r in readers
            if r.matches(p)
        }
        if not hits:
            formats = "; ".join(reader.name for reader in readers)
            advice = "run again with --log_samples, and name the run's folder"
            raise BiasError(
                f"{name}: no file that can be rescored (known: {formats}); {advice}"
            )
        real = {os.path.realpath(own): own for own in files}
        files.update(
            {real.get(os.path.realpath(own), own): hit for own, hit in hits.items()}
        )
    return files


def gather(
    paths: list[str],
    take: Callable[[Iterator[SavedSample]], dict[SavedPart, T]],
    language: str | None = None,
    readers: Sequence[Reader] | None = None,
) -> list[T]:
    """What is made of everything saved under the paths, one file after another.

    Other tasks' logs in a folder are passed over with a note, and so is what isn't concerned, wherever it lies.

    Args:
        paths: Files or folders.
        take: Makes of a file's samples what is kept of each of its parts.
        language: The language of files that don't say it themselves.
        readers: Which formats to look for.

    Raises:
        BiasError: A file that cannot be read, another task's if it was named itself, or nothing of ours at all.
    """
    parts: dict[SavedPart, T] = {}
    foreign: list[NotOurs] = []
    any_ours = False
    if readers is None:
        readers = [
            SAMPLE_LOGS,
            *(
                pkgutil.resolve_name(files.reader)
                for _, files in registry.extensions(SavedFiles)
            ),
        ]
    for path, (reader, explicit) in progress(
        list(_files(paths, readers).items()), "Reading"
    ):
        try:
            # the two files of a pair are one part, whichever of them was found first
            for part, result in take(reader.samples(path, language)).items():
                parts.setdefault(part, result)
            any_ours = True
        except NotOurs as error:
            if explicit and not isinstance(error, NotConcerned):
                raise
            foreign.append(error)
    if not any_ours:
        raise next(
            (error for error in foreign if isinstance(error, NotConcerned)), foreign[0]
        )
    for passed_over in foreign:
        print(f"lm-eval-bias: skipped: {passed_over}", file=sys.stderr)
    return list(parts.values())
