"""What a report says, whatever it is written as."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lm_eval_bias.core import __version__, catalog, numbers, registry
from lm_eval_bias.core.benchmark import REQUIRED, Benchmark, Card, card_of, options_for
from lm_eval_bias.core.errors import ask
from lm_eval_bias.core.page_parts import Cell, Column, Part, ReportTask, Table
from lm_eval_bias.core.run_data import Problem, Run, readable
from lm_eval_bias.data.sources import manifest
from lm_eval_bias.report import overview, parts, sentences
from lm_eval_bias.runs import remarks
from lm_eval_bias.runs.harness_results import presentable
from lm_eval_bias.runs.remarks import PlacedRemark


@dataclass(frozen=True)
class Section:
    """A benchmark family in a report.

    Attributes:
        ident: For links.
        title: Its heading.
        card: What readers must know of it; ``None`` where nothing was written, or this version doesn't know it.
        data_from: Where its data are from.
        scores: Per main score its range and neutral or best value.
        tasks: What of it was run.
        words: Per task what its scores say.
    """

    ident: str
    title: str
    card: Card | None
    data_from: str
    scores: Sequence[str]
    tasks: Sequence[ReportTask]
    words: Sequence[Part]


@dataclass(frozen=True)
class Origin:
    """Where a run's numbers come from.

    Attributes:
        name: The run.
        date: When it was run.
        version: Of the package that ran it.
        file: Its results file and the beginning of the file's SHA-256.
        facts: What its file says, label and value.
        command: What repeats it; empty where the file doesn't say.
    """

    name: str
    date: str
    version: str
    file: str
    facts: Sequence[tuple[str, str]]
    command: str


@dataclass(frozen=True)
class Report:
    """A report's content.

    Attributes:
        title: Heading.
        groups: The benchmarks in the pictures of a page's first screen.
        cautions: What to beware of.
        problems: Files that were passed over.
        sections: Benchmark families in a fixed order.
        origins: Provenance.
    """

    title: str
    groups: Sequence[overview.BenchmarkPicture]
    cautions: Sequence[PlacedRemark]
    problems: Sequence[str]
    sections: Sequence[Section]
    origins: Sequence[Origin]

    @property
    def tasks(self) -> list[ReportTask]:
        """All tasks of all sections."""
        return [item for section in self.sections for item in section.tasks]

    @property
    def table(self) -> Table:
        """The main scores of all tasks."""
        return parts.main_table(self.tasks)

    @property
    def trial(self) -> str:
        """The tasks of which a part was run, with that part; empty where all were run whole."""
        places: dict[str, list[str]] = {}
        for item in self.tasks:
            if part := remarks.trial(item.task):
                places.setdefault(part, []).append(item.task.task)
        return "; ".join(
            f"{part} of {numbers.few(list(dict.fromkeys(tasks)), 3)}"
            for part, tasks in places.items()
        )

    @property
    def warnings(self) -> list[PlacedRemark]:
        """What to beware of by weight; that a run is a trial stands above."""
        return [one for one in self.cautions if one.kind != "trial_run"]


LABELS = {
    "date": "Date", "lm-eval-bias": "lm-eval-bias", "lm_eval": "lm_eval", "transformers": "transformers",
    "torch": "torch", "python": "Python", "model": "Model type", "model_args": "Model arguments",
    "model_revision": "Model revision", "parameters": "Parameters", "dtype": "dtype", "device": "Device",
    "batch_size": "Batch size", "seeds": "Seeds (random, numpy, torch, few-shot)", "chat_template": "Chat template",
    "system_instruction": "System instruction", "limit": "Limit", "gen_kwargs": "Generation arguments",
    "machine": "Machine", "threads": "Threads", "tokenizers": "tokenizers", "numpy": "numpy",
    "model_files": "Model files (SHA-256 of their hashes)", "border": "Tokenizer and template",
    "data": "Data (repository@commit)",
    "data_files": "Data files (SHA-256 of their hashes)",
}  # fmt: skip


def _section(
    title: str, benchmark: Benchmark | None, tasks: Sequence[ReportTask]
) -> Section:
    """A family's section; ``benchmark`` is ``None`` where this version doesn't know it."""
    lines, words = {}, []
    for item in tasks:
        for name in parts.main_names(item.task) if benchmark else ():
            value = item.task.scores[name]
            lines[name] = (
                f"{value.title} ({name}): {numbers.score_range(value)}, {numbers.aim(value)}"
            )
        words.append(Part(item.label, sentences.after_caveats(item.run, item.task)))
    if benchmark is None:
        return Section("other", title, None, "", [], tasks, words)
    data = _data_from(benchmark, tasks)
    return Section(
        benchmark.name,
        title,
        card_of(benchmark),
        data,
        list(lines.values()),
        tasks,
        words,
    )


def _sections(tasks: Sequence[ReportTask]) -> list[Section]:
    families: dict[Benchmark | None, list[ReportTask]] = {
        benchmark: [] for benchmark in registry.benchmarks()
    }
    families[None] = []
    for item in tasks:
        families[registry.family(item.task.benchmark)].append(item)
    unknown = "Benchmarks that this version doesn't know"
    return [
        _section(
            benchmark.title or benchmark.name if benchmark else unknown,
            benchmark,
            members,
        )
        for benchmark, members in families.items()
        if members
    ]


def build(runs: Sequence[Run], problems: Sequence[Problem]) -> Report:
    """The content of a report.

    Args:
        runs: The runs.
        problems: Files that were passed over.
    """
    runs = presentable(runs)
    tasks = parts.report_tasks(runs)
    sections, reach = _sections(tasks), overview.reach_of(tasks)
    origins = []
    for run in runs:
        values = {**dict.fromkeys(LABELS), **run.provenance}
        facts = [
            (LABELS.get(key, key), readable(value)) for key, value in values.items()
        ]
        versions = "; ".join(
            f"{task.task} {task.version}" for task in run.tasks.values()
        )
        file = run.path.name
        if run.path.is_file():
            file += (
                f", SHA-256 {hashlib.sha256(run.path.read_bytes()).hexdigest()[:12]}"
            )
        date = str(values["date"] or "no date")[:10]
        facts += [("Task versions", versions), ("File", file)]
        origins.append(
            Origin(
                run.name,
                date,
                readable(values["lm-eval-bias"]),
                file,
                facts,
                run.command,
            )
        )
    return Report(
        f"Bias report: {runs[0].name}"
        if len(runs) == 1
        else f"Bias report on {len(runs)} runs",
        [overview.picture(one.title, one.ident, one.tasks, reach) for one in sections],
        remarks.of_runs(runs),
        list(map(str, problems)),
        sections,
        origins,
    )


def _names(section: Section) -> list[str]:
    """The section's benchmark and variants, as far as something of them was run."""
    return [
        name
        for name in registry.by_name()
        if any(item.task.benchmark == name for item in section.tasks)
    ]


def breakdowns(section: Section) -> list[Part]:
    """A section's figures and tables for a page."""
    contents: list[Part] = []
    if names := _names(section):
        own = registry.get(names[0])
        contents += ask([], own, own.presentation.figures, section.tasks)
    lines, lists = parts.about_items(section.tasks)
    if lines or lists:
        contents.append(Part("Items", lines, folded=lists))
    return [*contents, Part("Every score", folded=[parts.every_score(section.tasks)])]


def paper_tables(section: Section) -> list[tuple[str, Table]]:
    """A section's main scores for a paper, models by scores: one table a benchmark or variant, by name."""
    tables = []
    for name in _names(section):
        members = [
            item
            for item in section.tasks
            if item.task.benchmark == name and item.task.scores
        ]
        scores, values = parts.side_by_side([item.task for item in members])
        if scores:
            rows = [
                [
                    Cell(
                        item.run.name, note=remarks.before_scores(item.run, item.task)
                    ),
                    Cell(item.task.task),
                    *own,
                ]
                for item, own in zip(members, values, strict=True)
            ]
            labels = [Column(score.title, True) for score in scores]
            tables.append(
                (
                    name,
                    Table(
                        section.title, [Column("Model"), Column("Task"), *labels], rows
                    ),
                )
            )
    return tables


def bibliography(sections: Sequence[Section]) -> list[tuple[str, dict[str, str]]]:
    """List the papers of some sections as BibTeX has them: key and fields."""
    entries = []
    for section in sections:
        if section.card is not None and section.card.citation:
            link = {"url": section.card.link} if section.card.link else {}
            entries.append(
                (section.ident.replace("_", "-"), {**section.card.citation, **link})
            )
    return entries


def _data_of(tasks: Collection[str]) -> list[str]:
    """The pinned data of some tasks, one line per upstream revision; unknown tasks are passed over."""
    names = {
        entry.data
        for name, entry in catalog.entries().items()
        if name in tasks and entry.data
    }
    sources = manifest().resolve(sorted(names)) if names else []
    lines = (
        f"{one.repository}, commit {one.commit[:12]}; licence: {one.licence}"
        for one in sources
    )
    return list(dict.fromkeys(lines))


def _data_from(benchmark: Benchmark, items: Sequence[ReportTask]) -> str:
    """Where a benchmark's data are from."""
    if options_for(benchmark, REQUIRED):
        return "A file of the user’s: its name is in the command that repeats the run"
    if not registry.is_own(benchmark):
        return (
            f"Comes with {registry.distribution(benchmark.name) or 'another package'}"
        )
    entries = [catalog.entries().get(item.task.task) for item in items]
    if all(entry is not None and entry.path is None for entry in entries):
        return "Downloaded by the harness; not pinned here"
    pinned = _data_of({item.task.task for item in items})
    lines = (
        "; ".join(pinned) or "The paper’s tables, in the package; nothing is downloaded"
    )
    return f"{lines} (as lm-eval-bias {__version__} pins it)"
