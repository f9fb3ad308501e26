"""Reports on runs, in each format of ``lm-eval-bias report``, and as files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lm_eval_bias.core import Data, numbers
from lm_eval_bias.core.csv_text import flat
from lm_eval_bias.core.errors import check_scores
from lm_eval_bias.core.files import FORMATS, expanded, write_together, writing
from lm_eval_bias.core.page_parts import Footnotes
from lm_eval_bias.core.run_data import Problem, Run, TaskRun, Value
from lm_eval_bias.report import (
    citing,
    content,
    listings,
    parts,
    pictures,
    provenance_facts,
    tables,
    templates,
)
from lm_eval_bias.report.outputs import Output
from lm_eval_bias.runs import diagnostics
from lm_eval_bias.runs.harness_results import presentable

# of CSV and data frames
COLUMNS = (
    "run", "task", "benchmark", "language", "documents", "items", "score", "value", "stderr", "interval_low",
    "interval_high", "range_low", "range_high", "neutral", "chance", "unit", "direction", "note",
    "fixed_interval_low", "fixed_interval_high", "n", "warning", "claim", "no_claim_reason", "dof", "main",
)  # fmt: skip
_OF_TASK = ("benchmark", "language", "version", "documents", "items", "metadata")


def records(runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    """Yield :data:`COLUMNS` by name, a row per run, task and score; no withheld scores."""
    for run in presentable(runs):
        for task in run.tasks.values():
            about = {name: getattr(task, name) for name in _OF_TASK}
            about |= {"run": run.name, "task": task.task, "items": task.items or None}
            main = task.main()
            for value in task.shown() if task.chosen else task.scores.values():
                of_score = {"score": value.name, "main": value in main}
                row = flat({**about, **of_score, **score_data(task, value)})
                yield {name: row[name] for name in COLUMNS}


def choose(runs: Sequence[Run], scores: Sequence[str]) -> list[Run]:
    """Return the same runs with some scores in place of the main ones, and without the tasks that have none of them.

    Raises:
        BadOption: No task has one of the scores.
    """
    tasks = [task for run in runs for task in run.tasks.values()]
    check_scores(scores, {name for task in tasks for name in task.scores})
    chosen = []
    for run in runs:
        kept = {
            name: replace(task, chosen=scores)
            for name, task in run.tasks.items()
            if not task.scores.keys().isdisjoint(scores)
        }
        if kept:
            chosen.append(replace(run, tasks=kept))
    return chosen


_OF_VALUE = ("value", "stderr", "interval", "fixed_interval", "dof", "n", "clusters", "note")  # fmt: skip


def score_data(task: TaskRun, value: Value) -> Data:
    """Collect a score's estimate, meaning and warnings for JSON."""
    return {
        **{name: getattr(value, name) for name in _OF_VALUE},
        "warning": task.warning(value.name),
        "claim": value.verdict.claim,
        "no_claim_reason": value.verdict.reason,
        **value.describe(),
    }


def as_data(run: Run) -> Data:
    """Turn a run into plain data for JSON: ``nan`` is ``None``, with a ``note`` that says why."""
    tasks = {}
    for name, task in run.tasks.items():
        about = {field: getattr(task, field) for field in _OF_TASK}
        scores = {
            score: score_data(task, value) for score, value in task.scores.items()
        }
        warnings = [{"code": r.code, "message": r.message} for r in task.diagnostics]
        tasks[name] = {**about, "diagnostics": warnings, "scores": scores}
    data = {
        "model": run.name,
        "command": run.command,
        "provenance": provenance_facts.facts(run),
        "tasks": tasks,
    }
    return tables.plain(data)


@dataclass(frozen=True)
class RunReport(Output):
    """A report on runs; the same runs always give the same text.

    As ``md``, sentences, warnings, tables of the main scores, provenance; as ``csv``, a row per run, task and score.

    Attributes:
        runs: The runs.
        problems: Files that were passed over.
        inputs: Files that it was made from.
    """

    runs: Sequence[Run]
    problems: Sequence[Problem] = ()
    inputs: Sequence[str | Path] = ()
    formats = tuple(name for name in FORMATS if name != "text")
    template = "report"

    def context(self) -> Mapping[str, object]:
        """Override."""
        runs = presentable(self.runs)
        tasks = parts.report_tasks(runs)
        footnotes = Footnotes()
        sections = list(content.sections(tasks, footnotes))
        return {
            "origins": list(map(content.origin, runs)),
            "trial": diagnostics.trials(item.task for item in tasks),
            "diagnostics": diagnostics.of_runs(runs),
            "problems": self.problems,
            "sections": sections,
            "notes": footnotes.lines,
            "scores": parts.main_table(tasks),
            "bibtex": lambda: citing.bibtex(citing.of_runs(self.runs)),
            "content": content,
            "card_details": listings.card_details,
            "many": parts.MANY,
        }

    def records(self) -> Iterable[Mapping[str, object]]:
        """Override."""
        return records(self.runs)

    def data(self) -> object:
        """Return one run as an object, several as a list."""
        data = list(map(as_data, self.runs))
        return data[0] if len(data) == 1 else data


_READS = "primary scores with 95% intervals; dashed: the neutral value"


def write_figures(runs: Sequence[Run], folder: str) -> list[str]:
    """Write a report's figures as SVG and PDF into a folder; return the names of the files.

    They are as wide as a paper's text; ``figures.tex`` has them with their captions.

    Raises:
        BiasError: The folder can't be written.
    """
    tasks = parts.report_tasks(presentable(runs))
    families = numbers.grouped((item.task.definition.family, item) for item in tasks)
    captions = {}
    contents = {}

    def add(name: str, caption: str, drawn: pictures.Panels, *notes: str) -> None:
        captions[name] = caption
        for ending, data in pictures.files(drawn, notes).items():
            contents[f"{name}.{ending}"] = data

    for family, of in families.items():
        footnotes = Footnotes()
        if placed := parts.panels(of, footnotes):
            add(family.name, f"{family.heading}: {_READS}", placed, *footnotes.lines)
        rows = of[0].task.definition.presentation.shares()
        shown = [item for item in of if item.task.scores]
        if rows and shown:
            shares = [pictures.Shares(item, rows) for item in shown]
            add(f"{family.name}-shares", f"{family.heading}: percent of texts", shares)
    told = templates.render("figures.tex.j2", captions=captions)
    contents = {"figures.tex": told.encode(), **contents}
    place = expanded(folder)
    with writing(folder):
        write_together({place / name: data for name, data in contents.items()})
    return list(contents)
