"""What tasks there are, read from their YAMLs without the harness (so that listing them is instant)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from lm_eval_bias import benchmarks
from lm_eval_bias.custom_metrics._score import Score
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
        benchmark: Key into :data:`lm_eval_bias.benchmarks.BENCHMARKS`.
        language: ISO 639-1 code.
        items: Number of documents; a group's is the sum over its tasks.
        measures: What it measures, in one line.
        data: Set of pinned files that it reads, empty if none.
        asks: Kinds of requests: questions (see ``scoring.questions``), ``loglikelihood`` or ``generate_until``.
        members: A group's tasks.
        path: The YAML file.
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


def read_yaml(path: Path) -> dict[str, Any]:
    """A task YAML with its base file merged in, functions left as text."""
    content: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=Loader)  # noqa: S506 (a SafeLoader)
    base = content.pop("include", None) if isinstance(content, dict) else None
    return {**read_yaml(path.parent / base), **content} if base else content


def _plain_requests(content: dict[str, Any]) -> tuple[str, ...]:
    """What a task asks whose YAML names no questions; a group asks what its tasks ask."""
    if "group" in content:
        return ()
    return ("generate_until",) if content.get("output_type") == "generate_until" else ("loglikelihood",)


@lru_cache(maxsize=1)
def entries() -> dict[str, Entry]:
    """All tasks and groups by name, groups first in each family."""
    raw = []
    for path in sorted(tasks_path().glob("*/*.yaml")):
        content = read_yaml(path)
        raw.append((content, content["metadata"], path))
    tasks = {c["task"]: m["n_items"] for c, m, _ in raw if "group" not in c}
    found = {}
    for content, metadata, path in sorted(raw, key=lambda r: (r[2].parent.name, "group" not in r[0], r[2].name)):
        is_group = "group" in content
        members = tuple(content["task"]) if is_group else ()
        name = content["group"] if is_group else content["task"]
        found[name] = Entry(
            name=name,
            kind="group" if is_group else "task",
            benchmark=metadata["benchmark"],
            language=metadata["language"],
            items=sum(tasks[m] for m in members) if is_group else metadata["n_items"],
            measures=metadata["measures"],
            data=metadata.get("data", ""),
            asks=tuple(metadata.get("asks", ())) or _plain_requests(content),
            members=members,
            path=path,
        )
    return found


def headline(benchmark: str) -> list[Score]:
    """The scores of a benchmark that don't depend on its data: no breakdown, no second uncertainty."""
    return [s for s in benchmarks.get(benchmark).scores([]) if s.headline and not s.name.endswith("_se_paper")]


def format_number(value: float | None) -> str:
    """A bound or neutral value for people.

    >>> format_number(100.0), format_number(None), format_number(float("-inf"))
    ('100', '–', '-∞')
    """
    if value is None:
        return "–"
    return f"{value:g}".replace("inf", "∞")


def format_range(score: Score) -> str:
    """A score's range for people: ``-1 … 1``."""
    return f"{format_number(score.low)} … {format_number(score.high)}"


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


def legend(names: list[str]) -> str:
    """A table of how to read the scores of the benchmarks of these tasks; empty if none is ours."""
    from tabulate import tabulate

    rows = []
    for benchmark in dict.fromkeys(entries()[n].benchmark for n in names if n in entries()):
        for score in headline(benchmark):
            rows.append([score.name, format_range(score), format_number(score.neutral), score.direction])
    return tabulate(rows, headers=["Score", "Range", "Neutral", "Reads as"], tablefmt="github") if rows else ""
