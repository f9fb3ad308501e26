"""The harness's sample logs: ``samples_<task>_<date>.jsonl`` beside ``results_<date>.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lm_eval_bias import catalog, registry
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import check_plain
from lm_eval_bias.harness import servers
from lm_eval_bias.harness.distributed import IDLE
from lm_eval_bias.runs import json_files, sample_origin
from lm_eval_bias.runs.constant_answers import CONTROLS, Numbers
from lm_eval_bias.runs.logged_documents import LoggedDocuments
from lm_eval_bias.runs.run_data import document_count
from lm_eval_bias.unique_keys import unique_keys

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")


_LARGEST = 1 << 40  # bytes of a log, which is read line by line
_LONGEST = 1 << 24  # bytes of a line: 16 MiB; one document with its requests and answers


class NotOurs(BiasError):
    """A sample log of a task that this package doesn't have."""


class NotConcerned(NotOurs):
    """Saved answers of a benchmark that nothing was asked about."""


class OtherDocuments(BiasError):
    """A sample log of documents or prompts that the run whose name it has didn't score."""


@dataclass(frozen=True)
class Part:
    """One task under one filter in a file of saved answers.

    Attributes:
        path: The file.
        task: Task name.
        filter: The harness's filter name.
        benchmark: Name of its benchmark or variant.
    """

    path: Path
    task: str
    filter: str
    benchmark: str


class Sample(NamedTuple):
    """A saved document.

    Attributes:
        part: What it belongs to.
        doc: The document.
        answers: Its requests' filtered answers.
    """

    part: Part
    doc: dict[str, Any]
    answers: list[Any]


@dataclass(frozen=True)
class Saved(Part):
    """A part with all that is saved of it.

    Attributes:
        docs: Documents.
        results: Per document, its requests' filtered answers.
    """

    docs: list[dict[str, Any]]
    results: list[list[Any]]

    def samples(self) -> Iterator[Sample]:
        """The documents one by one."""
        part = Part(self.path, self.task, self.filter, self.benchmark)
        for doc, answers in zip(self.docs, self.results, strict=True):
            yield Sample(part, doc, answers)


# what reading a document raises whose fields are gone or something else
DAMAGE = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, OSError)


def damaged(part: Part, error: Exception, at: str) -> BiasError:
    """What to say about a document that cannot be scored or written."""
    if isinstance(error, BiasError):
        return BiasError(f"{part.path}: {error}")
    problem = f"no field {error}" if isinstance(error, KeyError) else str(error)
    return BiasError(f"{part.path}: {at}: {problem}: damaged, or logged by another version of {part.benchmark}")


def matches(path: Path) -> bool:
    """Whether a file is called like a sample log."""
    return bool(_NAME.fullmatch(path.name))


def task_of(path: Path) -> str:
    """The task that a sample log's name tells; the name itself where it is called otherwise."""
    match = _NAME.fullmatch(path.name)
    return match["task"] if match else path.stem


def _line(text: str, place: str) -> dict[str, Any]:
    try:
        sample = json.loads(text, object_pairs_hook=unique_keys)
    except BiasError as error:
        raise BiasError(f"{place}: {error}") from error
    except (json.JSONDecodeError, RecursionError) as error:
        problem = getattr(error, "msg", "nested too deeply")
        raise BiasError(f"{place}: truncated or damaged ({problem}): run it again") from error
    if not isinstance(sample, dict) or not isinstance(sample.get("doc"), dict) or "filtered_resps" not in sample:
        raise BiasError(f"{place}: not a sample of a harness run (no doc or no filtered_resps)")
    return sample


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Where each line that isn't empty stands, and the line."""
    before = 0
    try:
        check_plain(path, _LARGEST)
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST), b""), start=1):
                if b"\0" in line:
                    raise BiasError(
                        f"{path}: byte {before + line.index(0)} is NUL: truncated, damaged or not a text file"
                    )
                if len(line) == _LONGEST:
                    raise BiasError(
                        f"{path} line {number}: longer than {_LONGEST >> 20} MiB: not a sample of a harness run"
                    )
                text = line.decode("utf-8")
                if text.strip():
                    yield f"{path} line {number}", text
                before += len(line)
    except UnicodeDecodeError as error:
        raise BiasError(f"{path}: byte {before + error.start} is not UTF-8: truncated or damaged") from error
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {error.strerror}") from error


def _loglikelihoods(sample: dict[str, Any], answers: list[Any]) -> Iterator[tuple[Any, str, float]]:
    """A document's contexts, continuations and log-likelihoods, as far as the log tells the first two."""
    arguments = sample.get("arguments")
    requests = list(arguments.values()) if isinstance(arguments, dict) else []
    for i, answer in enumerate(answers):
        if isinstance(answer, tuple) and len(answer) > 1 and isinstance(answer[1], bool):
            request = requests[i] if len(requests) == len(answers) and isinstance(requests[i], dict) else {}
            context, continuation = request.get("arg_0"), request.get("arg_1")
            if not (isinstance(context, str) and isinstance(continuation, str)):
                context, continuation = i, ""
            yield context, continuation, float(answer[0])


def samples(path: Path) -> Iterator[Sample]:
    """The file's documents and answers, line after line: a log of any length takes no more memory than its numbers.

    Raises:
        BiasError: Damaged or truncated, another task's samples, a document twice, another filter's answers, fewer or
            other documents than the run had; the last two are known at the end only.
    """
    return (sample for sample, _ in _samples(path))


def _samples(path: Path) -> Iterator[tuple[Sample, dict[str, Any]]]:
    """As :func:`samples`, each with all that the log has of it."""
    task = task_of(path)
    results = _results(path)
    parts: dict[Part, set[int]] = {}
    values_by_part: dict[Part, Numbers] = {}
    entry = catalog.entries().get(task)
    described = entry.benchmark if entry is not None and entry.path is None else None  # a task of the harness's own
    documents = LoggedDocuments(task, results)
    benchmark = ""
    for place, line in _lines(path):
        sample = _line(line, place)
        if IDLE in sample["doc"]:
            continue
        name = sample["doc"].get("benchmark") or described
        if not isinstance(name, str) or name not in registry.by_name():
            names = ", ".join(registry.by_name())
            raise NotOurs(
                f"{place}: samples of task {task!r}, which is not a task of this package (known benchmarks: {names})"
            )
        if benchmark and name != benchmark:
            raise BiasError(f"{place}: a sample of {name} in a file of {benchmark}")
        benchmark = name
        if problem := sample_origin.of_another_task(entry, benchmark, sample["doc"]):
            raise OtherDocuments(f"{place}: {problem}: the file belongs to another task")
        number = sample.get("doc_id")
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise BiasError(f"{place}: not a sample of a harness run (no doc_id)")
        usual = catalog.TAKE_FIRST if entry is None else entry.filter
        part = Part(path, task, str(sample.get("filter", usual)), benchmark)
        if described is None and (
            problem := sample_origin.of_another_filter(entry, part.filter, next(iter(parts), part).filter)
        ):
            raise BiasError(f"{place}: {problem}")
        numbers = parts.setdefault(part, set())
        if number in numbers:
            raise BiasError(f"{place}: document {number} appears twice")
        numbers.add(number)
        values = values_by_part.setdefault(part, Numbers())
        if part == next(iter(parts)):
            if described is None and documents.is_repeated(sample["doc"]):
                raise BiasError(f"{place}: document {number} appeared before under another doc_id")
            try:
                documents.add(sample)
            except DAMAGE as error:
                raise BiasError(f"{place}: its requests can't be read ({error}): truncated or damaged") from error
        try:
            answers = [registry.get(benchmark).read_answer(raw) for raw in sample["filtered_resps"]]
        except DAMAGE as error:
            raise BiasError(f"{place}: filtered_resps holds no answers of a model ({error})") from error
        is_dummy = _model(results) == servers.DUMMY
        impossible = "" if is_dummy else servers.problem(_loglikelihoods(sample, answers))
        if impossible:
            raise BiasError(f"{place}: {impossible}: such answers can't be scored; run the model again")
        if part.filter == catalog.TAKE_FIRST and not sample_origin.takes_first(sample):
            raise BiasError(
                f"{place}: filtered_resps differ from the answers in resps: the file was edited; run the model again"
            )
        values.add(answers)
        yield Sample(part, sample["doc"], answers), sample
    if not parts:
        raise BiasError(f"{path}: empty: the run wrote no samples")
    beside = results_beside(path)
    _check_count(path, results, task, max(map(len, parts.values())))
    if documents.are_others:
        raise OtherDocuments(
            f"{path}: its samples have other documents or prompts than the run ({beside.name}): the file belongs to "
            "another run or task, or was edited"
        )
    for values in values_by_part.values():
        if (constant := values.problem()) and _model(results) not in CONTROLS:
            raise BiasError(f"{path}: {constant}: such answers can't be scored; run the model again")


def first_filter(path: Path) -> Iterator[Sample]:
    """The documents and answers of the log's first filter, one by one.

    Raises:
        BiasError: As :func:`samples`.
    """
    return (sample for sample, _ in with_requests(path))


def with_requests(path: Path) -> Iterator[tuple[Sample, list[list[Any]]]]:
    """As :func:`first_filter`, each with what the model was asked: the arguments of each request.

    Raises:
        BiasError: As :func:`samples`.
    """
    first = None
    for sample, raw in _samples(path):
        first = first or sample.part
        if sample.part == first:
            yield sample, _requests(raw)


def _requests(sample: dict[str, Any]) -> list[list[Any]]:
    arguments = sample.get("arguments")
    given = arguments.values() if isinstance(arguments, dict) else []
    return [list(one.values()) if isinstance(one, dict) else [one] for one in given]


def results_beside(path: Path) -> Path:
    """The results file of a log's run, by its name."""
    match = _NAME.fullmatch(path.name)
    return path.with_name(f"results_{match['date'] if match else ''}.json")


def collect(saved_samples: Iterable[Sample]) -> dict[Part, Saved]:
    """All documents and answers, by part."""
    parts: dict[Part, Saved] = {}
    for part, doc, answers in saved_samples:
        part_answers = parts.setdefault(part, Saved(part.path, part.task, part.filter, part.benchmark, [], []))
        part_answers.docs.append(doc)
        part_answers.results.append(answers)
    return parts


def read(path: Path) -> list[Saved]:
    """The whole file, one part per filter.

    Raises:
        BiasError: As :func:`samples`.
    """
    return list(collect(samples(path)).values())


def _results(path: Path) -> dict[str, Any]:
    """The content of the run's own results file; empty where none lies beside the log, or a damaged one."""
    try:
        content = json_files.read(results_beside(path))
    except BiasError:
        return {}
    return content if isinstance(content, dict) else {}


def _model(results: dict[str, Any]) -> str:
    """The model type that a results file names."""
    try:
        return str(results["config"]["model"])
    except (KeyError, TypeError):
        return ""


def _check_count(path: Path, results: dict[str, Any], task: str, count: int) -> None:
    """Compare with the number of documents in the run's own result file, where that lies beside the log."""
    beside = results_beside(path)
    try:
        raw = results["n-samples"][task]["effective"]
    except (KeyError, TypeError):  # no such file, or a damaged one
        return
    try:
        expected = document_count(raw, "the number of scored documents")
    except BiasError as error:
        raise BiasError(f"{beside}: {task}: {error}") from error
    if count != expected:
        raise BiasError(
            f"{path}: {count} documents, but the run scored {expected} ({beside.name}): the file is "
            "truncated or mixed with another"
        )
