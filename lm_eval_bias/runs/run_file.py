"""Run files: a run as one small JSON of this package, checked against a JSON Schema when written and when read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import schema_validator
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.runs.harness_results import in_current_names, value_of

TASK_FIELDS = ("documents", "version", "benchmark", "language", "items", "metadata", "scores")


def matches(content: Any) -> bool:
    """Whether this is (meant to be) a run file."""
    return isinstance(content, Mapping) and "tasks" in content and "results" not in content


def _score(value: Value) -> dict[str, Any]:
    return {
        "value": finite(value.value),
        "stderr": finite(value.stderr),
        "interval": None if value.interval is None else list(value.interval),
        **({} if value.fixed_interval is None else {"fixed_interval": list(value.fixed_interval)}),
        "dof": finite(value.dof),
        "note": value.note,
        "range": [finite(value.low), finite(value.high)],
        **{field: getattr(value, field) for field in ("neutral", "direction", "unit", "summary", "source")},
        "higher_is_better": value.higher_is_better,
    }


def as_data(run: Run) -> dict[str, Any]:
    """A run as plain data that the schema allows: ``nan`` is ``null``, always with a ``note`` that says why."""
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
                **task.extra,
                "scores": {score: _score(value) for score, value in task.scores.items()},
            }
            for name, task in run.tasks.items()
        },
    }


def check(content: Any) -> None:
    """Check data against the schema.

    Raises:
        BiasError: The first thing that is wrong, and where.
    """
    import jsonschema

    error = jsonschema.exceptions.best_match(
        schema_validator("lm_eval_bias.results", "schema.json").iter_errors(content)
    )
    if error is not None:
        at = "/".join(map(str, error.absolute_path)) or "the file"
        raise BiasError(f"not a valid run file: {at}: {error.message[:200]}")
    for name, task in content["tasks"].items():
        if task["benchmark"] not in registry.by_name():
            given, names = task["benchmark"][:100], ", ".join(registry.by_name())
            raise BiasError(f"not a valid run file: tasks/{name}/benchmark: {given!r} is not one of {names}")


def read(path: Path, content: Mapping[str, Any]) -> Run:
    """A run file's run.

    Raises:
        BiasError: It doesn't meet the schema.
    """
    check(content)
    tasks = {}
    for name, task in content["tasks"].items():
        entry = catalog.entries().get(name.partition(" ")[0])
        scores = {}
        for score, cell in task["scores"].items():
            value, stderr = (math.nan if cell[key] is None else float(cell[key]) for key in ("value", "stderr"))
            scores[score] = value_of(score, value, stderr, cell)
            if cell["interval"] is None:
                scores[score] = replace(scores[score], interval=None)
        tasks[name] = TaskRun(
            task=name,
            benchmark=task["benchmark"],
            language=task["language"],
            version=str(task["version"]),
            documents=task["documents"],
            items=task.get("items") or (entry.items or 0 if entry else 0),
            metadata=task.get("metadata") or {},
            scores=in_current_names(task["benchmark"], scores),
            extra={key: value for key, value in task.items() if key not in TASK_FIELDS},
            usual_repeats=catalog.usual_repeats(name),
        )
    return Run(content["model"], path, content["provenance"], content["command"], tasks)
