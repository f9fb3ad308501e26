"""What is compared with what: runs, or instructions or languages of one model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lm_eval_bias.core import comparability, registry
from lm_eval_bias.core.benchmark import (
    LANGUAGE,
    Condition,
    ItemKey,
    without_language,
)
from lm_eval_bias.core.comparability import Fact, shown
from lm_eval_bias.core.errors import BadOption, BiasError, did_you_mean
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.core.run_record import UNKNOWN
from lm_eval_bias.custom_metrics.score import Record
from lm_eval_bias.runs import answer_files, measurement
from lm_eval_bias.runs.run_discovery import is_same


def conditions() -> dict[str, Condition]:
    """Return the conditions by name by which a model's tasks can be compared (in addition to languages)."""
    return {
        condition.name: condition for _, condition in registry.extensions(Condition)
    }


@dataclass
class Side:
    """One task of one run, as one side of a comparison.

    Attributes:
        label: What it is called in the comparison: a run's name, an instruction or a language.
        run: The run.
        task: Its task.
        hashes: Of the documents by item, once the records were read; without the fields that conditions are named by.
    """

    label: str
    run: Run
    task: TaskRun
    hashes: dict[ItemKey, str] = field(default_factory=dict)

    @cached_property
    def records(self) -> dict[ItemKey, Record]:
        """The saved answers' records by item.

        Raises:
            BiasError: There are none, or they can't be read.
        """
        records: dict[ItemKey, Record] = {}
        for saved in answer_files.of_task(self.task):
            key = saved.key
            number = 1
            while key in records:
                # data of the harness's own tasks may hold an item several times
                number += 1
                key = (*saved.key, str(number))
            records[key] = saved.record
            self.hashes[key] = saved.doc_hash
        return records

    @property
    def known(self) -> list[Record]:
        """The records, or an empty list without saved answers; benchmarks derive the list of scores from them."""
        return list(self.records.values()) if self.task.is_saved else []


@dataclass
class Pair:
    """Two sides: ``other`` is compared with ``base``, which several pairs may share."""

    subject: str
    base: Side
    other: Side

    @property
    def is_logged(self) -> bool:
        """Whether both sides have saved answers."""
        return self.base.task.is_saved and self.other.task.is_saved

    @cached_property
    def shared(self) -> list[ItemKey]:
        """The items that both sides have, in the base's order."""
        return [key for key in self.base.records if key in self.other.records]

    @cached_property
    def records(self) -> tuple[list[Record], list[Record]]:
        """Both sides' records of these items."""
        base = [self.base.records[key] for key in self.shared]
        other = [self.other.records[key] for key in self.shared]
        return base, other

    def forget(self) -> None:
        """Free the other side's records, so that comparing many runs holds two at a time."""
        for owner in (self, self.other):
            for name in ("shared", "records"):
                vars(owner).pop(name, None)
        self.other.hashes.clear()


def _level(task: TaskRun, by: str) -> tuple[str, str] | None:
    """Return the group that a task belongs to and its level in it; ``None`` if it has none."""
    if by == LANGUAGE:
        name = without_language(task.task, task.language)
        return (name, task.language) if name else None
    for condition in answer_files.conditions_of(task.definition):
        if condition.name == by:
            return condition.level(task)
    return None


def _base(levels: Sequence[str], name: str | None, default: str, kind: str) -> str:
    if name is not None and name not in levels:
        hint = did_you_mean(name, levels)
        problem = f"no such {kind} among {', '.join(levels)}.{hint}"
        raise BadOption("base", name, problem)
    return name or (default if default in levels else levels[0])


def _between_runs(runs: Sequence[Run], base: str | None) -> list[Pair]:
    if len(runs) < 2:
        raise BiasError(
            f"there is only one run ({runs[0].name}): name another one, or compare within it: --by instruction or "
            "--by language"
        )
    first = _base([run.name for run in runs], base, runs[0].name, "run")
    reference = next(run for run in runs if run.name == first)
    bases = {
        name: Side(first, reference, task) for name, task in reference.tasks.items()
    }
    pairs = []
    for run in runs:
        for name, side in bases.items():
            if run is not reference and name in run.tasks:
                other = Side(run.name, run, run.tasks[name])
                pairs.append(Pair(name, side, other))
    if not pairs:
        have = "; ".join(f"{run.name}: {', '.join(run.tasks)}" for run in runs)
        raise BiasError(f"the runs have no task in common ({have})")
    return pairs


def _levels(runs: Sequence[Run], by: str) -> list[tuple[Run, str, dict[str, Side]]]:
    """List each group of tasks by level, with the first run that has one.

    Runs that differ in nothing else complete each other: each takes the levels that the earlier ones lack.
    """
    groups: list[tuple[Run, str, dict[str, Side]]] = []
    for run in runs:
        given: dict[str, dict[str, Side]] = {}
        for task in run.tasks.values():
            level = _level(task, by)
            if level is not None:
                group, name = level
                given.setdefault(group, {})[name] = Side(f"{by} {name}", run, task)
        for group, levels in given.items():
            for first, other, earlier in groups:
                is_new = not levels.keys() & earlier.keys()
                if is_new and other == group and is_same(first, run):
                    earlier.update(levels)
                    break
            else:
                groups.append((run, group, levels))
    return groups


def _within_models(runs: Sequence[Run], by: str, base: str | None) -> list[Pair]:
    pairs = []
    for run, group, levels in _levels(runs, by):
        if len(levels) < 2:
            continue
        default = "en" if by == LANGUAGE else conditions()[by].base
        first = _base(list(levels), base, default, by)
        joined = {side.run.name for side in levels.values()}
        prefix = f"{run.name}: " if len(joined) < len(runs) else ""
        for name, side in levels.items():
            if name != first:
                pairs.append(Pair(prefix + group, levels[first], side))
    if not pairs:
        example = "--tasks stereoset_en,stereoset_de"
        if by != LANGUAGE:
            example = conditions()[by].example
        raise BadOption("by", by, f"no task was run in two or more {by}s ({example})")
    return pairs


def pairs(runs: Sequence[Run], by: str = "run", base: str | None = None) -> list[Pair]:
    """List all pairs to compare, each with the base.

    Args:
        runs: The runs.
        by: ``run``, ``instruction`` or ``language``.
        base: What the others are compared with: a run's name, an instruction or a language; by default the first run,
            no instruction, English.

    Raises:
        BiasError: There is nothing to compare, or no such base.
    """
    return _between_runs(runs, base) if by == "run" else _within_models(runs, by, base)


def why_not_paired(pair: Pair, by: str) -> str:
    """Explain why two sides can't be compared item by item; "" if they can."""
    base = pair.base
    other = pair.other
    if not pair.is_logged:
        return "no saved answers"
    if base.task.benchmark != other.task.benchmark:
        return f"other items: {base.task.task} and {other.task.task} belong to different benchmarks"
    skipped = "dataset" if by == LANGUAGE else by  # languages have data of their own
    for fact, values in _differing(pair, "refused"):
        for name, (first, second) in _parts(fact, *values).items():
            if name != skipped:
                return f"{name} {shown(first)} and {shown(second)}"
    shared = len(pair.shared)
    counts = len(base.records), len(other.records)
    # a language lacks what couldn't be translated: what both have is compared
    if by == LANGUAGE and 2 * shared >= min(counts):
        return ""
    if {shared} != set(counts):
        return (
            f"other items: {counts[0]:,} and {counts[1]:,}, {shared:,} of them the same"
        )
    # logs hold the documents whole, also those of runs whose results files have no hashes of them
    changed = sum(base.hashes[key] != other.hashes[key] for key in pair.shared)
    if changed:
        return f"other contents of {changed:,} of {shared:,} items"
    if by == "run" and _asked(pair)[0]:
        return "other prompts for the same documents"
    return ""


def _differing(pair: Pair, *cells: str) -> Iterator[tuple[Fact, list[object]]]:
    """Yield the facts with such a cell for pairs in which two sides differ and that matter to one, with both values."""
    tasks = (pair.base.task, pair.other.task)
    base, other = map(measurement.of, tasks)
    rows = [fact for fact in comparability.facts().values() if fact.pairs in cells]
    for fact, *values in comparability.differing(base, other, rows):
        if fact.pairs == "both" and None in values:
            continue
        if any(measurement.takes_part(fact, task) for task in tasks):
            yield fact, values


def _parts(fact: Fact, base: Any, other: Any) -> dict[str, tuple[object, object]]:
    """Return the differing values of a fact by name; for options, one entry per option."""
    if not isinstance(base, Mapping):
        return {fact.label: (base, other)}
    names = [name for name in {**base, **other} if base.get(name) != other.get(name)]
    return {name: (base.get(name), other.get(name)) for name in names}


def _asked(pair: Pair) -> tuple[bool, bool]:
    """Return whether two sides had different prompts, and whether the prompts of both are known."""
    base = measurement.documents_hash(pair.base.task)
    other = measurement.documents_hash(pair.other.task)
    known = UNKNOWN not in (base, other)
    return known and base != other, known


def beside_the_model(pair: Pair, by: str = "run") -> str:
    """Describe what else differs between two runs and can change scores; empty if nothing is known to."""
    parts = []
    for fact, values in _differing(pair, "note", "both"):
        texts = [shown(value)[:40] for value in values]
        parts.append(f"{fact.label} ({', '.join(texts)})")
    notes = ["the runs differ in " + ", ".join(parts)] if parts else []
    base, other = (side.task.record.model.weights for side in (pair.base, pair.other))
    if by == "run" and base and base == other:
        notes.append("both have the same weights: what differs isn't the model")
    if by == "run":  # prompts in two languages or under two instructions have to differ
        differ, known = _asked(pair)
        if differ:
            notes.append("the runs have different items, documents or prompts")
        elif not known:
            notes.append("the files don't record whether the prompts are the same")
    return "; ".join(notes)
