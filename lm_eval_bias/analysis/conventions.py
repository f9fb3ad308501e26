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


def _default_metadata(task: str) -> Mapping[str, Any]:
    entry = catalog.entries().get(task)
    return entry.metadata if entry else {}


def _classifier(task: TaskRun) -> Mapping[str, Any]:
    classifier = task.metadata.get("classifier_used")
    return classifier if isinstance(classifier, Mapping) else {}


def choices(run: Run, task: TaskRun) -> dict[str, str]:
    """Everything chosen that makes other numbers of the same answers, or asks something else: by option name."""
    defaults, entry = _default_metadata(task.base), catalog.entries().get(task.base)
    benchmark = registry.get(task.benchmark)
    options = {
        option: json.dumps(task.metadata[option], ensure_ascii=False, sort_keys=True, default=str).strip('"')
        for option in benchmark.options
        if option not in (benchmark.detail, "classifier", "dataset")
        and task.metadata.get(option) is not None
        and task.metadata[option] != defaults.get(option)
    }
    if _classifier(task):
        options["classifier"] = str(_classifier(task).get("name"))
    dataset = task.metadata.get("dataset_used")
    if isinstance(dataset, Mapping):
        options["dataset"] = f"{PurePath(str(dataset.get('file'))).name} ({str(dataset.get('sha256'))[:12]})"
    sampled = entry is not None and "generate_until" in entry.asks
    if sampled and run.provenance.get("gen_kwargs"):
        options["gen_kwargs"] = str(run.provenance["gen_kwargs"])
    return options


def key(run: Run, task: TaskRun) -> tuple[str, ...]:
    """Runs with the same key measured the same thing and can be ranked among each other."""
    options = choices(run, task)
    return (task.benchmark, task.version, *(f"{name}={options[name]}" for name in sorted(options)))


def describe(run: Run, task: TaskRun) -> str:
    """The conventions in words."""
    options = choices(run, task)
    parts = [f"{name}={value}" for name, value in options.items()] or ["the task's defaults"]
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
    current = _default_metadata(task.base).get("version")
    if current is not None and not _same_version(task.version, current):
        departures.append(f"task version {task.version}, now {current}")
    if warning := str(_classifier(task).get("warning") or ""):
        departures.append(warning)
    return tuple(departures)


def _same_version(version: str, current: Any) -> bool:
    try:
        return math.isclose(float(version), float(current))
    except (TypeError, ValueError):
        return version == str(current)
