"""What a report says, whatever it is written as."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from lm_eval_bias.core import content_hashes, numbers
from lm_eval_bias.core.benchmark import (
    Benchmark,
    Card,
    UnknownBenchmark,
    card_of,
    without_language,
)
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.page_parts import (
    Footnotes,
    Part,
    ReportTask,
    ReportTasks,
    Row,
    Table,
    language_table,
    numeric,
)
from lm_eval_bias.core.run_data import Problem, Run, readable
from lm_eval_bias.core.verdicts import NO_DIRECTION
from lm_eval_bias.report import (
    badges,
    citing,
    item_pages,
    parts,
    pictures,
    provenance_facts,
    sentences,
)
from lm_eval_bias.report.escaping import Markup, latex
from lm_eval_bias.report.listings import labels
from lm_eval_bias.runs import diagnostics
from lm_eval_bias.runs import items as saved_items
from lm_eval_bias.runs.diagnostics import PlacedDiagnostic
from lm_eval_bias.runs.harness_results import presentable


@dataclass(frozen=True)
class Section:
    """A benchmark family in a report.

    Attributes:
        ident: For links.
        title: Its heading.
        card: What readers must know of it; ``None`` where nothing was written, or this version doesn't know it.
        tasks: What of it was run.
        words: Per task what its scores say.
        said: Per model what its primary scores say.
        panels: These scores in a picture.
    """

    ident: str
    title: str
    card: Card | None
    tasks: ReportTasks
    words: Sequence[Part]
    said: Sequence[badges.LeadLine]
    panels: Sequence[pictures.Panel]


@dataclass(frozen=True)
class Origin:
    """Where a run's numbers come from.

    Attributes:
        name: The run.
        date: When it was run.
        version: Of the package that ran it.
        file: Its results file and the beginning of the file's SHA-256.
        facts: What its file says, label and value.
        command: What repeats it; empty if the file doesn't say.
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
        notes: Footnotes of the pictures.
        diagnostics: What to beware of.
        problems: Files that were passed over.
        sections: Benchmark families in a fixed order.
        origins: Provenance.
    """

    title: str
    notes: Sequence[str]
    diagnostics: Sequence[PlacedDiagnostic]
    problems: Sequence[Problem]
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
        """The tasks of which a part was run, with that part; empty if all were run whole."""
        return diagnostics.trials(item.task for item in self.tasks)

    @property
    def warnings(self) -> list[PlacedDiagnostic]:
        """What to beware of by weight; that a run is a trial stands above."""
        return [one for one in self.diagnostics if one.code != diagnostics.TRIAL]


_IF_ANY = (
    "served",
    "sent",
    "cached",
    "unproven",
    "weight_files",
    "vllm",
)  # left out where a run has none


def _section(
    benchmark: Benchmark | None, tasks: ReportTasks, footnotes: Footnotes
) -> Section:
    """Make a family's section; ``benchmark`` is ``None`` where this version doesn't know it."""
    words = [Part(item.label, sentences.after_diagnostics(item.task)) for item in tasks]
    runs = numbers.grouped(((item.run.name, item.series), item) for item in tasks)
    said = []
    for (model, series), items in runs.items():
        scores = [(item.task, parts.primary(item.task)) for item in items]
        known = [(task, value) for task, value in scores if value is not None]
        said.append(badges.lead_line(model, series, known))
    ident, title = "other", "Benchmarks that this version doesn't know"
    if benchmark is not None:
        ident, title = benchmark.name, benchmark.title or benchmark.name
    card = card_of(benchmark) if benchmark else None
    shown = parts.panels(tasks, footnotes)
    return Section(ident, title, card, tasks, words, said, shown)


def _sections(tasks: ReportTasks, footnotes: Footnotes) -> list[Section]:
    """Make a section per family; tasks come in the registry's order, unknown ones last."""
    families = []
    for item in tasks:
        family: Benchmark = item.task.definition.family
        is_known = not isinstance(family, UnknownBenchmark)
        families.append((family if is_known else None, item))
    groups = numbers.grouped(families).items()
    return [_section(family, members, footnotes) for family, members in groups]


def _origin(run: Run) -> Origin:
    """Gather where a run's numbers come from."""
    known = labels("provenance")
    values = {**dict.fromkeys(known), **provenance_facts.facts(run)}
    facts = [
        (known.get(key, key), readable(value))
        for key, value in values.items()
        if value is not None or key not in _IF_ANY
    ]
    versions = [f"{task.task} {task.version}" for task in run.tasks.values()]
    file = whole = run.path.name
    if run.path.is_file():
        digest = content_hashes.of_file(run.path)
        file, whole = (f"{file}, SHA-256 {text}" for text in (digest[:12], digest))
    facts += [("Task versions", "; ".join(versions)), ("File", whole)]
    date = str(values["date"] or "no date")[:10]
    version = readable(values["lm-eval-bias"])
    return Origin(run.name, date, version, file, facts, run.command)


def build(runs: Sequence[Run], problems: Sequence[Problem]) -> Report:
    """Build the content of a report.

    Args:
        runs: The runs.
        problems: Files that were passed over.
    """
    runs = presentable(runs)
    tasks = parts.report_tasks(runs)
    footnotes = Footnotes()
    sections = _sections(tasks, footnotes)
    title = f"Bias report on {len(runs)} runs"
    if len(runs) == 1:
        title = f"Bias report: {runs[0].name}"
    return Report(
        title,
        footnotes.lines,
        diagnostics.of_runs(runs),
        problems,
        sections,
        list(map(_origin, runs)),
    )


NOT_TO_CONCLUDE = (
    "That a model on the neutral line is fair. A model that knows nothing is there, too, and "
    f"“{NO_DIRECTION}” means that the interval includes the neutral value, not that there is no bias.",
    "That a distance on one benchmark is worse than a distance on another. Benchmarks measure different things on "
    "different scales, and no number here sums them up.",
    "That every single distance is real: about one in twenty 95% intervals misses the true value by chance.",
    "Anything about languages, groups of people or uses other than those that the items ask about.",
)


def seen(section: Section) -> list[tuple[str, str]]:
    """Show one item of each task as it was asked and answered, where its log is there: the task, and a text."""
    shown = []
    for item in section.tasks:
        if item.task.samples is None:
            continue
        with suppress(BiasError):  # a log that can't be read says so elsewhere
            first = next(saved_items.items(item.task), None)
            if first is not None:
                shown.append(
                    (item.label, item_pages.as_text(item.run, item.task, first))
                )
    return shown


def breakdowns(section: Section, facets: bool) -> list[Part]:
    """Make a section's tables for a page, with its scores by facet only where they are asked for."""
    contents = []
    if languages := language_tables(section):
        contents.append(Part("By language", tables=languages))
    if any(item.task.is_saved for item in section.tasks):
        by_facet = parts.by_facet(section.tasks) if facets else []
        where = (
            [] if facets else ["Not computed: lm-eval-bias report --facets has them."]
        )
        title = "Main scores by what the items differ in"
        contents.append(Part(title, where, folded=by_facet))
    every = parts.every_score((item.label, item.task) for item in section.tasks)
    return [*contents, Part("Every score", folded=[every])]


def language_tables(section: Section) -> list[Table]:
    """Make a paper's tables of models by language, from tasks that differ in it alone."""
    pairs = []
    for item in section.tasks:
        stem = without_language(item.task.task, item.task.language)
        pairs.append(((item.task.definition, stem), item))
    made = []
    for (benchmark, stem), items in numbers.grouped(pairs).items():
        languages = {item.task.language for item in items}
        if len(languages) < 2:
            continue
        for names in benchmark.presentation.by_language:
            cells = {}
            footnotes = Footnotes()
            for item in items:
                cells[item.run.name, item.task.language] = {
                    score: parts.scored_cell(item.task, score, footnotes)
                    for score in names
                    if score in item.task.scores
                }
            if any(cells.values()):
                caption = f"{section.title}, {stem} by language"
                made.append(language_table(caption, cells, footnotes.lines))
    return made


_BESIDE = 4  # models that fit beside each other


def paper_tables(section: Section) -> list[tuple[str, Table]]:
    """Make a paper's tables of a section's main scores, by name: a row a score of a task, a column a model."""
    tables = []
    groups = numbers.grouped((item.task.definition, item) for item in section.tasks)
    for benchmark, members in groups.items():
        made = parts.main_table(members)
        caption = f"{section.title}: main scores with 95% intervals"
        if cited := list(citing.of_benchmarks([benchmark.family])):
            caption = Markup(rf"{latex(caption)} \cite{{{cited[0]}}}")
        runs = list(dict.fromkeys(item.run.name for item in members))
        for first in range(0, len(runs), _BESIDE):
            last = first + _BESIDE
            rows: list[Row] = []
            for task, score, *rest in made.rows:
                rows.append([task, score.text, *rest[first : min(last, len(runs))]])
            columns = ["Task", "Score", *numeric(*runs[first:last])]
            name = f"{benchmark.name}-{first}" if first else benchmark.name
            tables.append((name, Table(caption, columns, rows, made.notes)))
    for number, table in enumerate(language_tables(section), start=1):
        tables.append((f"{section.ident}-languages-{number}", table))
    return tables
