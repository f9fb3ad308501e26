"""What a report says, whatever it is written as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lm_eval_bias.comparing import pairing
from lm_eval_bias.comparing.findings import Choice, Finding, find
from lm_eval_bias.core import catalog, numbers, registry, wording
from lm_eval_bias.core.benchmark import REQUIRED, Card, options_for
from lm_eval_bias.core.errors import BiasError, ask
from lm_eval_bias.core.page_parts import Cell, Column, Part, ReportTask, Table
from lm_eval_bias.core.run_data import Problem, Run, readable
from lm_eval_bias.core.score_cells import score_cell, score_label, value_cell
from lm_eval_bias.core.version import __version__
from lm_eval_bias.data.sources import manifest
from lm_eval_bias.report import comparison_reports, overview, parts, sentences
from lm_eval_bias.report.item_pages import ItemPages
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
        data: Revisions of its data.
        scores: Per main score its range and neutral value.
        tasks: What of it was run.
        is_own_data: Whether its data are a file of the user's.
        is_harness_data: Whether the harness downloads its data.
        source: The distribution that it comes from, where that isn't this package.
    """

    ident: str
    title: str
    card: Card | None
    data: Sequence[str]
    scores: Sequence[str]
    tasks: Sequence[ReportTask]
    is_own_data: bool = False
    is_harness_data: bool = False
    source: str = ""


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
    summary: Sequence[Part]
    cautions: Sequence[PlacedRemark]
    problems: Sequence[str]
    sections: Sequence[Section]
    origins: Sequence[Origin]
    version: str = __version__

    @cached_property
    def languages(self) -> Part | None:
        """Scores by language, over all sections; ``None`` where nothing was asked in two."""
        return _languages([task for section in self.sections for task in section.tasks])

    @property
    def warnings(self) -> list[tuple[str, bool, list[PlacedRemark]]]:
        """What to beware of by weight, with whether it is folded away."""
        by_kind = {kind: [one for one in self.cautions if one.heading == kind] for kind in remarks.HEADINGS}
        return [(kind, kind != remarks.SERIOUS, group) for kind, group in by_kind.items() if group]


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


def _scores(tasks: Sequence[ReportTask]) -> list[str]:
    """Range and neutral value of the main scores that are there."""
    lines = {}
    for item in tasks:
        for name in parts.main_names(item.task):
            value = item.task.scores[name]
            neutral = "no neutral value" if value.neutral is None else f"neutral {numbers.bound(value.neutral)}"
            label = score_label(item.task.benchmark, name)
            lines[name] = f"{label} ({name}): {numbers.score_range(value)}, {neutral}"
    return list(lines.values())


def _sections(tasks: Sequence[ReportTask]) -> list[Section]:
    sections = []
    for benchmark in registry.benchmarks():
        members = [item for item in tasks if registry.family(item.task.benchmark) is benchmark]
        if members:
            names = [item.task.task for item in members]
            entries = [catalog.entries().get(item.task.base) for item in members]
            from_harness = all(entry is not None and entry.path is None for entry in entries)
            title = benchmark.title or benchmark.name
            is_own, about = bool(options_for(benchmark, REQUIRED)), (benchmark.card, _data_of(names), _scores(members))
            foreign = "" if registry.is_own(benchmark) else registry.distribution(benchmark.name) or "another package"
            sections.append(Section(benchmark.name, title, *about, members, is_own, from_harness, foreign))
    unknown = [item for item in tasks if item.task.benchmark not in registry.by_name()]
    if unknown:
        sections.append(Section("other", "Benchmarks that this version doesn't know", None, [], [], unknown))
    return sections


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
    origins = []
    for run in runs:
        values = {**dict.fromkeys(LABELS), **run.provenance}
        facts = [(LABELS.get(key, key), readable(value)) for key, value in values.items()]
        versions = "; ".join(f"{task.task} {task.version}" for task in run.tasks.values())
        origins.append(Origin(run.name, [*facts, ("Task versions", versions), ("File", run.path.name)], run.command))
    return Report(
        f"Bias report: {runs[0].name}" if len(runs) == 1 else f"Bias report on {len(runs)} runs",
        [run.name for run in runs],
        overview.build(runs, tasks, [(one.title, one.ident, one.tasks) for one in sections]),
        [
            Part(item.label, [*map(wording.sentence, filter(None, [caveat])), *sentences.of_task(item.task)])
            for item in tasks
            for caveat in [remarks.before_scores(item.run, item.task)]
        ],
        remarks.of_runs(runs),
        list(map(str, problems)),
        sections,
        origins,
    )


def _names(section: Section) -> list[str]:
    """The section's benchmark and variants, as far as something of them was run."""
    return [name for name in registry.by_name() if any(item.task.benchmark == name for item in section.tasks)]


def breakdowns(section: Section) -> list[Part]:
    """A section's figures and tables for a page."""
    names = _names(section)
    contents = []
    for name in names:
        members = [item for item in section.tasks if item.task.benchmark == name and item.task.scores]
        contents.append(parts.main_scores(name, members, f"Scores of {name}" if len(names) > 1 else "Scores"))
    if names:
        own = registry.get(names[0])
        contents += ask([], own, own.figures, section.tasks[:BREAKDOWNS])
    if len(section.tasks) > BREAKDOWNS:
        text = f"They show the first {BREAKDOWNS} of {len(section.tasks):,}; a report on fewer runs shows the others."
        contents.append(Part("Tasks in the breakdowns above", [text]))
    return [*contents, parts.every_score(section.tasks)]


def main_tables(section: Section) -> list[Table]:
    """A section's main scores, one table a benchmark or variant, for formats without figures."""
    tables = []
    for name in _names(section):
        members = [item for item in section.tasks if item.task.benchmark == name and item.task.scores]
        scores = list(dict.fromkeys(score for item in members for score in parts.main_names(item.task)))
        if scores:
            caveat = [remarks.before_scores(item.run, item.task) for item in members]
            labels = [f"{item.label} ({own})" if own else item.label for item, own in zip(members, caveat, strict=True)]
            rows = [
                [Cell(label), *(value_cell(item.task.scores.get(score)) for score in scores)]
                for label, item in zip(labels, members, strict=True)
            ]
            tables.append(
                Table(
                    f"{section.title} ({name}): main scores with 95% intervals in brackets",
                    [Column("Task"), *(Column(score, True) for score in scores)],
                    rows,
                )
            )
    return tables


def _data_of(tasks: Sequence[str]) -> list[str]:
    """The pinned data of some tasks, one line per upstream revision.

    Args:
        tasks: Names, perhaps with a remark in brackets; unknown ones are passed over.
    """
    entries = catalog.entries()
    names = {entries[base].data for base in (task.partition(" ")[0] for task in tasks) if base in entries}
    files_by_source: dict[tuple[str, str, str], int] = {}
    for name in sorted(name for name in names if name):
        for source in manifest().resolve([name]):
            key = (source.repository, source.commit, source.licence)
            files_by_source[key] = files_by_source.get(key, 0) + 1
    return [
        f"{repository}, commit {commit[:12]}, {files} {'file' if files == 1 else 'files'}; licence: {licence}"
        for (repository, commit, licence), files in files_by_source.items()
    ]


_BY_LANGUAGE = "Scores by language"


def _languages(tasks: Sequence[ReportTask]) -> Part | None:
    """Compare a model's answers in several languages.

    Args:
        tasks: Of all benchmarks.

    Returns:
        Pairs that have sample logs as a table, those that have none in words; ``None`` where nothing was asked in two.
    """
    runs = {item.run.name: replace(item.run, tasks={}) for item in tasks}
    for item in tasks:
        runs[item.run.name] = replace(item.run, tasks={**runs[item.run.name].tasks, item.task.task: item.task})
    try:
        pairs = pairing.pairs(list(runs.values()), pairing.LANGUAGE)
    except BiasError:  # there are none
        return None
    with_logs = [pair for pair in pairs if pair.base.task.samples and pair.other.task.samples]
    text = [
        f"{pair.subject}: {pair.other.label} and {pair.base.label} can't be compared without the sample logs of both "
        "(--log_samples)."
        for pair in pairs
        if pair not in with_logs
    ]
    if not with_logs:
        return Part(_BY_LANGUAGE, text)
    try:
        findings = find(with_logs, Choice(by=pairing.LANGUAGE))
    except BiasError as error:
        return Part(_BY_LANGUAGE, [*text, f"Not compared: {error}."])
    notes = dict.fromkeys(f"{f.subject}, {f.other} and {f.base}: {f.note}." for f in findings if f.note)
    text += [*notes, comparison_reports.legend(findings, "holm")]
    return Part(_BY_LANGUAGE, text, [], [_language_table(findings, with_logs)])


def _language_table(findings: Sequence[Finding], pairs: Sequence[pairing.Pair]) -> Table:
    benchmarks = {(pair.subject, pair.other.label): pair.base.task.benchmark for pair in pairs}
    columns = [
        Column("Task"), Column("Score"), Column("First language", True), Column("Second language", True),
        Column("Difference", True), Column("p (Holm)", True), Column("Finding"),
    ]  # fmt: skip
    rows = []
    for finding in findings:
        base, other, difference, ends = comparison_reports.values(finding)
        rows.append(
            [
                Cell(finding.subject, note=f"{finding.base}, then {finding.other}"),
                score_cell(benchmarks[finding.subject, finding.other], finding.score.name),
                Cell(base, finding.base_value),
                Cell(other, finding.other_value),
                Cell(difference, finding.difference.value, ends),
                Cell(numbers.p_value(finding.adjusted), finding.adjusted),
                Cell(finding.verdict),
            ]
        )
    return Table(f"{_BY_LANGUAGE}, differences with 95% intervals in brackets", columns, rows)
