"""Scores as plain data: of a run once it has been read, and as the papers print them, in the same names and units."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path, PurePath
from typing import Any

from lm_eval_bias.core import Facts
from lm_eval_bias.core.errors import call_plugin
from lm_eval_bias.core.run_record import RunRecord
from lm_eval_bias.core.verdicts import Diagnostic
from lm_eval_bias.core.verdicts import Value as Value
from lm_eval_bias.custom_metrics.score import (
    Record,
    Score,
    joined,
)

LONGEST_OPTION = 80  # characters of one that is shown whole


def values_of(scores: Iterable[Score], records: Sequence[Record]) -> dict[str, Value]:
    """Compute scores of some records, by name."""
    return {score.name: Value.of(score, score.compute(records)) for score in scores}


@dataclass(frozen=True)
class TaskRun:
    """A task of a run, with its scores and metadata.

    Attributes:
        task: Task name.
        definition: Its :class:`~lm_eval_bias.core.benchmark.Benchmark` or variant, perhaps an unknown one.
        language: ISO 639-1 code.
        version: Of the task.
        documents: How many were scored.
        items: How many the task has, 0 if it is unknown.
        metadata: The task's options and what its hooks told about the run.
        scores: By name, in the benchmark's order.
        samples: The sample log, where it lies beside the result.
        answers: The run's answers without its texts (:mod:`lm_eval_bias.runs.answer_files`), where they do.
        usual_repeats: Texts of each prompt that the task takes; ``None`` where it isn't known or not sampled.
        chosen: Scores that are shown in place of the main ones; none for the main ones.
        diagnostics: What must be known before its scores are believed, most serious first.
        record: What it was made by.
    """

    task: str
    definition: (
        Any  # benchmarks know what a run is: naming their type would be a circle
    )
    language: str
    version: str
    documents: int
    items: int
    metadata: Facts
    scores: Mapping[str, Value]
    samples: Path | None = None
    answers: Path | None = None
    usual_repeats: int | None = None
    chosen: Sequence[str] = ()
    diagnostics: Sequence[Diagnostic] = ()
    record: RunRecord = RunRecord()

    @property
    def benchmark(self) -> str:
        """The name of its benchmark or variant."""
        return self.definition.name

    @property
    def saved_files(self) -> list[Path]:
        """The paths of the sample log and of the run's answers, as far as they exist."""
        return list(filter(None, (self.samples, self.answers)))

    @property
    def is_saved(self) -> bool:
        """Whether its answers are saved, with or without their texts."""
        return bool(self.saved_files)

    def warning(self, score: str = "") -> str:
        """Return its warnings (or those about one score) on one line; empty without any."""
        return joined(*(one.shortest for one in self.diagnostics_of(score)))

    def diagnostics_of(self, score: str = "") -> list[Diagnostic]:
        """Return its warnings, or those about one of its scores."""
        return [
            r for r in self.diagnostics if not (r.scores and score) or score in r.scores
        ]

    def main(self) -> list[Value]:
        """Return the main scores that it has; all scores if its benchmark names none."""
        return self._values(self.definition.main or self.scores)

    def with_verdicts(self) -> list[Value]:
        """Return the main scores and those reported beside them, on which verdicts rest."""
        names = self.definition.main or self.scores
        return self._values([*names, *self.definition.presentation.beside_main])

    def shown(self) -> list[Value]:
        """Return the scores that tables show: the chosen ones, else the main ones with those beside them."""
        return self._values(self.chosen) or self.with_verdicts()

    def _values(self, names: Iterable[str]) -> list[Value]:
        return [self.scores[name] for name in names if name in self.scores]

    @property
    def withheld(self) -> str:
        """Why its scores must not be shown; empty if they may."""
        failed = "its benchmark can't say whether they may be shown"
        decide = self.definition.presentation.withheld
        return call_plugin(failed, self.definition, decide, self)

    @property
    def inputs(self) -> Facts:
        """Hashes of its inputs and prompts (:func:`lm_eval_bias.harness.run_inputs.of_task`)."""
        return self.metadata.get("inputs") or {}

    def option(self, name: str) -> Any:
        """Return an option's value, from the task's YAML or the run; ``None`` without one."""
        fixed = self.metadata.get("fixed") or {}
        return fixed.get(name, self.metadata.get(name))

    def file_hash(self, name: str) -> str:
        """Return the SHA-256 of the file that an option names; empty if no such file is known to have been read."""
        value = self.option(name)
        if not isinstance(value, str):
            return ""
        return self.inputs.get("files", {}).get(value, "")

    def option_text(self, name: str) -> str:
        """Write an option's value on one line: of a long text the beginning and a hash, of a file its name and hash."""
        value = self.option(name)
        digest = self.file_hash(name)
        if digest:  # the file at a path can change
            return f"{PurePath(str(value)).name} ({digest[:12]})"
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
        text = text.removeprefix('"').removesuffix('"')
        if len(text) <= LONGEST_OPTION:
            return text
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        return f"{text[: LONGEST_OPTION - 20]}... ({digest[:12]})"

    @property
    def fewer_samples(self) -> tuple[int, int] | None:
        """How many texts of each prompt were sampled and how many the task takes, where those are more."""
        usual = self.usual_repeats
        repeats = self.metadata.get("repeats")
        return (repeats, usual) if usual and repeats and repeats < usual else None


@dataclass(repr=False)
class Run:
    """One model's run, of a file or of several whose records say the same (``core/comparability.yaml``).

    Attributes:
        name: For people: the model, unique among runs that were read together. It can be set.
        path: The file it was read from, the first of several.
        tasks: By name.
    """

    name: str
    path: Path
    tasks: Mapping[str, TaskRun]

    def __repr__(self) -> str:
        listed = ", ".join([*self.tasks][:3]) + ", ..." * (len(self.tasks) > 3)
        return f"<run {self.name} of {len(self.tasks)} tasks: {listed}>"

    @property
    def records(self) -> list[RunRecord]:
        """Its provenance records, one per file."""
        return list({id(t.record): t.record for t in self.tasks.values()}.values())

    @property
    def record(self) -> RunRecord:
        """The provenance record of its first file."""
        return self.records[0] if self.tasks else RunRecord()

    @property
    def command(self) -> str:
        """The commands that produced it, one per line; empty if its files don't have them."""
        return "\n".join(filter(None, (record.command for record in self.records)))


@dataclass(frozen=True)
class Problem:
    """A skipped file with the reason, or tasks of a run that weren't selected."""

    path: Path
    reason: str
    is_choice: bool = False

    def __str__(self) -> str:
        return self.reason if self.is_choice else f"{self.path}: {self.reason}"

    @property
    def told(self) -> str:
        """The same without the file's folder."""
        return self.reason if self.is_choice else f"{self.path.name}: {self.reason}"

    def as_data(self) -> dict[str, str]:
        """Convert it to plain data for JSON."""
        return {"path": str(self.path), "reason": self.reason}


def readable(fact: object) -> str:
    """Format a provenance fact; an en dash if it is missing."""
    if fact is None or fact == "":
        return "–"
    return (
        str(fact)
        if isinstance(fact, (str, int, float))
        else json.dumps(fact, ensure_ascii=False)
    )


@dataclass(frozen=True)
class PublishedCell:
    """A printed score.

    Attributes:
        value: In the suite's unit; ``nan`` where the paper prints a bound only.
        printed: The same with the paper's digits.
        plus_minus: The uncertainty printed beside it, same unit; ``None`` where there is none. Never a standard error
            that one could test with: see the row's conventions.
        derived: How it follows from printed numbers, where it isn't printed itself.
    """

    value: float
    printed: str
    plus_minus: float | None = None
    derived: str = ""


@dataclass(frozen=True)
class Published:
    """A model's scores in one task.

    Attributes:
        task: Task name.
        model: As the paper calls it, with its approach where it has several.
        paper: Authors and year.
        tables: Where in the paper.
        conventions: What the scores were made by.
        notes: What is known to be wrong with them.
        cells: By score name.
        chance: Why they say nothing about bias, as of a network that was never trained; empty if they do.
    """

    task: str
    model: str
    paper: str
    tables: str
    conventions: str
    notes: tuple[str, ...] = ()
    cells: Mapping[str, PublishedCell] = field(default_factory=dict)
    chance: str = ""


def published(name: str) -> Iterator[Published]:
    """Read what papers print of a benchmark: ``results/published/<name>.jsonl``, if there is one."""
    file = resources.files("lm_eval_bias.results").joinpath(
        "published", f"{name}.jsonl"
    )
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        row = json.loads(line)
        cells = {}
        for score, cell in row["cells"].items():
            value = cell.get("value", cell["printed"])  # none of a bound, such as <.01
            cells[score] = PublishedCell(
                **{**cell, "value": math.nan if value is None else float(value)}
            )
        yield Published(**{**row, "notes": tuple(row["notes"]), "cells": cells})
