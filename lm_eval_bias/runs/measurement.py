"""What makes a run's scores a measurement of their own, and where its tasks depart from the benchmarks'.

In comes a task of a run; ``core/what_counts.yaml`` says which of its facts count for what.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePath

from lm_eval_bias.core import catalog, content_hashes, registry, what_counts
from lm_eval_bias.core.benchmark import folder_of, samples_texts
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.core.run_record import (
    SEEDS,
    UNKNOWN,
    OptionUsed,
    RunRecord,
    TaskUsed,
)
from lm_eval_bias.core.what_counts import Fact, shown
from lm_eval_bias.harness import servers

_WITHOUT_WEIGHTS = ("bias-chance", "bias-dial", servers.DUMMY)
_COMMIT = re.compile("[0-9a-f]{40}")
_AS_USED = ("classifier", "dataset")  # options of which the file says what was used
# facts of which every run has some
_ALWAYS = ("task.version", "task.documents", "task.items")
# facts whose parts have names of their own
_NAMED_INSIDE = ("task.options", "prompt.template_arguments", "task.items")
PART = ("limit", "samples", "suite")  # names by which a policy allows a part of items
_PROBLEMS = {
    "dataset": "its own data set, not the published one: {}",
    "system_instruction": "the prompts have a system instruction, which the papers' prompts don't ({})",
    "chat_template": "the prompts use a chat template, which the papers' prompts don't have",
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


def are_proven(record: RunRecord) -> bool:
    """Tell whether a run's file says which weights answered: by hashes of files or by a commit."""
    model = record.model
    if model.weights or model.kind in _WITHOUT_WEIGHTS:
        return True
    return bool(_COMMIT.fullmatch(str(model.revision)))


def unproven_files(run: Run) -> list[str]:
    """List the files of a run of several that don't all prove that the same weights answered."""
    if len(run.records) < 2 or all(map(are_proven, run.records)):
        return []
    return ["/".join(PurePath(record.file).parts[-2:]) for record in run.records]


def option_names() -> list[str]:
    """List all names that a changed option can have."""
    allowed = [
        fact.name
        for fact in what_counts.facts().values()
        if fact.gate == "allow" and fact.field not in _NAMED_INSIDE
    ]
    arguments = what_counts.arguments_of("prompt.template_arguments")
    roles = [benchmark.options.roles for benchmark in registry.by_name().values()]
    return list(dict.fromkeys(chain(allowed, arguments, PART, *roles)))


def _options(task: TaskRun) -> dict[str, OptionUsed]:
    """Read the options that were set by ``--metadata`` or by a YAML; of data and classifiers what was used."""
    entry = catalog.entries().get(task.task)
    defaults = {"repeats": entry.repeats, **entry.metadata} if entry else {}
    suite = task.metadata.get("suite") or {}
    if "repeats" in suite:  # a suite's own number departs from nothing
        defaults["repeats"] = suite["repeats"]
    options = {}
    for name in task.definition.options.roles:
        if name not in _AS_USED and task.option(name) is not None:
            given = task.metadata.get(name)
            text = task.option_text(name)
            departs = given is not None and given != defaults.get(name)
            options[name] = OptionUsed(text, task.file_hash(name) or text, departs)
    used, dataset = (task.metadata.get(f"{name}_used") for name in _AS_USED)
    if used:
        is_default = used.get("is_default", task.metadata.get("classifier") is None)
        options["classifier"] = OptionUsed(used["name"], used["name"], not is_default)
    if dataset:
        digest = dataset["sha256"]
        text = f"{PurePath(dataset['file']).name} ({digest[:12]})"
        options["dataset"] = OptionUsed(text, digest)
    return options


def _task_used(task: TaskRun) -> TaskUsed:
    inputs = task.inputs
    code = inputs.get("package_code")
    return TaskUsed(
        task.version,
        _options(task),
        inputs.get("changed", ()),
        inputs.get("num_fewshot") or 0,
        (task.metadata.get("distribution", ""), code) if code else None,
        inputs.get("package_content"),
        inputs.get("scored") or inputs.get("documents") or UNKNOWN,
        items_run(task),
    )


def of(task: TaskRun) -> RunRecord:
    """Return what a task of a run was made by, with the facts of the task itself."""
    record = task.record
    if task.inputs.get("chat_template") and not record.prompt.template:
        record = replace(record, prompt=replace(record.prompt, template=UNKNOWN))
    return replace(record, task=_task_used(task))


def takes_part(fact: Fact, task: TaskRun) -> bool:
    """Tell whether a fact can have moved a task's scores: seeds do where something is drawn."""
    entry = catalog.entries().get(task.task)
    writes = entry is None or "generate_until" in entry.asks
    draws = samples_texts(task.definition) or task.inputs.get("num_fewshot")
    if fact.when == "sampled":
        return bool(draws or (writes and task.record.sampling.draws))
    return writes or not fact.when


def choices(task: TaskRun) -> dict[str, str]:
    """Return what was chosen and not the default, of the facts that runs are ranked apart by."""
    record = of(task)
    facts = [fact for fact in what_counts.facts().values() if fact.ranks]
    chosen = [_departures(fact, record) for fact in facts if takes_part(fact, task)]
    return dict(chain.from_iterable(part.items() for part in chosen))


def _departures(fact: Fact, record: RunRecord) -> dict[str, str]:
    """Write in what a fact isn't the default, by name."""
    value = fact.of(record)
    if fact.field == "task.options":
        return {name: str(used) for name, used in value.items() if used.departs}
    if fact.field == "prompt.template_arguments":
        # without a template they do nothing
        return {name: str(v) for name, v in value.items() if record.prompt.template}
    if not value or fact.field in _ALWAYS or value == SEEDS:
        return {}
    if fact.field == "sampling.generation":
        return {fact.name: json.dumps(value)}
    if fact.field == "prompt.template":
        return {fact.name: "" if value == UNKNOWN else value[:12]}
    if fact.field == "prompt.system_instruction":
        digest = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()
        return {fact.name: digest[:12]}
    return {fact.name: shown(value)}


def rank_group(task: TaskRun) -> tuple[str, ...]:
    """Return what runs share which measured the same thing, and so can be ranked; documents and items come last."""
    record = of(task)
    group = [task.benchmark]
    for fact in what_counts.facts().values():
        if not fact.ranks or not takes_part(fact, task):
            continue
        if fact.field in _ALWAYS:
            group.append(f"{fact.name} {shown(fact.of(record))}")
        for name, value in sorted(_departures(fact, record).items()):
            # a file is known by what it holds
            used = record.task.options.get(name)
            group.append(f"{name}={used.content if used else value}")
    return tuple(group)


def documents_hash(task: TaskRun) -> str:
    """Return the hash of what was run: documents and what was asked of them."""
    return of(task).task.documents


def unknown_part(task: TaskRun) -> str:
    """Say why it isn't known which items were run; empty where it is."""
    items = items_run(task)
    if not items or "scored" in task.inputs:
        return ""
    return f"{items}, and its file doesn't say which"


def items_run(task: TaskRun) -> str:
    """Say in words which part of the items was run; empty for all."""
    if "scored" not in task.inputs:
        # all documents, of whatever number: a data set of the user's has its own
        is_whole = "documents" in task.inputs
        if is_whole or task.documents == (task.items or task.documents):
            return ""
    if not task.items:
        return f"{task.documents:,} items, not all"
    return f"{task.documents:,} of {task.items:,} items"


def describe(task: TaskRun) -> str:
    """Describe the settings in words."""
    chosen = choices(task)
    parts = [f"{name}={value}" if value else name for name, value in chosen.items()]
    model = task.record.model
    parts = parts or ["the task's defaults"]
    if model.kind:
        parts.append(f"--model {model.kind}")
    if model.dtype:
        parts.append(model.dtype)
    return "; ".join(parts)


def old_version(task: TaskRun) -> str:
    """Say in which version a task was run if that isn't the current one; empty where it is, or isn't known."""
    entry = catalog.entries().get(task.task)
    current = str(entry.metadata.get("version", task.version)) if entry else ""
    if current in ("", task.version):
        return ""
    return f"task version {task.version}, now {current}"


def _of_the_task(task: TaskRun) -> Iterator[tuple[str, ChangedOption]]:
    """Yield in what a task isn't the one that is here now, with the fact that says it."""
    changed = task.inputs.get("changed")
    if task.task not in catalog.entries() and "dataset_used" not in task.metadata:
        changed = ()
    if changed is not None:
        problem = (
            "not a task of this version: the run used another version, or its own tasks"
        )
        if changed:
            problem = f"not the packaged task of this name: {', '.join(changed)}"
        yield "task.changed", ChangedOption("task", "", problem)
    old = old_version(task)
    if old:
        yield "task.version", ChangedOption("version", task.version, old)
    if documents_hash(task) == UNKNOWN:
        problem = (
            "its file doesn't say which inputs were read and scored: run the task again"
        )
        yield "task.documents", ChangedOption("inputs", "", problem)
    benchmark = task.definition
    here = content_hashes.of_data_files(folder_of(benchmark))
    there = task.inputs.get("package_content", here)
    distribution = registry.distribution(benchmark)
    if there != here and task.metadata.get("distribution") == distribution:
        problem = "the benchmark's own files differ from those here"
        yield "task.data", ChangedOption("package_data", there[:12], problem)
    items = items_run(task)
    if items:
        limit = task.record.limit
        suite = task.metadata.get("suite") or {}
        option = "samples", task.inputs.get("scored", "")[:12]
        if limit:
            option = "limit", f"{limit:.15g}"
        elif "documents" in suite:
            option = "suite", suite["name"]
        yield "task.items", ChangedOption(*option, items)


def changed_options(task: TaskRun) -> Iterator[ChangedOption]:
    """Yield everything in which a task of a run departs from the task as its benchmark defines it, where it matters."""
    record = of(task)
    facts = what_counts.facts()
    for fact in facts.values():
        # what isn't as it is here now stands below
        is_below = fact.field in ("task.changed", "task.data")
        if fact.gate != "allow" or is_below or not takes_part(fact, task):
            continue
        for name, value in _departures(fact, record).items():
            yield ChangedOption(name, value, _PROBLEMS.get(name, "").format(value))
    for field, option in _of_the_task(task):
        if facts[field].gate == "allow":
            yield option
