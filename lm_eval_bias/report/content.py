"""What a report says, whatever it is written as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lm_eval_bias import __version__, registry
from lm_eval_bias.benchmark import Card
from lm_eval_bias.report import cautions, numbers, parts, pinned_data, sentences
from lm_eval_bias.report.tables import Cell, Column, Table
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import Problem, Run


@dataclass(frozen=True)
class TaskSummary:
    """A task in sentences."""

    label: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Section:
    """A benchmark family in a report.

    Attributes:
        ident: For links.
        title: Its heading.
        card: What readers must know of it; ``None`` where nothing was written, or this version doesn't know it.
        data: Revisions of its data.
        scores: Per main score its range and neutral value.
        tasks: What of it was run.
    """

    ident: str
    title: str
    card: Card | None
    data: Sequence[str]
    scores: Sequence[str]
    tasks: Sequence[parts.ReportTask]


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
    summary: Sequence[TaskSummary]
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


def _scores(tasks: Sequence[parts.ReportTask]) -> list[str]:
    """Range and neutral value of the main scores that are there."""
    lines = {}
    for own in tasks:
        for name in parts.main_names(own.task):
            value = own.task.scores[name]
            neutral = "no neutral value" if value.neutral is None else f"neutral {numbers.bound(value.neutral)}"
            lines[name] = f"{name}: {numbers.score_range(value)}, {neutral}"
    return list(lines.values())


def _sections(tasks: Sequence[parts.ReportTask]) -> list[Section]:
    made = []
    for benchmark in registry.benchmarks():
        own = [one for one in tasks if registry.family(one.task.benchmark) is benchmark]
        if own:
            data = pinned_data.data_of([one.task.task for one in own])
            title = benchmark.title or benchmark.name
            made.append(Section(benchmark.name, title, benchmark.card, data, _scores(own), own))
    other = [one for one in tasks if one.task.benchmark not in registry.by_name()]
    if other:
        made.append(Section("other", "Benchmarks that this version doesn't know", None, [], [], other))
    return made


def build(runs: Sequence[Run], problems: Sequence[Problem]) -> Report:
    """The content of a report about some runs, made printable by :mod:`lm_eval_bias.runs.printable_runs`."""
    shown = printable_runs.presentable(runs)
    tasks = parts.report_tasks(shown)
    return Report(
        f"Bias report: {shown[0].name}" if len(shown) == 1 else f"Bias report on {len(shown)} runs",
        [run.name for run in shown],
        [TaskSummary(own.label, sentences.of_task(own.task)) for own in tasks],
        cautions.of(shown),
        [printable_runs.one_line(problem) for problem in problems],
        _sections(tasks),
        [_origin(run) for run in shown],
    )


def _names(section: Section) -> list[str]:
    """The section's benchmark and variants, as far as something of them was run."""
    return [name for name in registry.by_name() if any(own.task.benchmark == name for own in section.tasks)]


def breakdowns(section: Section) -> list[parts.Part]:
    """A section's figures and tables for a page."""
    names = _names(section)
    made = []
    for name in names:
        own = [one for one in section.tasks if one.task.benchmark == name and one.task.scores]
        made.append(parts.main_scores(name, own, f"Scores of {name}" if len(names) > 1 else "Scores"))
    if names:
        made += registry.get(names[0]).figures(section.tasks)
    return [*made, parts.every_score(section.tasks)]


def main_tables(section: Section) -> list[Table]:
    """A section's main scores, one table a benchmark or variant, for formats without figures."""
    made = []
    for name in _names(section):
        own = [one for one in section.tasks if one.task.benchmark == name and one.task.scores]
        scores = list(dict.fromkeys(score for one in own for score in parts.main_names(one.task)))
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
