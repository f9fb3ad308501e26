"""What tasks there are, read from their YAMLs without the harness (so that listing them is instant)."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path

import yaml

from lm_eval_bias.core import Data, Facts, registry
from lm_eval_bias.core.benchmark import Benchmark, Size, folder_of
from lm_eval_bias.core.errors import BiasError, call_plugin, fault, kind_of
from lm_eval_bias.core.files import (
    expanded,
    list_files,
    packaged_yaml,
    parse_yaml,
    read_text,
)
from lm_eval_bias.custom_metrics.score import Score


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A safe YAML loader that reads ``!function`` as text, with libyaml where available."""


Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


NO_FILTER = (
    "none"  # what the harness calls the filter of tasks that have none of their own
)


# of other packages, beside their tasks: the harness takes every *.yaml there for a task


def suites() -> Data:
    """Read this package's suites and primary scores."""
    return packaged_yaml("lm_eval_bias", "suites.yaml")


def primary(task: str, benchmark: Benchmark) -> Sequence[str]:
    """Return a task's primary scores, as its benchmark or the suites file lists them."""
    listed: Facts = {**benchmark.family.primary, **suites()["primary"]}
    for pattern, scores in listed.items():
        if fnmatch.fnmatchcase(task, pattern):
            return scores
    return ()


@dataclass(frozen=True)
class Entry:
    """A task or a group of tasks.

    Attributes:
        name: Name for ``--tasks``.
        kind: ``task`` or ``group``.
        definition: Its benchmark or variant.
        language: ISO 639-1 code; empty if it is an option of the task.
        items: Number of documents; a group's is the sum over its tasks; ``None`` where that isn't known.
        measures: What it measures, in one line.
        data: Set of pinned files that it reads, empty if none.
        asks: Kinds of requests: questions (see ``scoring.questions``), ``loglikelihood`` or ``generate_until``.
        members: A group's tasks.
        path: The YAML file.
        metadata: What its YAML says beside that.
        smallest: The smallest useful ``--limit``; ``None`` where that isn't known.
        repeats: Samples per prompt that its YAML asks for; ``None`` where it says none.
        filter: Name of the filter of its answers; the harness's own, which takes the first, where its YAML has none.
        filter_steps: What this filter consists of: each step's ``function`` with its arguments, functions by name.
        tags: What it can be named by together with other tasks.
    """

    name: str
    kind: str
    definition: Benchmark
    language: str
    items: int | None
    measures: str
    data: str
    asks: tuple[str, ...]
    members: tuple[str, ...]
    path: Path
    metadata: Facts = field(default_factory=dict)
    smallest: int | None = None
    repeats: int | None = None
    filter: str = NO_FILTER
    filter_steps: tuple[Facts, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def benchmark(self) -> str:
        """The name of its benchmark or variant."""
        return self.definition.name


_OWN_CLASS = "lm_eval_bias.harness.task.BiasTask"


def read_yaml(path: Path, loader: type[Loader] = Loader) -> Data:
    """Read a task YAML with its base files merged in, functions left as text unless the loader resolves them.

    Their metadata are merged, too; the harness's own are those of the last file alone.
    """
    content: Data = parse_yaml(path.read_text(encoding="utf-8"), str(path), loader)
    bases = content.pop("include", ()) if isinstance(content, dict) else ()
    for base in [bases] if isinstance(bases, str) else reversed(bases):
        below = read_yaml(path.parent / base, loader)
        under, over = below.get("metadata"), content.get("metadata")
        content = {**below, **content}
        if isinstance(under, dict) and isinstance(over, dict):
            content["metadata"] = {**under, **over}
    return content


def _entry(content: Facts, path: Path) -> Entry:
    """Make the entry of a YAML's content; a group has no items yet."""
    is_group = "group" in content
    metadata = content["metadata"]
    benchmark = registry.get(metadata["benchmark"])
    first_filter: Facts = next(
        iter(content.get("filter_list") or ()), {"name": NO_FILTER}
    )
    size = Size(None)
    requests: tuple[str, ...] = ()
    if not is_group:
        # of a task whose YAML names no questions
        requests = ("loglikelihood",)
        if content.get("output_type") == "generate_until":
            requests = ("generate_until",)
        size = benchmark.size({"asks": requests, **metadata})
    return Entry(
        name=content["group"] if is_group else content["task"],
        kind="group" if is_group else "task",
        definition=benchmark,
        language=metadata["language"],
        items=size.items,
        measures=metadata["measures"],
        data=metadata.get("data", ""),
        asks=tuple(metadata.get("asks", ())) or requests,
        members=tuple(content["task"]) if is_group else (),
        path=path,
        metadata=metadata,
        smallest=size.smallest,
        repeats=content.get("repeats"),
        filter=first_filter["name"],
        filter_steps=tuple(first_filter.get("filter", ())),
        tags=tuple(content.get("tag", ())),
    )


def entry_of(path: Path) -> Entry:
    """Read the task or group of a YAML in a benchmark's folder.

    Raises:
        BiasError: It can't be read, or lacks what must be known.
    """
    try:
        return _entry(read_yaml(path), path)
    except KeyError as error:
        raise BiasError(f"{path}: the key {error} is missing") from error
    except Exception as error:  # what people write into YAMLs, and their benchmarks, can fail in any way
        raise BiasError(f"{path}: {kind_of(error)}") from error


def _of_benchmark(benchmark: Benchmark) -> Iterator[Entry]:
    """Yield the groups and tasks in a benchmark's folder."""
    entries = list(map(entry_of, sorted(folder_of(benchmark).glob("*.yaml"))))
    items = {entry.name: entry.items for entry in entries}
    for entry in sorted(entries, key=lambda entry: entry.kind != "group"):
        if entry.kind == "group":
            yield replace(entry, items=total(map(items.get, entry.members)))
        else:
            yield entry


def total(counts: Iterable[int | None]) -> int | None:
    """Sum counts; ``None`` if one is unknown."""
    numbers = list(counts)
    return None if None in numbers else sum(count or 0 for count in numbers)


@lru_cache(maxsize=1)
def packaged() -> dict[str, Entry]:
    """Return all tasks and groups of the known benchmarks by name, groups first in each folder.

    A YAML that can't be read, lacks what must be known or has the name of another task is a fault, and left out with
    the others of its benchmark.
    """
    entries: dict[str, Entry] = {}
    for benchmark in sorted(
        registry.benchmarks(),
        key=lambda benchmark: (not registry.is_own(benchmark), benchmark.name),
    ):
        try:
            tasks = {entry.name: entry for entry in _of_benchmark(benchmark)}
            for name in tasks.keys() & entries:
                raise BiasError(
                    f"{tasks[name].path}: there is already a task {name}, in {entries[name].path}"
                )
        except Exception as error:  # other people's code can fail in any way
            fault(
                f"the tasks of the benchmark {benchmark.name} are left out ({kind_of(error)})"
            )
        else:
            entries |= tasks
    return entries


def entries(folders: Iterable[str | Path] = ()) -> dict[str, Entry]:
    """Return all known tasks and groups; those in folders of ``--include_path`` go before packaged ones.

    Raises:
        BiasError: A task of this package's kind in the folders that is no valid YAML, or lacks what must be known.
    """
    return {**packaged(), **_included(folders)}


def tagged(tag: str, known: Mapping[str, Entry]) -> list[str]:
    """List the tasks that a tag names; empty if it is none."""
    return [entry.name for entry in known.values() if tag in entry.tags]


def usual_repeats(task: str) -> int | None:
    """Return how many texts of each prompt a task takes; ``None`` where it isn't known or samples none."""
    entry = entries().get(task)
    return entry.repeats if entry and not entry.members else None


def _included(folders: Iterable[str | Path]) -> dict[str, Entry]:
    entries = {}
    for path in chain.from_iterable(
        list_files(expanded(folder), "*.yaml") for folder in folders
    ):
        try:
            text = read_text(path)
        except (OSError, UnicodeDecodeError):
            continue  # the harness skips it as well
        if _OWN_CLASS not in text:
            continue
        entry = entry_of(path)
        entries[entry.name] = entry
    return entries


def headline(benchmark: Benchmark) -> list[Score]:
    """Return a benchmark's headline scores, which don't depend on its data."""
    scores: Sequence[Score] = call_plugin((), benchmark, benchmark.scores, [])
    return [s for s in scores if s.headline]


def listing() -> list[Data]:
    """Return all entries as plain data, with each headline score's range, neutral value and direction."""
    return [
        {
            "name": e.name,
            "kind": e.kind,
            "benchmark": e.benchmark,
            "language": e.language,
            "items": e.items,
            "smallest_limit": e.smallest,
            "measures": e.measures,
            "data": e.data or None,
            "members": list(e.members),
            "scores": [s.describe() for s in headline(e.definition)],
        }
        for e in entries().values()
    ]
