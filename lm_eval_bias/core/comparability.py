"""The table of what counts (``comparability.yaml``): whether two runs are the same measurement, for each purpose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from lm_eval_bias.core import Facts
from lm_eval_bias.core.files import packaged_yaml
from lm_eval_bias.core.run_record import RunRecord


@dataclass(frozen=True)
class Fact:
    """A row of the table: one field of a :class:`~lm_eval_bias.core.run_record.RunRecord` and its effects.

    Attributes:
        field: The field, as ``prompt.template``.
        name: What readers and policies call it.
        when: ``sampled`` or ``generated`` where boards, comparisons and gates take it into account only then.
        ranks: ``apart``, or empty.
        joins: ``same``, ``known``, or empty.
        pairs: ``refused``, ``note``, ``both``, ``items``, or empty.
        gate: ``allow``, ``said``, or empty.
        cache: ``other``, or empty.
        board: ``other``, or empty.
        always: Whether every run has one.
        departs: How a value departs from the task's own; empty if any does.
        written: How a policy writes a departure; empty for its value on one line.
        problem: A departure in words, with ``{}`` for the value; empty where name and value say it.
        why: What isn't plain.
    """

    field: str
    name: str
    when: str = ""
    ranks: str = ""
    joins: str = ""
    pairs: str = ""
    gate: str = ""
    cache: str = ""
    board: str = ""
    always: bool = False
    departs: str = ""
    written: str = ""
    problem: str = ""
    why: str = ""

    @property
    def label(self) -> str:
        """Its name for people."""
        return self.name.replace("_", " ")

    def of(self, record: RunRecord) -> Any:
        """Return a record's value of this fact."""
        return attrgetter(self.field)(record)


def _table() -> Facts:
    return packaged_yaml("lm_eval_bias.core", "comparability.yaml")


@cache
def facts() -> Mapping[str, Fact]:
    """Return the rows by field, in the table's order."""
    return {name: Fact(name, **row) for name, row in _table()["facts"].items()}


def task_keys() -> list[str]:
    """List the keys of a task's YAML that decide what is asked and how it is answered."""
    return list(_table()["task_keys"])


def arguments_of(field: str) -> list[str]:
    """List the arguments of a model that belong to a fact by name."""
    return list(_table()["arguments"].get(field, ()))


def fact_of_argument(name: str) -> Fact:
    """Return the fact that a model argument belongs to."""
    owners = [field for field, names in _table()["arguments"].items() if name in names]
    return facts()[owners[0] if owners else "model.arguments"]


def shown(value: object) -> str:
    """Format a fact on one line.

    >>> shown({"enable_thinking": False}), shown((0, 1234)), shown(None)
    ('enable_thinking=False', '0,1234', 'none')
    """
    if isinstance(value, Mapping):
        value = [f"{key}={entry}" if key else entry for key, entry in value.items()]
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    return "none" if value is None or value == "" else str(value)


def differing(
    one: RunRecord, other: RunRecord, rows: Iterable[Fact]
) -> Iterator[tuple[Fact, Any, Any]]:
    """Yield those of some facts in which two records differ, with both values."""
    for fact in rows:
        here = fact.of(one)
        there = fact.of(other)
        if here != there:
            yield fact, here, there


def can_join(one: RunRecord, other: RunRecord) -> bool:
    """Return whether the files of two records can be one run, as far as their tasks don't matter."""
    rows = [fact for fact in facts().values() if fact.joins]
    return not any(
        fact.joins == "same" or (here and there)
        for fact, here, there in differing(one, other, rows)
    )
