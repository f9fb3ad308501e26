"""Rescored answers, in words and tables or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lm_eval_bias.core import catalog
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.report import run_output, run_reports, sentences, templates
from lm_eval_bias.report.tables import json_text
from lm_eval_bias.runs import diagnostics, run_discovery
from lm_eval_bias.runs.rescoring import Rescored, said_otherwise


def as_json(results: Sequence[Rescored]) -> str:
    """Write a list with an entry per saved task; a ``reason`` says why a number is ``null``."""
    entries = []
    for result, run in zip(results, runs(results), strict=True):
        (task,) = run.tasks.values()
        scores = {}
        for value in task.scores.values():
            entry = run_reports.score_data(task, value)
            entry["reason"] = entry.pop("note")
            scores[entry.pop("name")] = entry
        part = result.saved_task
        entries.append(
            {
                "path": str(part.path),
                "task": part.task,
                "benchmark": part.benchmark,
                "filter": part.filter,
                "documents": result.documents,
                "read_otherwise": result.read_otherwise,
                **result.provenance,
                "scores": scores,
            }
        )
    return json_text(entries, indent=2)


def runs(results: Sequence[Rescored]) -> list[Run]:
    """Make each result a run of one task, called by its file; tasks of the same name are numbered.

    What the results file beside the samples says of the run is kept, so that notes are those of the run; its scores
    aren't, of which it may lack some or have none (``--predict_only``).
    """
    names = [result.saved_task.task for result in results]
    made = []
    beside = run_discovery.beside(result.saved_task.path for result in results)
    for place, (name, result) in enumerate(zip(names, results, strict=True)):
        saved = result.saved_task
        label = f"{name} [{place + 1}]" if names.count(name) > 1 else name
        nothing = TaskRun(name, saved.definition, "", "", 0, 0, {}, {})
        run = beside.get(saved.path, Run("", saved.path, {}))
        task = run.tasks.get(
            name, replace(nothing, usual_repeats=catalog.usual_repeats(name))
        )
        task = replace(
            task,
            task=label,
            documents=result.documents,
            metadata={**task.metadata, **result.provenance},
            scores=result.scores,
        )
        name = str(saved.path)
        alone = replace(run, name=name, path=saved.path, tasks={label: task})
        made.append(diagnostics.applied(alone))
    return made


def as_text(results: Sequence[Rescored], table: str) -> str:
    """Write the files read, the scores in words and tables, and reasons for missing scores, as after a run.

    Args:
        results: Of one command.
        table: One of :data:`lm_eval_bias.report.run_output.TABLES`.
    """
    tasks = [task for run in runs(results) for task in run.tasks.values()]
    return templates.render(
        "rescored.txt.j2",
        results=list(zip(results, tasks, strict=True)),
        words=sentences.describe(tasks),
        legend=sentences.LEGEND,
        scores=run_output.scores(tasks, table),
        said_otherwise=said_otherwise,
    )
