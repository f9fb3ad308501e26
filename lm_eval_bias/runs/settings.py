"""The settings of a run: those that make its scores another measurement, and what was changed of its tasks."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from lm_eval_bias.core import catalog, content_hashes, registry
from lm_eval_bias.core.benchmark import DETAIL, folder_of, samples_texts
from lm_eval_bias.core.run_data import Run, TaskRun

UNRECORDED = "not recorded"
_OF_TEMPLATES = (
    "chat_template_args",
    "enable_thinking",
    "think_end_token",
)  # arguments of models
_SEEDS = [0, 1234, 1234, 1234]  # the harness's own
PART = ("limit", "samples", "suite")
# what can be changed of tasks of every benchmark, beside their benchmarks' options
NAMES = (
    "version", "task", "inputs", "package_data", "dataset", "classifier", "gen_kwargs", "num_fewshot", "seeds",
    "system_instruction", "chat_template", *_OF_TEMPLATES, *PART,
)  # fmt: skip
_PROBLEMS = {
    "dataset": "its own data set, not the published one: {}",
    "system_instruction": "the prompts have a system instruction, which the papers' prompts don't ({})",
}


@dataclass(frozen=True)
class ChangedOption:
    """One thing in which a run isn't its task as the benchmark defines it.

    Attributes:
        name: One of :func:`option_names`.
        value: What the run has; empty where there is nothing more to say.
        problem: What is the matter, in words; empty where name and value say it.
    """

    name: str
    value: str
    problem: str = ""

    @property
    def exact(self) -> str:
        """What a policy allows just this by."""
        return f"{self.name}={self.value}" if self.value else self.name


def option_names() -> list[str]:
    """All names that a changed option can have."""
    benchmarks = registry.by_name().values()
    options = [
        option
        for benchmark in benchmarks
        for option, role in benchmark.options.roles.items()
        if role != DETAIL
    ]
    return list(dict.fromkeys([*NAMES, *options]))


def _default_metadata(task: str) -> Mapping[str, Any]:
    entry = catalog.entries().get(task)
    return entry.metadata if entry else {}


def file_hash(task: TaskRun, option: str) -> str:
    """SHA-256 of the file that an option names; empty where it names none, or none that is known to have been read."""
    value = task.metadata.get(option)
    return (
        str(task.inputs.get("files", {}).get(value) or "")
        if isinstance(value, str)
        else ""
    )


def option_text(task: TaskRun, option: str) -> str:
    """An option's value; of a file that was read its name and content, since what lies at a path can change."""
    value = task.metadata.get(option)
    if digest := file_hash(task, option):
        return f"{PurePath(str(value)).name} ({digest[:12]})"
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str).strip('"')


def choices(run: Run, task: TaskRun) -> dict[str, str]:
    """The settings, by option, that make other numbers of the same answers or ask something else."""
    defaults, entry = _default_metadata(task.task), catalog.entries().get(task.task)
    benchmark = registry.get(task.benchmark)
    if entry is not None:
        defaults = {"repeats": entry.repeats, **defaults}
    options = {
        option: option_text(task, option)
        for option, role in benchmark.options.roles.items()
        if role != DETAIL
        and option not in ("classifier", "dataset")
        and task.metadata.get(option) is not None
        and task.metadata[option] != defaults.get(option)
    }
    if (used := task.metadata.get("classifier_used")) and isinstance(used, Mapping):
        options["classifier"] = str(used.get("name"))
    dataset = task.metadata.get("dataset_used")
    if isinstance(dataset, Mapping):
        options["dataset"] = (
            f"{PurePath(str(dataset.get('file'))).name} ({str(dataset.get('sha256'))[:12]})"
        )
    sampled = entry is None or "generate_until" in entry.asks
    if sampled and run.provenance.get("gen_kwargs"):
        options["gen_kwargs"] = str(run.provenance["gen_kwargs"])
    if task.inputs.get("num_fewshot"):
        options["num_fewshot"] = str(task.inputs["num_fewshot"])
    if instruction := run.provenance.get("system_instruction"):
        options["system_instruction"] = hashlib.sha256(
            str(instruction).encode("utf-8", "replace")
        ).hexdigest()[:12]
    return options


def key(run: Run, task: TaskRun) -> tuple[str, ...]:
    """Runs with the same key measured the same thing and can be ranked among each other."""
    options = choices(run, task)
    documents = f"documents {asked(task)}, {part(task) or 'all items'}"
    return (
        task.benchmark,
        task.version,
        *(f"{name}={options[name]}" for name in sorted(options)),
        documents,
    )


def asked(task: TaskRun) -> str:
    """The hash of what was run: documents and what was asked of them."""
    return str(task.inputs.get("scored") or task.inputs.get("documents") or UNRECORDED)


def unknown_part(task: TaskRun) -> str:
    """Why it can't be told which items were run; empty where it can."""
    return (
        f"{part(task)}, and its file doesn't say which"
        if part(task) and "scored" not in task.inputs
        else ""
    )


def part(task: TaskRun) -> str:
    """The part of the items that was run, in words; empty for all."""
    told = (
        "documents" in task.inputs
    )  # all of them; a data set of one's own has its own size
    if "scored" not in task.inputs and (
        told or task.documents == (task.items or task.documents)
    ):
        return ""
    return (
        f"{task.documents:,} of {task.items:,} items"
        if task.items
        else f"{task.documents:,} items, not all"
    )


def describe(run: Run, task: TaskRun) -> str:
    """Describe the settings in words."""
    options = choices(run, task)
    parts = [f"{name}={value}" for name, value in options.items()] or [
        "the task's defaults"
    ]
    if run.provenance.get("model"):
        parts.append(f"--model {run.provenance['model']}")
    if run.provenance.get("chat_template") or task.inputs.get("chat_template"):
        parts.append("chat template")
    if run.provenance.get("dtype"):
        parts.append(str(run.provenance["dtype"]))
    return "; ".join(parts)


def old_version(task: TaskRun) -> str:
    """In which version a task was run if that isn't the current one, in words; empty where it is or isn't known."""
    current = _default_metadata(task.task).get("version")
    is_current = current is None or same_version(task.version, current)
    return "" if is_current else f"task version {task.version}, now {current}"


def same_version(version: str, current: Any) -> bool:
    """Whether two version numbers are the same, however they are written."""
    try:
        return math.isclose(float(version), float(current))
    except (TypeError, ValueError):
        return version == str(current)


def changed_options(run: Run, task: TaskRun) -> Iterator[ChangedOption]:
    """Everything in which a task of a run isn't the task as its benchmark defines it."""
    entry = catalog.entries().get(task.task)
    for name, value in choices(run, task).items():
        used = task.metadata.get("classifier_used") if name == "classifier" else None
        default = (
            used.get("is_default", task.metadata.get("classifier") is None)
            if used
            else False
        )
        if not default:  # the task's own classifier changes nothing
            yield ChangedOption(name, value, _PROBLEMS.get(name, "").format(value))
    if entry is None and "dataset_used" not in task.metadata:
        yield ChangedOption(
            "task",
            "",
            "not a task of this version: the run used another version, or its own tasks",
        )
    elif changed := task.inputs.get("changed"):
        yield ChangedOption(
            "task",
            "",
            f"not the packaged task of this name: {', '.join(map(str, changed))}",
        )
    if old := old_version(task):
        yield ChangedOption("version", task.version, old)
    template = run.provenance.get("chat_template")
    if template or task.inputs.get("chat_template"):
        problem = (
            "the prompts use a chat template, which the papers' prompts don't have"
        )
        yield ChangedOption("chat_template", str(template or "")[:12], problem)
        for name in _OF_TEMPLATES:
            if match := re.search(
                rf"(?:^|,){name}=([^,]*)", str(run.provenance.get("model_args") or "")
            ):
                yield ChangedOption(name, match[1])
    seeds = run.provenance.get("seeds")
    if samples_texts(registry.get(task.benchmark)) and seeds != _SEEDS:
        yield ChangedOption(
            "seeds",
            ",".join(map(str, seeds)) if isinstance(seeds, list) else str(seeds),
        )
    if "documents" not in task.inputs and "scored" not in task.inputs:
        problem = (
            "its file doesn't say which inputs were read and scored: run the task again"
        )
        yield ChangedOption("inputs", "", problem)
    here = content_hashes.of_data_files(folder_of(registry.get(task.benchmark)))
    there = task.inputs.get("package_content", here)
    if there != here and task.metadata.get("distribution") == registry.distribution(
        task.benchmark
    ):
        yield ChangedOption(
            "package_data",
            there[:12],
            "the benchmark's own files differ from those here",
        )
    if items := part(task):
        limit = run.provenance.get("limit")
        suite = task.metadata.get("suite")
        if limit:
            yield ChangedOption(
                "limit", str(int(limit) if limit == int(limit) else limit), items
            )
        elif isinstance(suite, Mapping) and "documents" in suite:
            yield ChangedOption("suite", str(suite.get("name")), items)
        else:
            yield ChangedOption(
                "samples", str(task.inputs.get("scored") or "")[:12], items
            )
