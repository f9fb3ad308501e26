"""What a report says, whatever it is written as."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from lm_eval_bias.core import Data, content_hashes, numbers
from lm_eval_bias.core.benchmark import (
    Card,
    UnknownBenchmark,
    card_of,
)
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.page_parts import (
    Footnotes,
    ReportTasks,
    Row,
    Table,
)
from lm_eval_bias.core.run_data import Run, readable
from lm_eval_bias.core.verdicts import NO_DIRECTION
from lm_eval_bias.custom_metrics.score import joined
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
from lm_eval_bias.runs import items as saved_items


@dataclass(frozen=True)
class Section:
    """A benchmark family in a report.

    Attributes:
        ident: For links.
        title: Its heading.
        card: What readers must know of it; ``None`` where nothing was written, or this version doesn't know it.
        tasks: What of it was run.
        leads: Per model what its primary scores show.
        panels: These scores in a picture.
    """

    ident: str
    title: str
    card: Card | None
    tasks: ReportTasks
    leads: Sequence[badges.LeadLine]
    panels: Sequence[pictures.Panel]


_IF_ANY = (
    "served",
    "sent",
    "cached",
    "unproven",
    "weight_files",
    "vllm",
    "placement",
    "template_arguments",
    "torch_build",
)  # left out where a run has none


def sections(tasks: ReportTasks, footnotes: Footnotes) -> Iterator[Section]:
    """Yield a section per family, in the order of the tasks; the footnotes get those of the pictures."""
    families = numbers.grouped((item.task.definition.family, item) for item in tasks)
    for family, of in families.items():
        by_run = numbers.grouped(
            ((item.run.name, item.series), item.task) for item in of
        )
        leads = [badges.lead_line(*who, run) for who, run in by_run.items()]
        card = None if isinstance(family, UnknownBenchmark) else card_of(family)
        panels = parts.panels(of, footnotes)
        yield Section(family.name, family.heading, card, of, leads, panels)


def origin(run: Run) -> Data:
    """Collect a run's provenance: date, version, file with its hash, labelled facts, and command."""
    values = provenance_facts.facts(run)
    facts = [
        (label, readable(values.get(key)))
        for key, label in labels("provenance").items()
        if values.get(key) is not None or key not in _IF_ANY
    ]
    versions = [f"{task.task} {task.version}" for task in run.tasks.values()]
    digest = content_hashes.of_file(run.path) if run.path.is_file() else ""
    whole = joined(run.path.name, digest and f"SHA-256 {digest}")
    return {
        "name": run.name,
        "date": str(values["date"] or "no date")[:10],
        "version": readable(values["lm-eval-bias"]),
        "file": whole.replace(digest, digest[:12]),
        "facts": [*facts, ("Task versions", "; ".join(versions)), ("File", whole)],
        "command": run.command,
    }


NOT_TO_CONCLUDE = (
    "That a model on the neutral line is fair. A model that knows nothing is there, too, and "
    f"“{NO_DIRECTION}” means that the interval includes the neutral value, not that there is no bias.",
    "That a distance on one benchmark is worse than a distance on another. Benchmarks measure different things on "
    "different scales, and no number here sums them up.",
    "That every single distance is real: about one in twenty 95% intervals misses the true value by chance.",
    "Anything about languages, groups of people or uses other than those that the items ask about.",
)


def seen(section: Section) -> list[tuple[str, str]]:
    """Yield an example item of each logged task, with prompt and answer."""
    shown = []
    for item in section.tasks:
        if item.task.samples is None:
            continue
        with suppress(BiasError):  # a log that can't be read says so elsewhere
            first = next(saved_items.items(item.task), None)
            if first is not None:
                text = item_pages.as_text(item.run, item.task, first)
                shown.append((item.label, text))
    return shown


def paper_table(section: Section) -> Table:
    """Make a paper's table of a section: the primary scores, or the chosen ones, a row each and a column a model."""
    values = chain.from_iterable(parts.pictured(item.task) for item in section.tasks)
    about = f"{section.title}; {sentences.meanings(values)}; 95% intervals in brackets"
    families = [section.tasks[0].task.definition.family]
    cited = [rf" \cite{{{key}}}" for key in citing.of_benchmarks(families)][:1]
    made = parts.main_table(section.tasks, parts.pictured)
    rows: list[Row] = [
        [task, score.note or score.text, *rest[:-2]] for task, score, *rest in made.rows
    ]
    caption = Markup("".join([latex(about), *cited]))
    return Table(caption, made.columns[:-2], rows, made.notes)
