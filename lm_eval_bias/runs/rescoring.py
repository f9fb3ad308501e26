"""Scores from saved answers, whatever file they come from.

Benchmarks bring readers of further formats (:class:`.SavedFiles`).
"""

from __future__ import annotations

import json
import os
import pkgutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar, cast

from lm_eval_bias.core import Data, Facts, catalog, registry
from lm_eval_bias.core.answers import (
    HOW_TO_SAVE,
    NotConcerned,
    NotOurs,
    OtherVersion,
    Reader,
    SavedRecord,
    SavedSample,
    SavedSamples,
    SavedTask,
    errors_in,
)
from lm_eval_bias.core.benchmark import (
    Benchmark,
    Documents,
    Rewriting,
    SavedFiles,
)
from lm_eval_bias.core.errors import BadOption, BiasError, did_you_mean
from lm_eval_bias.core.files import expanded, list_files, progress
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.run_data import TaskRun, Value, values_of
from lm_eval_bias.custom_metrics.score import Answers, Record
from lm_eval_bias.runs import answer_files, logged_texts, sample_logs

T = TypeVar("T")
SAMPLE_LOGS = Reader(
    "samples of a harness run (--log_samples)",
    sample_logs.matches,
    lambda path, language: sample_logs.samples(path),
)
ANSWERS = Reader(
    "answers of a run (answers_*.parquet)",
    answer_files.matches,
    lambda path, language: answer_files.AnswerFile.of(path).records(),
)


@dataclass(frozen=True)
class Rescored:
    """The scores of one saved task.

    Attributes:
        saved_task: The part of a file that was read.
        documents: Number of documents.
        scores: By name.
        provenance: The benchmark's facts about how the scores came about.
        read_otherwise: Number of documents whose texts are read otherwise today than when the run was made.
    """

    saved_task: SavedTask
    documents: int
    scores: Mapping[str, Value]
    provenance: Data
    read_otherwise: int = 0


def known_rewritings() -> list[Rewriting]:
    """List the benchmarks' alternative scorings of saved answers."""
    extensions = registry.extensions(Rewriting)
    return list(dict.fromkeys(rewriting for _, rewriting in extensions))


@dataclass
class AnswerReading:
    """A way to read saved answers.

    Attributes:
        rewritings: Benchmarks' ways to score their saved answers otherwise, each with its value; files of other
            benchmarks are then skipped.
        as_logged: Whether to keep what was read from texts when the run was made, instead of reading them again.
        used: Flags of the rewritings that concerned a file.
        otherwise: By part, how many documents' texts are read otherwise than when the run was made.
        unreadable: Files of folders that this version can't read, and why.
        facts: By part, its benchmark's facts about how scores came about.
        halves: The records of parts that may be halves of a larger task.
    """

    rewritings: Sequence[tuple[Rewriting, str]] = ()
    as_logged: bool = False
    used: set[str] = field(default_factory=set)
    otherwise: Counter[SavedTask] = field(default_factory=Counter)
    unreadable: list[OtherVersion] = field(default_factory=list)
    facts: dict[SavedTask, Facts] = field(default_factory=dict)
    halves: dict[SavedTask, list[Record]] = field(default_factory=dict)

    def records(
        self, saved: Iterator[SavedSample] | Iterator[SavedRecord]
    ) -> Iterator[SavedRecord]:
        """Yield the records of a file's documents.

        Raises:
            NotConcerned: They are to be scored otherwise, for which nothing is there or nobody asked.
        """
        first = next(saved, None)
        if first is None:
            return
        part = first.saved_task
        concerned = [
            (rewriting, value)
            for rewriting, value in self.rewritings
            if rewriting in part.definition.family.extensions
        ]
        if self.rewritings and isinstance(first, SavedRecord):
            raise NotConcerned(f"{part.path} has no texts: {self._flags()}")
        if self.rewritings and not concerned:
            raise NotConcerned(f"{self._flags()}, and this is {part.benchmark}")
        self.used.update(rewriting.flag for rewriting, _ in concerned)
        if isinstance(first, SavedRecord):
            yield from chain([first], cast(Iterator[SavedRecord], saved))
            return
        samples: SavedSamples = chain([first], cast(SavedSamples, saved))
        if not self.as_logged:
            samples = self._read_again(samples)
        for rewriting, value in concerned:
            samples = _rewritten(samples, rewriting, value)
        for sample in samples:
            part = sample.saved_task
            if part not in self.facts:
                self.facts[part] = part.definition.provenance([sample.doc])
            yield answer_files.recorded(sample)

    def _flags(self) -> str:
        """Describe the benchmarks that the rewritings are for."""
        each = [
            f"--{other.flag} is for {_owner(other)}" for other, _ in self.rewritings
        ]
        return " and ".join(each)

    def _read_again(self, samples: Iterable[SavedSample]) -> SavedSamples:
        """Extract the answers of samples anew, and count those that differ."""
        for sample in samples:
            with errors_in(
                sample.saved_task, f"document {sample.logged.get('doc_id')}"
            ):
                again = logged_texts.read_again(sample)
            self.otherwise[sample.saved_task] += again.answers != sample.answers
            yield again

    def gather(
        self,
        paths: Sequence[str],
        take: Callable[[Iterator[SavedRecord]], dict[SavedTask, T]],
        language: str | None,
    ) -> dict[SavedTask, T]:
        """Read everything saved under the paths, one file after another.

        Logs of other people's tasks in a folder are skipped with a note, and so are files that the flags don't concern.
        Logs of another version in a folder are named, and the rest is read.

        Args:
            paths: Files or folders.
            take: Turns a file's records into the result of each of its parts.
            language: The language of files that don't say it themselves.

        Raises:
            BiasError: A file can't be read, a named one is of another task, or nothing is ours; a rewriting concerns no
                file, or no task has the language.
        """
        languages = set[str]()
        for entry in catalog.entries().values():
            languages.update(filter(None, entry.language.split(", ")))
        if language is not None and language not in languages:
            hint = did_you_mean(language, languages)
            known = ", ".join(sorted(languages))
            raise BadOption("language", language, f"unknown.{hint} Known: {known}")
        parts: dict[SavedTask, T] = {}
        foreign: list[NotOurs] = []
        any_ours = False
        for is_named, samples in _sources(paths, language):
            try:
                # the two files of a pair are one part, whichever of them was found first
                for part, result in take(self.records(samples)).items():
                    parts.setdefault(part, result)
                any_ours = True
            except NotOurs as error:
                if is_named and not isinstance(error, NotConcerned):
                    raise
                foreign.append(error)
            except OtherVersion as error:
                if is_named:
                    raise
                self.unreadable.append(error)
        if not any_ours:
            foreign.sort(key=lambda error: not isinstance(error, NotConcerned))
            raise [*self.unreadable, *foreign][0]
        for skipped in dict.fromkeys(map(str, foreign)):
            print(f"lm-eval-bias: skipped: {skipped}", file=sys.stderr)
        for problem in self.unreadable:
            print(f"lm-eval-bias: not computed: {problem}", file=sys.stderr)
        for rewriting, _ in self.rewritings:
            if parts and rewriting.flag not in self.used:
                raise BiasError(
                    f"--{rewriting.flag} has no effect on these files: it is for {_owner(rewriting)}"
                )
        return parts


def reading(rewritings: Mapping[str, object], as_logged: bool = False) -> AnswerReading:
    """Make an :class:`AnswerReading` from the values of benchmarks' flags (``None``: not given)."""
    chosen = [
        (one, str(rewritings[one.flag]))
        for one in known_rewritings()
        if rewritings.get(one.flag) is not None
    ]
    return AnswerReading(chosen, as_logged)


def rescore(
    paths: Sequence[str],
    language: str | None,
    reading: AnswerReading,
) -> list[Rescored]:
    """Recompute every score of everything saved under the paths.

    Args:
        paths: Files or folders.
        language: The language of files that don't say it themselves.
        reading: How answers are read.

    Raises:
        BiasError: As :meth:`AnswerReading.gather`; a file can't be scored.
    """
    take = partial(scored, reading=reading)
    results = reading.gather(paths, take, language)
    return [*results.values(), *_wholes(reading.halves)]


def _wholes(halves: Mapping[SavedTask, list[Record]]) -> Iterator[Rescored]:
    """Score tasks whose two halves were run separately, each once."""
    times = Counter(part.task for part in halves)
    for part in halves:
        benchmark: Benchmark = part.definition
        whole = part.task.removesuffix(benchmark.halves[0])
        names = [f"{whole}{ending}" for ending in benchmark.halves]
        if part.task == names[0] and all(times[name] == 1 for name in names):
            records = [
                record
                for half, of_half in halves.items()
                if half.task in names
                for record in of_half
            ]
            values = values_of(benchmark.scores(records), records)
            yield Rescored(replace(part, task=whole), len(records), values, {})


def recompute(task: TaskRun) -> dict[str, Value]:
    """Recompute a task's scores by name from its saved answers.

    Raises:
        BiasError: There are none, or they can't be read.
    """
    records = [saved.record for saved in answer_files.of_task(task)]
    with answer_files.scored(task):
        return values_of(task.definition.scores(records), records)


def said_otherwise(count: int) -> str:
    """Describe the number of documents whose extracted answers differ from the run's."""
    return f"the texts of {count:,} documents are read otherwise than when the run was made"


def _owner(rewriting: Rewriting) -> str:
    """Name the benchmarks of an alternative scoring."""
    return " and ".join(
        benchmark.title or benchmark.name
        for benchmark, other in registry.extensions(Rewriting)
        if other is rewriting
    )


def scored(
    saved: Iterator[SavedRecord], reading: AnswerReading
) -> dict[SavedTask, Rescored]:
    """Score a file's parts.

    Raises:
        BiasError: A document or its scores fail.
    """
    parts = grouped((one.saved_task, one.record) for one in saved)
    rescored = {}
    for part, records in parts.items():
        benchmark: Benchmark = part.definition
        if benchmark.halves:
            reading.halves[part] = records
        with errors_in(part, "its scores"):
            values = values_of(benchmark.scores(records), records)
            facts = reading.facts.get(part)
            if facts is None:
                facts = answer_files.facts(part)
            json.dumps(facts, allow_nan=False)
            rescored[part] = Rescored(
                part,
                len(records),
                values,
                dict(facts),
                reading.otherwise[part],
            )
    return rescored


def _rewritten(samples: SavedSamples, rewriting: Rewriting, value: str) -> SavedSamples:
    """Yield saved documents and answers, rewritten by a benchmark."""
    for part, saved in sample_logs.collect(samples).items():
        docs: Documents = [sample.doc for sample in saved]
        results: Sequence[Answers] = [sample.answers for sample in saved]
        with errors_in(part, "its documents"):
            docs, results = rewriting.change(docs, results, value)
        for doc, answers in zip(docs, results, strict=True):
            yield SavedSample(part, dict(doc), list(answers))


def _files(paths: Sequence[str]) -> dict[Path, tuple[Reader, bool]]:
    """List the files to read in a fixed order, each with its reader and whether it was named directly.

    Folders are searched to any depth. A file that is found several times is read once.

    Raises:
        BiasError: A path doesn't exist, or holds nothing that a reader knows.
    """
    readers = [SAMPLE_LOGS, ANSWERS]
    for _, extension in registry.extensions(SavedFiles):
        readers.append(pkgutil.resolve_name(extension.reader))
    files = {}
    real: dict[str, Path] = {}
    for name in paths:
        path = expanded(name)
        if not os.path.exists(path):
            raise BiasError(f"{name}: no such file or folder")
        is_named = not path.is_dir()
        hits = 0
        for file in [path] if is_named else list_files(path):
            for reader in readers:
                # a log has the same answers, and the texts
                if reader.matches(file) and (is_named or not _is_logged(file)):
                    hits += 1
                    first = real.setdefault(os.path.realpath(file), file)
                    files[first] = (reader, is_named)
        if not hits:
            formats = "; ".join(reader.name for reader in readers)
            raise BiasError(
                f"{name}: no file that can be rescored (known: {formats}); "
                f"name a run's folder: {HOW_TO_SAVE}"
            )
    return files


def _is_logged(file: Path) -> bool:
    """Return whether a file has the answers of a run whose logs lie beside it."""
    results = sample_logs.results_beside(file)
    return answer_files.matches(file) and any(sample_logs.beside(results))


def _sources(
    paths: Sequence[str], language: str | None
) -> Iterator[tuple[bool, Iterator[Any]]]:
    """Yield the samples of each file (of answers: of each task), with whether it was named directly."""
    files = list(_files(paths).items())
    for path, (reader, is_named) in progress(files, "Reading"):
        samples = reader.samples(path, language)
        if reader is ANSWERS:
            for _, of_task in groupby(samples, attrgetter("saved_task")):
                yield is_named, of_task
        else:
            yield is_named, samples
