"""What a report says, whatever it is written as."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from lm_eval_bias import __version__, registry
from lm_eval_bias.report import cards, cautions, numbers, parts, task_sentences
from lm_eval_bias.report.tables import Cell, Column, Table
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import Problem, Run

# which module knows a family's breakdowns
BREAKDOWNS = {name: f"lm_eval_bias.tasks.{name}.figures" for name in ("occugender", "gg_bbq", "stereoset", "regard")}


@dataclass(frozen=True)
class Said:
    """A task in sentences."""

    label: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Section:
    """A benchmark family in a report.

    Attributes:
        ident: For links.
        title: Its heading.
        card: What it is; ``None`` for benchmarks that this version doesn't know.
        data: Revisions of its data.
        scores: Per main score its range and neutral value.
        tasks: What of it was run.
    """

    ident: str
    title: str
    card: cards.Card | None
    data: Sequence[str]
    scores: Sequence[str]
    tasks: Sequence[parts.Placed]


@dataclass(frozen=True)
class Origin:
    """Where a run's numbers come from.

    Attributes:
        name: The run.
        facts: What its file says, label and value.
        command: What repeats it; empty where the file doesn't say.
    """

    name: str
    facts: Sequence[tuple[str, str]]
    command: str


@dataclass(frozen=True)
class Report:
    """A report's content.

    Attributes:
        title: Heading.
        runs: Names of the runs.
        summary: Per task what its scores say.
        cautions: What to beware of.
        problems: Files that were passed over.
        sections: Benchmark families in a fixed order.
        origins: Provenance.
        version: Of this package.
    """

    title: str
    runs: Sequence[str]
    summary: Sequence[Said]
    cautions: Sequence[cautions.Caution]
    problems: Sequence[str]
    sections: Sequence[Section]
    origins: Sequence[Origin]
    version: str = __version__


LABELS = {
    "date": "Date", "lm-eval-bias": "lm-eval-bias", "lm_eval": "lm_eval", "transformers": "transformers",
    "torch": "torch", "python": "Python", "model": "Model type", "model_args": "Model arguments",
    "model_revision": "Model revision", "parameters": "Parameters", "dtype": "dtype", "device": "Device",
    "batch_size": "Batch size", "seeds": "Seeds (random, numpy, torch, few-shot)", "chat_template": "Chat template",
    "system_instruction": "System instruction", "limit": "Limit", "gen_kwargs": "Generation arguments",
    "machine": "Machine", "threads": "Threads", "tokenizers": "tokenizers", "numpy": "numpy",
    "model_files": "Model files (SHA-256 of their hashes)", "data": "Data (repository@commit)",
    "data_files": "Data files (SHA-256 of their hashes)",
}  # fmt: skip


def _origin(run: Run) -> Origin:
    known = {**dict.fromkeys(LABELS), **run.provenance}
    facts = [
        (LABELS.get(key, key), printable_runs.one_line(printable_runs.shown(value))) for key, value in known.items()
    ]
    versions = "; ".join(f"{task.task} {task.version}" for task in run.tasks.values())
    return Origin(
        run.name, [*facts, ("Task versions", versions), ("File", printable_runs.one_line(run.path.name))], run.command
    )


def _scores(card: cards.Card, tasks: Sequence[parts.Placed]) -> list[str]:
    """Range and neutral value of the main scores that are there."""
    said = {}
    for benchmark in card.benchmarks:
        for own in tasks:
            for name in registry.get(benchmark).main:
                if own.task.benchmark == benchmark and name in own.task.scores:
                    value = own.task.scores[name]
                    neutral = "no neutral value" if value.neutral is None else f"neutral {numbers.bound(value.neutral)}"
                    said[name] = f"{name}: {numbers.score_range(value)}, {neutral}"
    return list(said.values())


def _sections(tasks: Sequence[parts.Placed]) -> list[Section]:
    made = []
    for card in cards.CARDS:
        own = [one for one in tasks if one.task.benchmark in card.benchmarks]
        if own:
            data = cards.data_of([one.task.task for one in own])
            made.append(Section(card.ident, card.title, card, data, _scores(card, own), own))
    other = [one for one in tasks if one.task.benchmark not in registry.BENCHMARKS]
    if other:
        made.append(Section("other", "Benchmarks that this version doesn't know", None, [], [], other))
    return made


def build(runs: Sequence[Run], problems: Sequence[Problem]) -> Report:
    """The content of a report about some runs, made printable by :mod:`lm_eval_bias.runs.printable_runs`."""
    shown = printable_runs.presentable(runs)
    tasks = parts.placed(shown)
    return Report(
        f"Bias report: {shown[0].name}" if len(shown) == 1 else f"Bias report on {len(shown)} runs",
        [run.name for run in shown],
        [Said(own.label, task_sentences.of(own.task)) for own in tasks],
        cautions.of(shown),
        [printable_runs.one_line(problem) for problem in problems],
        _sections(tasks),
        [_origin(run) for run in shown],
    )


def breakdowns(section: Section) -> list[parts.Part]:
    """A section's figures and tables for a page."""
    present = [name for name in registry.BENCHMARKS if any(own.task.benchmark == name for own in section.tasks)]
    made = []
    for name in present:
        own = [one for one in section.tasks if one.task.benchmark == name and one.task.scores]
        made.append(parts.main_scores(name, own, f"Scores of {name}" if len(present) > 1 else "Scores"))
    if section.ident in BREAKDOWNS:
        module = importlib.import_module(BREAKDOWNS[section.ident])
        made += module.parts(section.tasks)
    return [*made, parts.every_score(section.tasks)]


def main_tables(section: Section) -> list[Table]:
    """A section's main scores, one table a benchmark, for formats without figures."""
    made = []
    for name in registry.BENCHMARKS:
        own = [one for one in section.tasks if one.task.benchmark == name and one.task.scores]
        scores = [score for score in registry.get(name).main if any(score in one.task.scores for one in own)]
        if scores:
            rows = [
                [Cell(one.label), *(parts.value_cell(one.task.scores.get(score)) for score in scores)] for one in own
            ]
            made.append(
                Table(
                    f"{section.title} ({name}): main scores with 95% intervals in brackets",
                    [Column("Task"), *(Column(score, True) for score in scores)],
                    rows,
                )
            )
    return made
