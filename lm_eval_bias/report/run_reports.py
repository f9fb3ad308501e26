"""Reports on runs, in each format of ``lm-eval-bias report``, and as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lm_eval_bias.core.run_data import Problem, Run, Value
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.report import content, listings, overview, parts, tables, templates
from lm_eval_bias.runs.harness_results import presentable

COLUMNS = (
    "run", "task", "benchmark", "language", "documents", "items", "score", "value", "stderr", "interval_low",
    "interval_high", "range_low", "range_high", "neutral", "chance", "unit", "direction", "note",
    "fixed_interval_low", "fixed_interval_high",
)  # fmt: skip


def records(runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    """A row per run, task and score: :data:`COLUMNS`, ``dof`` and ``main``; no withheld scores."""
    for run in presentable(runs):
        for task in run.tasks.values():
            main = parts.main_names(task)
            for value in task.scores.values():
                cells = [
                    run.name, task.task, task.benchmark, task.language, task.documents, task.items or None, value.name,
                    value.value, value.stderr, *(value.interval or (None, None)), value.low, value.high, value.neutral,
                    value.chance, value.unit, value.direction, value.note, *(value.fixed_interval or (None, None)),
                ]  # fmt: skip
                yield {
                    **dict(zip(COLUMNS, cells, strict=True)),
                    "dof": value.dof,
                    "main": value.name in main,
                }


def _score_data(value: Value) -> dict[str, Any]:
    """Turn a score into plain data."""
    return {
        "value": finite(value.value),
        "stderr": finite(value.stderr),
        "interval": None if value.interval is None else list(value.interval),
        **(
            {}
            if value.fixed_interval is None
            else {"fixed_interval": list(value.fixed_interval)}
        ),
        "dof": finite(value.dof),
        "note": value.note,
        **value.describe(),
    }


def as_data(run: Run) -> dict[str, Any]:
    """Turn a run into plain data for JSON: ``nan`` is ``null``, with a ``note`` that says why."""
    return {
        "model": run.name,
        "command": run.command,
        "provenance": dict(run.provenance),
        "tasks": {
            name: {
                "benchmark": task.benchmark,
                "language": task.language,
                "version": task.version,
                "documents": task.documents,
                "items": task.items,
                "metadata": dict(task.metadata),
                "scores": {
                    score: _score_data(value) for score, value in task.scores.items()
                },
            }
            for name, task in run.tasks.items()
        },
    }


def _json(runs: Sequence[Run]) -> str:
    """Write one run as an object, several as a list."""
    data = [as_data(run) for run in runs]
    return tables.json_text(data[0] if len(data) == 1 else data, indent=1)


def render(form: str, runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """The report about some runs; the same runs always give the same text.

    Args:
        form: ``html``; ``md``, sentences, warnings, tables of the main scores, provenance; ``latex``, the tables for a
            paper; ``csv``, a row per run, task and score; or ``json``.
        runs: The runs.
        problems: Files that were passed over.
    """
    if form == "json":
        return _json(runs)
    if form == "csv":
        return tables.csv_text(
            COLUMNS, ([row[column] for column in COLUMNS] for row in records(runs))
        )
    return templates.render(
        f"report.{templates.ENDINGS[form]}.j2",
        report=content.build(runs, problems),
        content=content,
        card_details=listings.card_details,
        overview=overview,
        many=parts.MANY,
    )
