"""The answers of a run without its texts: ``answers_<date>.parquet`` beside ``results_<date>.json``.

A row is a document of a task: its number and hashes, its key and facets, its likelihoods or what was read from a text,
and the record that its benchmark makes of it. Scores, comparisons and breakdowns follow from the records, without
prompts, which are their authors', and many times as fast as from a log.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import Data, Facts, __version__, content_hashes, registry
from lm_eval_bias.core.answers import (
    DAMAGE,
    HOW_TO_SAVE,
    NotOurs,
    SavedRecord,
    SavedSample,
    SavedTask,
    damage_in,
    errors_in,
)
from lm_eval_bias.core.benchmark import Benchmark, Condition, facets_of
from lm_eval_bias.core.errors import BiasError, kind_of, one_line
from lm_eval_bias.core.files import check_plain, parse_json, write_whole
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.custom_metrics.score import Design, Undefined
from lm_eval_bias.harness.run_inputs import code_hash
from lm_eval_bias.runs import sample_logs

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

FORMAT = "lm-eval-bias answers 1"
SUFFIX = ".parquet"
HASHES = ("doc_hash", "prompt_hash", "target_hash")  # as the harness logs them
_LARGEST = 1 << 31  # bytes of a file, and of one of its tasks once it is unpacked
_SHORT = 16  # hexadecimal digits of a document's hash, of which there are thousands, not billions
_LONGEST = 80  # characters of what was read from a text; a longer one is a text itself, and not kept
_TUPLE = "()"  # names a tuple in JSON, which has lists alone
_ABOUT = b"lm_eval_bias"  # the metadata's key


def beside(results: Path) -> Path:
    """Return the path of a run's answers, beside its results file."""
    date = results.stem.removeprefix("results_")
    return results.with_name(f"answers_{date}{SUFFIX}")


def matches(path: Path) -> bool:
    """Return whether a file is named like a run's answers."""
    return path.name.startswith("answers_") and path.suffix == SUFFIX


def recorded(sample: SavedSample) -> SavedRecord:
    """Make a document's record by its benchmark.

    Raises:
        OtherVersion: The document isn't as this version has it.
    """
    benchmark: Benchmark = sample.saved_task.definition
    number = sample.logged.get("doc_id", 0)
    with errors_in(sample.saved_task, f"document {number}"):
        kept = dict(sample.doc)
        for condition in conditions_of(benchmark):
            kept.pop(condition.name, None)
        return SavedRecord(
            sample.saved_task,
            number,
            benchmark.key(sample.doc),
            content_hashes.of_document(kept)[:_SHORT],
            facets_of(benchmark, sample.doc),
            benchmark.record(sample.doc, sample.answers),
        )


def conditions_of(benchmark: Benchmark) -> list[Condition]:
    """List the conditions by which a benchmark's tasks can be compared."""
    extensions = benchmark.family.extensions
    return [added for added in extensions if isinstance(added, Condition)]


@contextlib.contextmanager
def scored(task: TaskRun) -> Iterator[None]:
    """Turn errors in scoring a task's saved records into a BiasError."""
    path = task.answers or task.samples or Path(task.record.file or task.task)
    with damage_in(SavedTask(path, task.task, "", task.definition), "its answers"):
        yield


def of_task(task: TaskRun) -> Iterator[SavedRecord]:
    """Yield the records of a run's task, as :func:`records`."""
    return records(task.task, task.definition, task.samples, task.answers)


def designs(task: TaskRun, names: Collection[str]) -> dict[str, Design]:
    """Return the designs of a task's scores by name, of those that have one; none without saved answers.

    Raises:
        BiasError: The answers can't be read.
    """
    found: dict[str, Design] = {}
    if not task.is_saved:
        return found
    with scored(task):
        known = [saved.record for saved in of_task(task)]
        for score in task.definition.scores(known):
            if score.name in names and score.design is not None:
                with contextlib.suppress(Undefined):
                    found[score.name] = score.design(known)
    return found


def records(
    task: str, benchmark: Benchmark, samples: Path | None, answers: Path | None
) -> Iterator[SavedRecord]:
    """Yield the records of a task's first filter: from its answers if current code made them, else from its log.

    Args:
        task: Its name.
        benchmark: Its benchmark.
        samples: The sample log, if there is one.
        answers: The run's answers, if they are there.

    Raises:
        BiasError: There is neither, or they can't be read.
    """
    file = AnswerFile.of(answers) if answers else None
    origin = file.origin_of(task) if file else None
    if file and origin and (not samples or origin == _origin(benchmark, samples)):
        yield from file.records(task)
    elif samples:
        yield from map(recorded, sample_logs.first_filter(samples))
    else:
        raise BiasError(f"{task} has no saved answers: {HOW_TO_SAVE}")


def _check_part(part: Facts) -> None:
    """Raise a ValueError if a file's facts about a task are malformed."""
    texts = [part[name] for name in ("task", "filter", "benchmark")]
    facts = [part[name] for name in ("origin", "provenance")]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a name is no text")
    if not all(isinstance(fact, dict) for fact in facts):
        raise ValueError("facts are no facts")


@dataclass
class AnswerFile:
    """The answers of a run.

    Attributes:
        path: The file.
        parts: What it says of each task and filter, in the order of its row groups.
    """

    path: Path
    parts: Sequence[Facts]
    _file: ParquetFile = field(repr=False)

    def origin_of(self, task: str) -> Facts | None:
        """Return what made the records of a task (:func:`_origin`); ``None`` where it has none."""
        origins = (part["origin"] for part in self.parts if part["task"] == task)
        return next(origins, None)

    def records(self, task: str | None = None) -> Iterator[SavedRecord]:
        """Yield the records of a task's first filter; without one, of all tasks and filters.

        Raises:
            BiasError: They are damaged.
        """
        for number, part in enumerate(self.parts):
            if task in (None, part["task"]):
                yield from self._part(number, part)
                if task:
                    return

    def _part(self, number: int, part: Facts) -> Iterator[SavedRecord]:
        benchmark = registry.of_run(part["benchmark"])
        saved = SavedTask(self.path, part["task"], part["filter"], benchmark)
        with errors_in(saved, "its answers"):
            names = ["doc_id", "key", "content_hash", "facets", "record"]
            # a part is too small for threads to pay
            table = self._file.read_row_group(number, names, use_threads=False)
            columns = [_column(table[name].to_pylist()) for name in names]
            rows = list(zip(*columns, strict=True))
        for document, times in Counter(columns[0]).most_common(1):
            if times > 1:
                raise BiasError(
                    f"{self.path}, {saved.task}: document {document} appears twice"
                )
        for place, key, digest, facets, record in rows:
            yield SavedRecord(saved, place, tuple(key), digest, facets, record)

    @classmethod
    def of(cls, path: Path) -> AnswerFile:
        """Open a file.

        Raises:
            BiasError: It is damaged, too large, or something else.
        """
        import pyarrow
        from pyarrow.parquet import ParquetFile

        try:
            check_plain(path, _LARGEST)
            file = ParquetFile(
                pyarrow.OSFile(os.fsencode(path))
            )  # a name may be no UTF-8
            about = parse_json((file.schema_arrow.metadata or {})[_ABOUT])
            parts = about["parts"]
            for part in parts:
                _check_part(part)
            sizes = [
                file.metadata.row_group(n).total_byte_size for n in range(len(parts))
            ]
            if about["format"] != FORMAT or max(sizes, default=0) > _LARGEST:
                raise ValueError(about["format"])
        except (OSError, pyarrow.ArrowException, RecursionError, *DAMAGE) as error:
            raise BiasError(
                f"{path}: not the answers of a run, or damaged ({kind_of(error)}); lm-eval-bias answers RUN writes "
                "them anew from a log"
            ) from error
        return cls(path, parts, file)


def facts(part: SavedTask) -> Facts:
    """Return a benchmark's metadata about its scores, as saved with the answers."""
    for facts_of_part in AnswerFile.of(part.path).parts:
        if (facts_of_part["task"], facts_of_part["filter"]) == (part.task, part.filter):
            return dict(facts_of_part["provenance"])
    return {}


def _origin(benchmark: Benchmark, log: Path) -> Data:
    """Return the origin of records: a hash of the code, and the log's length."""
    return {"code": code_hash(benchmark), "log": log.stat().st_size}


def _column(cells: list[Any]) -> list[Any]:
    """Decode a column."""
    if cells and isinstance(cells[0], bytes):
        return [cell.hex() for cell in cells]
    if not cells or not isinstance(cells[0], str):
        return cells
    text = f"[{','.join(cells)}]"
    if f'"{_TUPLE}"' in text:
        return list(json.loads(text, object_hook=_untagged))
    return list(parse_json(text))


def _untagged(entry: Data) -> object:
    return tuple(entry[_TUPLE]) if entry.keys() == {_TUPLE} else entry


def _tagged(value: object) -> object:
    """Tag tuples, which JSON can't distinguish from lists."""
    if isinstance(value, tuple):
        return {_TUPLE: list(map(_tagged, value))}
    if isinstance(value, list):
        return list(map(_tagged, value))
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a name in it is no text")
        return {key: _tagged(entry) for key, entry in value.items()}
    return value


def _text(value: object) -> str:
    return json.dumps(_tagged(value), ensure_ascii=False, default=_number)


def _number(value: Any) -> object:
    """Turn NumPy's numbers into Python's; whatever else JSON lacks is a TypeError."""
    if not hasattr(value, "item"):
        raise TypeError(f"JSON has no {type(value).__name__}")
    return value.item()


def _without_texts(answer: object) -> object:
    """Return likelihoods unchanged, and texts as their extracted answers."""
    if isinstance(answer, list):  # several texts, each with its reading
        return [row[1:] for row in answer]
    is_text = isinstance(answer, str) and len(answer) > _LONGEST
    return "" if is_text else answer


def _row(sample: SavedSample) -> Data:
    saved = recorded(sample)
    logged = {name: bytes.fromhex(sample.logged.get(name, "")) for name in HASHES}
    return {
        "task": saved.saved_task.task,
        "filter": saved.saved_task.filter,
        "doc_id": saved.number,
        **logged,
        "content_hash": bytes.fromhex(saved.doc_hash),
        "key": _text(list(saved.key)),
        "facets": _text(saved.facets),
        "answers": _text(list(map(_without_texts, sample.answers))),
        "record": _text(saved.record),
    }


def write(results: Path, logs: Iterable[Path]) -> Path:
    """Write the answers in some sample logs beside the results of their run.

    Returns:
        The file.

    Raises:
        BiasError: A log is damaged, or none is of a task of this package.
        OSError: The file can't be written.
    """
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    parts = []
    tables = []
    for log in sorted(logs):
        for saved, samples in _by_part(log).items():
            facts = {
                "task": saved.task,
                "filter": saved.filter,
                "benchmark": saved.benchmark,
                "origin": _origin(saved.definition, log),
                "provenance": saved.definition.provenance([samples[0].doc]),
            }
            try:
                rows = list(map(_row, samples))
            except TypeError as error:
                text = (
                    f"{saved.task}: its answers are in its log alone: {one_line(error)}"
                )
                print(f"lm-eval-bias: {text}", file=sys.stderr)
                continue
            parts.append(facts)
            tables.append(pyarrow.Table.from_pylist(rows))
    if not parts:
        raise BiasError(f"{results}: no sample log of a task of this package beside it")
    about = {"format": FORMAT, "lm_eval_bias": __version__, "parts": parts}
    schema = tables[0].schema.with_metadata({_ABOUT: json.dumps(about)})
    file = beside(results)
    content = io.BytesIO()
    with ParquetWriter(content, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table, row_group_size=len(table))
    write_whole(file, content.getvalue())
    return file


def _by_part(log: Path) -> dict[SavedTask, list[SavedSample]]:
    """Read a log by part; empty for another package's task."""
    try:
        return grouped((one.saved_task, one) for one in sample_logs.samples(log))
    except NotOurs:
        return {}
