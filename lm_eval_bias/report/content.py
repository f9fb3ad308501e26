"""What a report says, whatever it is written as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lm_eval_bias import __version__, registry
from lm_eval_bias.benchmark import Card
from lm_eval_bias.report import (
    cautions,
    caveats,
    language_parts,
    numbers,
    overview,
    parts,
    pinned_data,
    score_labels,
    sentences,
)
from lm_eval_bias.report.cautions import Caution
from lm_eval_bias.report.item_pages import ItemPages
from lm_eval_bias.report.tables import Cell, Column, Table
from lm_eval_bias.runs.run_data import Problem, Run, presentable, readable


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
        is_own_data: Whether its data are a file of the user's.
        is_harness_data: Whether the harness downloads its data.
    """

    ident: str
    title: str
    card: Card | None
    data: Sequence[str]
    scores: Sequence[str]
    tasks: Sequence[parts.ReportTask]
    is_own_data: bool = False
    is_harness_data: bool = False


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
        overview: The first screen of a page.
        summary: Per task what its scores say.
        cautions: What to beware of.
        problems: Files that were passed over.
        sections: Benchmark families in a fixed order.
        origins: Provenance.
        version: Of this package.
    """

    title: str
    runs: Sequence[str]
    overview: overview.Overview
    summary: Sequence[TaskSummary]
    cautions: Sequence[cautions.Caution]
    problems: Sequence[str]
    sections: Sequence[Section]
    origins: Sequence[Origin]
    version: str = __version__

    @cached_property
    def languages(self) -> parts.Part | None:
        """Scores by language, over all sections; ``None`` where nothing was asked in two."""
        return language_parts.languages([task for section in self.sections for task in section.tasks])

    @property
    def warnings(self) -> list[tuple[str, bool, list[Caution]]]:
        """What to beware of by weight, with whether it is folded away."""
        by_kind = {kind: [one for one in self.cautions if one.kind == kind] for kind in cautions.KINDS}
        return [(kind, kind != cautions.SERIOUS, group) for kind, group in by_kind.items() if group]


SENTENCES = 120  # tasks that a page puts into words: nobody reads more
BREAKDOWNS = 60  # tasks of a section whose breakdowns are shown
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
    values = {**dict.fromkeys(LABELS), **run.provenance}
    facts = [(LABELS.get(key, key), readable(value)) for key, value in values.items()]
    versions = "; ".join(f"{task.task} {task.version}" for task in run.tasks.values())
    return Origin(run.name, [*facts, ("Task versions", versions), ("File", run.path.name)], run.command)


def _scores(tasks: Sequence[parts.ReportTask]) -> list[str]:
    """Range and neutral value of the main scores that are there."""
    lines = {}
    for item in tasks:
        for name in parts.main_names(item.task):
            value = item.task.scores[name]
            neutral = "no neutral value" if value.neutral is None else f"neutral {numbers.bound(value.neutral)}"
            label = score_labels.label(item.task.benchmark, name)
            lines[name] = f"{label} ({name}): {numbers.score_range(value)}, {neutral}"
    return list(lines.values())


def _sections(tasks: Sequence[parts.ReportTask]) -> list[Section]:
    sections = []
    for benchmark in registry.benchmarks():
        members = [item for item in tasks if registry.family(item.task.benchmark) is benchmark]
        if members:
            names = [item.task.task for item in members]
            data, from_harness = pinned_data.data_of(names), pinned_data.are_of_harness(names)
            title = benchmark.title or benchmark.name
            is_own = bool(benchmark.required)
            sections.append(
                Section(benchmark.name, title, benchmark.card, data, _scores(members), members, is_own, from_harness)
            )
    unknown = [item for item in tasks if item.task.benchmark not in registry.by_name()]
    if unknown:
        sections.append(Section("other", "Benchmarks that this version doesn't know", None, [], [], unknown))
    return sections


def _in_words(item: parts.ReportTask) -> list[str]:
    """A task in sentences, behind what has to be read before them."""
    caveat = caveats.of(item.run, item.task)
    first = [sentences.sentence(caveat)] if caveat else []
    return first + sentences.of_task(item.task)


def build(runs: Sequence[Run], problems: Sequence[Problem], items: ItemPages | None = None) -> Report:
    """The content of a report.

    Args:
        runs: The runs.
        problems: Files that were passed over.
        items: Pages of the scores' items, where there are such.
    """
    runs = presentable(runs)
    tasks = parts.report_tasks(runs)
    if items is not None:
        tasks = [
            replace(task, items=items.links.get(task.ident, {}), no_items=items.reasons.get(task.ident, ""))
            for task in tasks
        ]
    sections = _sections(tasks)
    return Report(
        f"Bias report: {runs[0].name}" if len(runs) == 1 else f"Bias report on {len(runs)} runs",
        [run.name for run in runs],
        overview.build(runs, tasks, [(one.title, one.ident, one.tasks) for one in sections]),
        [TaskSummary(item.label, _in_words(item)) for item in tasks],
        cautions.of(runs),
        list(map(str, problems)),
        sections,
        [_origin(run) for run in runs],
    )


def _names(section: Section) -> list[str]:
    """The section's benchmark and variants, as far as something of them was run."""
    return [name for name in registry.by_name() if any(item.task.benchmark == name for item in section.tasks)]


def breakdowns(section: Section) -> list[parts.Part]:
    """A section's figures and tables for a page."""
    names = _names(section)
    contents = []
    for name in names:
        members = [item for item in section.tasks if item.task.benchmark == name and item.task.scores]
        contents.append(parts.main_scores(name, members, f"Scores of {name}" if len(names) > 1 else "Scores"))
    if names:
        contents += registry.get(names[0]).figures(section.tasks[:BREAKDOWNS])
    if len(section.tasks) > BREAKDOWNS:
        text = f"They show the first {BREAKDOWNS} of {len(section.tasks):,}; a report on fewer runs shows the others."
        contents.append(parts.Part("Tasks in the breakdowns above", [text]))
    return [*contents, parts.every_score(section.tasks)]


def _label(item: parts.ReportTask) -> Cell:
    caveat = caveats.of(item.run, item.task)
    return Cell(f"{item.label} ({caveat})" if caveat else item.label)


def main_tables(section: Section) -> list[Table]:
    """A section's main scores, one table a benchmark or variant, for formats without figures."""
    tables = []
    for name in _names(section):
        members = [item for item in section.tasks if item.task.benchmark == name and item.task.scores]
        scores = list(dict.fromkeys(score for item in members for score in parts.main_names(item.task)))
        if scores:
            rows = [
                [_label(item), *(parts.value_cell(item.task.scores.get(score)) for score in scores)] for item in members
            ]
            tables.append(
                Table(
                    f"{section.title} ({name}): main scores with 95% intervals in brackets",
                    [Column("Task"), *(Column(score, True) for score in scores)],
                    rows,
                )
            )
    return tables
