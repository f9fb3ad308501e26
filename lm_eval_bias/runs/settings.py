"""What a run's scores were made by, as far as it makes them another measurement, and where it departs from the task."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import DETAIL
from lm_eval_bias.core.run_data import Run, TaskRun

UNRECORDED = "not recorded"


def _default_metadata(task: str) -> Mapping[str, Any]:
    entry = catalog.entries().get(task)
    return entry.metadata if entry else {}


def _classifier(task: TaskRun) -> Mapping[str, Any]:
    classifier = task.metadata.get("classifier_used")
    return classifier if isinstance(classifier, Mapping) else {}


def file_hash(task: TaskRun, option: str) -> str:
    """SHA-256 of the file that an option names; empty where it names none, or none that is known to have been read."""
    value = task.metadata.get(option)
    return str(task.inputs.get("files", {}).get(value) or "") if isinstance(value, str) else ""


def option_text(task: TaskRun, option: str) -> str:
    """An option's value; of a file that was read its name and content, since what lies at a path can change."""
    value = task.metadata.get(option)
    if digest := file_hash(task, option):
        return f"{PurePath(str(value)).name} ({digest[:12]})"
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str).strip('"')


def choices(run: Run, task: TaskRun) -> dict[str, str]:
    """Everything chosen that makes other numbers of the same answers, or asks something else: by option name."""
    defaults, entry = _default_metadata(task.base), catalog.entries().get(task.base)
    benchmark = registry.get(task.benchmark)
    if entry is not None:
        defaults = {"repeats": entry.repeats, **defaults}
    options = {
        option: option_text(task, option)
        for option, role in benchmark.options.items()
        if role != DETAIL
        and option not in ("classifier", "dataset")
        and task.metadata.get(option) is not None
        and task.metadata[option] != defaults.get(option)
    }
    if _classifier(task):
        options["classifier"] = str(_classifier(task).get("name"))
    dataset = task.metadata.get("dataset_used")
    if isinstance(dataset, Mapping):
        options["dataset"] = f"{PurePath(str(dataset.get('file'))).name} ({str(dataset.get('sha256'))[:12]})"
    sampled = entry is None or "generate_until" in entry.asks
    if sampled and run.provenance.get("gen_kwargs"):
        options["gen_kwargs"] = str(run.provenance["gen_kwargs"])
    if task.inputs.get("num_fewshot"):
        options["num_fewshot"] = str(task.inputs["num_fewshot"])
    if instruction := run.provenance.get("system_instruction"):
        options["system_instruction"] = hashlib.sha256(str(instruction).encode("utf-8", "replace")).hexdigest()[:12]
    return options


def key(run: Run, task: TaskRun) -> tuple[str, ...]:
    """Runs with the same key measured the same thing and can be ranked among each other."""
    options = choices(run, task)
    documents = f"documents {asked(task)}, {part(task) or 'all items'}"
    return (task.benchmark, task.version, *(f"{name}={options[name]}" for name in sorted(options)), documents)


def asked(task: TaskRun) -> str:
    """The hash of what was run: documents and what was asked of them."""
    return str(task.inputs.get("scored") or task.inputs.get("documents") or UNRECORDED)


def unknown_part(task: TaskRun) -> str:
    """Why it can't be told which items were run; empty where it can."""
    return f"{part(task)}, and its file doesn't say which" if part(task) and "scored" not in task.inputs else ""


def part(task: TaskRun) -> str:
    """The part of the items that was run, in words; empty for all."""
    told = "documents" in task.inputs  # then a part is told as well; a data set of one's own has its own size
    if "scored" not in task.inputs and (told or task.documents == (task.items or task.documents)):
        return ""
    return f"{task.documents:,} of {task.items:,} items" if task.items else f"{task.documents:,} items, not all"


def describe(run: Run, task: TaskRun) -> str:
    """The conventions in words."""
    options = choices(run, task)
    parts = [f"{name}={value}" for name, value in options.items()] or ["the task's defaults"]
    if run.provenance.get("model"):
        parts.append(f"--model {run.provenance['model']}")
    if run.provenance.get("chat_template") or task.inputs.get("chat_template"):
        parts.append("chat template")
    if run.provenance.get("dtype"):
        parts.append(str(run.provenance["dtype"]))
    return "; ".join(parts)


def deviations(task: TaskRun) -> tuple[str, ...]:
    """Where a run departs from the whole task as it is now, and what its classifier's labels are worth."""
    departures = []
    if items := part(task):
        departures.append(items)
    current = _default_metadata(task.base).get("version")
    if current is not None and not same_version(task.version, current):
        departures.append(f"task version {task.version}, now {current}")
    if warning := str(_classifier(task).get("warning") or ""):
        departures.append(warning)
    return tuple(departures)


def same_version(version: str, current: Any) -> bool:
    """Whether two version numbers are the same, however they are written."""
    try:
        return math.isclose(float(version), float(current))
    except (TypeError, ValueError):
        return version == str(current)
