"""What a run's scores were made by, as far as it makes them another measurement, and where it departs from the task."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from lm_eval_bias import catalog, registry
from lm_eval_bias.runs.run_data import Run, TaskRun

_MODEL = {"chat_template": "chat template", "system_instruction": "system instruction"}


def _own_metadata(task: str) -> Mapping[str, Any]:
    entry = catalog.entries().get(task)
    return entry.metadata if entry else {}


def _classifier(task: TaskRun) -> Mapping[str, Any]:
    used = task.metadata.get("classifier_used")
    return used if isinstance(used, Mapping) else {}


def choices(run: Run, task: TaskRun) -> dict[str, str]:
    """Everything chosen that makes other numbers of the same answers, or asks something else: by option name."""
    own, entry = _own_metadata(task.base), catalog.entries().get(task.base)
    benchmark = registry.get(task.benchmark)
    chosen = {
        option: json.dumps(task.metadata[option], ensure_ascii=False, sort_keys=True, default=str).strip('"')
        for option in benchmark.options
        if option not in (benchmark.detail, "classifier", "dataset")
        and task.metadata.get(option) is not None
        and task.metadata[option] != own.get(option)
    }
    if _classifier(task):
        chosen["classifier"] = str(_classifier(task).get("name"))
    dataset = task.metadata.get("dataset_used")
    if isinstance(dataset, Mapping):
        chosen["dataset"] = f"{PurePath(str(dataset.get('file'))).name} ({str(dataset.get('sha256'))[:12]})"
    sampled = entry is not None and "generate_until" in entry.asks
    if sampled and run.provenance.get("gen_kwargs"):
        chosen["gen_kwargs"] = str(run.provenance["gen_kwargs"])
    return chosen


def key(run: Run, task: TaskRun) -> tuple[str, ...]:
    """Runs with the same key measured the same thing and can be ranked among each other."""
    chosen = choices(run, task)
    return (task.benchmark, task.version, *(f"{name}={chosen[name]}" for name in sorted(chosen)))


def describe(run: Run, task: TaskRun) -> str:
    """The conventions in words."""
    chosen = choices(run, task)
    parts = [f"{name}={value}" for name, value in chosen.items()] or ["the task's defaults"]
    if run.provenance.get("model"):
        parts.append(f"--model {run.provenance['model']}")
    parts += [label for field, label in _MODEL.items() if run.provenance.get(field)]
    if run.provenance.get("dtype"):
        parts.append(str(run.provenance["dtype"]))
    return "; ".join(parts)


def deviations(task: TaskRun) -> tuple[str, ...]:
    """Where a run departs from the whole task as it is now, and what its classifier's labels are worth."""
    departures = []
    if task.items and task.documents != task.items:
        departures.append(f"{task.documents:,} of {task.items:,} items")
    now = _own_metadata(task.base).get("version")
    if now is not None and not _same_version(task.version, now):
        departures.append(f"task version {task.version}, now {now}")
    if warning := str(_classifier(task).get("warning") or ""):
        departures.append(warning)
    return tuple(departures)


def _same_version(given: str, now: Any) -> bool:
    try:
        return math.isclose(float(given), float(now))
    except (TypeError, ValueError):
        return given == str(now)
