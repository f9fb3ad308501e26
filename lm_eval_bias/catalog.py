"""What tasks there are, read from their YAMLs without the harness (so that listing them is instant)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from lm_eval_bias import registry, safe_yaml
from lm_eval_bias.custom_metrics.score import Score
from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.files import expanded, read_text, under
from lm_eval_bias.paths import tasks_path


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe YAML in which ``!function`` is just its text, read by libyaml where PyYAML has it."""


Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


@dataclass(frozen=True)
class Entry:
    """A task or group.

    Attributes:
        name: Name for ``--tasks``.
        kind: ``task`` or ``group``.
        benchmark: Key into :data:`lm_eval_bias.registry.BENCHMARKS`.
        language: ISO 639-1 code.
        items: Number of documents; a group's is the sum over its tasks.
        measures: What it measures, in one line.
        data: Set of pinned files that it reads, empty if none.
        asks: Kinds of requests: questions (see ``scoring.questions``), ``loglikelihood`` or ``generate_until``.
        members: A group's tasks.
        path: The YAML file.
        metadata: What its YAML says beside that.
        repeats: Samples per prompt that its YAML asks for; ``None`` where it says none.
    """

    name: str
    kind: str
    benchmark: str
    language: str
    items: int
    measures: str
    data: str
    asks: tuple[str, ...]
    members: tuple[str, ...]
    path: Path
    metadata: Mapping[str, Any] = field(default_factory=dict)
    repeats: int | None = None


_OWN_CLASS = "lm_eval_bias.harness.task.BiasTask"
_others: dict[str, Entry] = {}  # tasks of this package's kind that came from elsewhere


def read_yaml(path: Path) -> dict[str, Any]:
    """A task YAML with its base file merged in, functions left as text."""
    content: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=Loader)  # noqa: S506 (a SafeLoader)
    base = content.pop("include", None) if isinstance(content, dict) else None
    return {**read_yaml(path.parent / base), **content} if base else content


def _plain_requests(content: Mapping[str, Any]) -> tuple[str, ...]:
    """What a task asks whose YAML names no questions; a group asks what its tasks ask."""
    if "group" in content:
        return ()
    return ("generate_until",) if content.get("output_type") == "generate_until" else ("loglikelihood",)


def _entry(content: Mapping[str, Any], metadata: Mapping[str, Any], path: Path, items: int) -> Entry:
    is_group = "group" in content
    return Entry(
        name=content["group"] if is_group else content["task"],
        kind="group" if is_group else "task",
        benchmark=metadata["benchmark"],
        language=metadata["language"],
        items=items,
        measures=metadata["measures"],
        data=metadata.get("data", ""),
        asks=tuple(metadata.get("asks", ())) or _plain_requests(content),
        members=tuple(content["task"]) if is_group else (),
        path=path,
        metadata=metadata,
        repeats=content.get("repeats"),
    )


@lru_cache(maxsize=1)
def packaged() -> dict[str, Entry]:
    """All tasks and groups of this package by name, groups first in each family."""
    raw = []
    for path in sorted(tasks_path().glob("*/*.yaml")):
        content = read_yaml(path)
        raw.append((content, content["metadata"], path))
    tasks = {c["task"]: m["n_items"] for c, m, _ in raw if "group" not in c}
    found = {}
    for content, metadata, path in sorted(raw, key=lambda r: (r[2].parent.name, "group" not in r[0], r[2].name)):
        items = sum(tasks[m] for m in content["task"]) if "group" in content else metadata["n_items"]
        made = _entry(content, metadata, path, items)
        found[made.name] = made
    return found


def entries() -> dict[str, Entry]:
    """All tasks and groups that are known: the package's, and those of :func:`include` and :func:`learn`."""
    return {**_others, **packaged()} if _others else packaged()


def include(folders: Iterable[str | Path]) -> None:
    """Take note of the tasks of this package's kind in folders that ``--include_path`` names.

    Raises:
        BiasError: One of them is no valid YAML, or lacks what this package needs to know.
    """
    for folder in folders:
        for path in under(expanded(folder), "*.yaml"):
            try:
                text = read_text(path)
            except (OSError, UnicodeDecodeError):
                continue  # the harness skips it as well
            if _OWN_CLASS not in text or tasks_path() in path.resolve().parents:
                continue
            content, _ = safe_yaml.parse(text, str(path), Loader)
            try:
                made = _entry(content, content["metadata"], path, int(content["metadata"]["n_items"]))
                registry.get(made.benchmark)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise BiasError(f"{path}: no task of this package ({one_line(error)}): write it anew") from error
            _others[made.name] = made


def learn(task: str, metadata: Mapping[str, Any], items: int, path: Path) -> Entry | None:
    """What is known of a task; of one over a data set of someone's own, what a result file says of it.

    Args:
        task: Its name.
        metadata: Of the result file.
        items: How many it has.
        path: The result file.
    """
    benchmark, fixed = metadata.get("benchmark"), metadata.get("fixed")
    if task not in entries() and isinstance(fixed, Mapping) and "dataset" in fixed:
        if isinstance(benchmark, str) and benchmark in registry.BENCHMARKS:
            asks = metadata.get("asks")
            _others[task] = Entry(
                name=task,
                kind="task",
                benchmark=benchmark,
                language=str(metadata.get("language") or ""),
                items=items,
                measures=str(metadata.get("measures") or ""),
                data="",
                asks=tuple(map(str, asks)) if isinstance(asks, list) else (),
                members=(),
                path=path,
                metadata={"version": metadata.get("version")},
            )
    return entries().get(task)


def headline(benchmark: str) -> list[Score]:
    """The scores of a benchmark that don't depend on its data: no breakdown, no second uncertainty."""
    return [s for s in registry.get(benchmark).scores([]) if s.headline and not s.name.endswith("_se_paper")]


def listing() -> list[dict[str, Any]]:
    """All entries as plain data, with each headline score's range, neutral value and direction."""
    return [
        {
            "name": e.name,
            "kind": e.kind,
            "benchmark": e.benchmark,
            "language": e.language,
            "items": e.items,
            "measures": e.measures,
            "data": e.data or None,
            "members": list(e.members),
            "scores": [s.describe() for s in headline(e.benchmark)],
        }
        for e in entries().values()
    ]
