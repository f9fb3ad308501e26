"""The settings of a run: those that make its scores another measurement, and changes of its tasks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath

from lm_eval_bias.core import catalog, content_hashes, registry
from lm_eval_bias.core.benchmark import Benchmark, folder_of, samples_texts
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.harness import servers

UNRECORDED = "not recorded"
UNPROVEN = "unproven"  # in a run's provenance: the files that it was joined from
_WITHOUT_WEIGHTS = ("bias-chance", "bias-dial", servers.DUMMY)
_COMMIT = re.compile("[0-9a-f]{40}")
# arguments of models
_OF_TEMPLATES = ("chat_template_args", "enable_thinking", "think_end_token")
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
    """One thing in which a run departs from its task as the benchmark defines it.

    Attributes:
        name: One of :func:`option_names`.
        value: The run's value; empty where the name says it all.
        problem: The change in words; empty where name and value say it.
    """

    name: str
    value: str
    problem: str = ""

    @property
    def exact(self) -> str:
        """The ``allow:`` entry of a policy that permits exactly this change."""
        return f"{self.name}={self.value}" if self.value else self.name


def are_proven(run: Run) -> bool:
    """Tell whether a run's file says which weights answered: by hashes of files or by a commit."""
    facts = run.provenance
    if facts.get("weights") or facts.get("model") in _WITHOUT_WEIGHTS:
        return True
    return bool(_COMMIT.fullmatch(str(facts.get("model_revision"))))


def option_names() -> list[str]:
    """List all names that a changed option can have."""
    roles = [benchmark.options.roles for benchmark in registry.by_name().values()]
    return list(dict.fromkeys(chain(NAMES, *roles)))


def choices(run: Run, task: TaskRun) -> dict[str, str]:
    """Return the options of this run that differ from the default and change the numbers."""
    entry = catalog.entries().get(task.task)
    defaults = {"repeats": entry.repeats, **entry.metadata} if entry else {}
    suite = task.metadata.get("suite") or {}
    if "repeats" in suite:  # a suite's own number departs from nothing
        defaults["repeats"] = suite["repeats"]
    options = {}
    for option in task.definition.options.roles:
        value = task.metadata.get(option)
        is_shown = option not in ("classifier", "dataset")
        if is_shown and value is not None and value != defaults.get(option):
            options[option] = task.option_text(option)
    classifier = task.metadata.get("classifier_used")
    if classifier:
        options["classifier"] = classifier["name"]
    dataset = task.metadata.get("dataset_used")
    if dataset:
        name = PurePath(dataset["file"]).name
        options["dataset"] = f"{name} ({dataset['sha256'][:12]})"
    sampled = entry is None or "generate_until" in entry.asks
    if sampled and run.provenance.get("gen_kwargs"):
        options["gen_kwargs"] = str(run.provenance["gen_kwargs"])
    if task.inputs.get("num_fewshot"):
        options["num_fewshot"] = str(task.inputs["num_fewshot"])
    instruction = _used(run, task, "system_instruction")
    if instruction:
        content = instruction.encode("utf-8", "replace")
        options["system_instruction"] = hashlib.sha256(content).hexdigest()[:12]
    return options


def _used(run: Run, task: TaskRun, fact: str) -> str | None:
    """Return a run's chat template or system instruction; ``None`` where the task passed it over."""
    flags = task.inputs.get("passed_over", ())
    is_passed_over = fact in [flag.removeprefix("apply_") for flag in flags]
    return None if is_passed_over else run.provenance.get(fact)


def key(run: Run, task: TaskRun) -> tuple[str, ...]:
    """Return a key that runs share which measured the same thing, and so can be ranked among each other."""
    options = [f"{name}={value}" for name, value in sorted(choices(run, task).items())]
    documents = f"documents {asked(task)}, {part(task) or 'all items'}"
    return (task.benchmark, task.version, *options, documents)


def asked(task: TaskRun) -> str:
    """Return the hash of what was run: documents and what was asked of them."""
    return task.inputs.get("scored") or task.inputs.get("documents") or UNRECORDED


def unknown_part(task: TaskRun) -> str:
    """Say why it isn't known which items were run; empty where it is."""
    items = part(task)
    if not items or "scored" in task.inputs:
        return ""
    return f"{items}, and its file doesn't say which"


def part(task: TaskRun) -> str:
    """Say in words which part of the items was run; empty for all."""
    if "scored" not in task.inputs:
        # all documents, of whatever number: a data set of the user's has its own
        is_whole = "documents" in task.inputs
        if is_whole or task.documents == (task.items or task.documents):
            return ""
    if not task.items:
        return f"{task.documents:,} items, not all"
    return f"{task.documents:,} of {task.items:,} items"


def describe(run: Run, task: TaskRun) -> str:
    """Describe the settings in words."""
    options = choices(run, task)
    parts = [f"{name}={value}" for name, value in options.items()] or [
        "the task's defaults"
    ]
    if run.provenance.get("model"):
        parts.append(f"--model {run.provenance['model']}")
    if _used(run, task, "chat_template") or task.inputs.get("chat_template"):
        parts.append("chat template")
    if run.provenance.get("dtype"):
        parts.append(run.provenance["dtype"])
    return "; ".join(parts)


def old_version(task: TaskRun) -> str:
    """Say in which version a task was run if that isn't the current one; empty where it is, or isn't known."""
    entry = catalog.entries().get(task.task)
    current = str(entry.metadata.get("version", task.version)) if entry else ""
    if current in ("", task.version):
        return ""
    return f"task version {task.version}, now {current}"


def changed_options(run: Run, task: TaskRun) -> Iterator[ChangedOption]:
    """Yield everything in which a task of a run departs from the task as its benchmark defines it."""
    benchmark: Benchmark = task.definition
    for name, value in choices(run, task).items():
        used = task.metadata.get("classifier_used") if name == "classifier" else None
        has_default = task.metadata.get("classifier") is None
        # the task's own classifier changes nothing
        if not used or not used.get("is_default", has_default):
            yield ChangedOption(name, value, _PROBLEMS.get(name, "").format(value))
    if task.task not in catalog.entries() and "dataset_used" not in task.metadata:
        yield ChangedOption(
            "task",
            "",
            "not a task of this version: the run used another version, or its own tasks",
        )
    elif task.inputs.get("changed"):
        changed = ", ".join(task.inputs["changed"])
        yield ChangedOption(
            "task", "", f"not the packaged task of this name: {changed}"
        )
    old = old_version(task)
    if old:
        yield ChangedOption("version", task.version, old)
    template = _used(run, task, "chat_template")
    if template or task.inputs.get("chat_template"):
        yield ChangedOption(
            "chat_template",
            (template or "")[:12],
            "the prompts use a chat template, which the papers' prompts don't have",
        )
        arguments = run.provenance.get("model_args") or ""
        for name in _OF_TEMPLATES:
            match = re.search(rf"(?:^|,){name}=([^,]*)", arguments)
            if match:
                yield ChangedOption(name, match[1])
    seeds = run.provenance.get("seeds")
    if samples_texts(benchmark) and seeds != _SEEDS:
        text = ",".join(map(str, seeds)) if isinstance(seeds, list) else str(seeds)
        yield ChangedOption("seeds", text)
    if "documents" not in task.inputs and "scored" not in task.inputs:
        yield ChangedOption(
            "inputs",
            "",
            "its file doesn't say which inputs were read and scored: run the task again",
        )
    here = content_hashes.of_data_files(folder_of(benchmark))
    there = task.inputs.get("package_content", here)
    distribution = registry.distribution(benchmark)
    if there != here and task.metadata.get("distribution") == distribution:
        yield ChangedOption(
            "package_data",
            there[:12],
            "the benchmark's own files differ from those here",
        )
    items = part(task)
    if items:
        limit = run.provenance.get("limit")
        suite = task.metadata.get("suite") or {}
        if limit:
            number = int(limit) if limit == int(limit) else limit
            yield ChangedOption("limit", str(number), items)
        elif "documents" in suite:
            yield ChangedOption("suite", suite["name"], items)
        else:
            digest = task.inputs.get("scored", "")[:12]
            yield ChangedOption("samples", digest, items)
