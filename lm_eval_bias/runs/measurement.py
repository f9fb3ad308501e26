"""What makes a run's scores a measurement of their own, and where its tasks depart from the benchmarks'.

In comes a task of a run; ``core/comparability.yaml`` says which of its facts count for what.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePath
from typing import Any

from lm_eval_bias.core import catalog, comparability, content_hashes, registry
from lm_eval_bias.core.benchmark import folder_of, samples_texts
from lm_eval_bias.core.comparability import Fact, shown
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.core.run_record import (
    SEEDS,
    UNKNOWN,
    OptionUsed,
    RunRecord,
    TaskUsed,
)
from lm_eval_bias.harness import servers

_WITHOUT_WEIGHTS = ("bias-chance", "bias-dial", servers.DUMMY)
_AS_USED = ("classifier", "dataset")  # options of which the file says what was used
PART = ("limit", "samples", "suite")  # names by which a policy allows a part of items
_OWN_DATA = "its own data set, not the published one: {}"
# how policies write facts that aren't written on one line
_WRITTEN: Mapping[str, Callable[[Any], str]] = {
    "json": json.dumps,
    "digest": lambda digest: "" if digest == UNKNOWN else digest[:12],
    "hash": lambda text: hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[
        :12
    ],
    "none": lambda value: "",
}


@dataclass(frozen=True)
class ChangedOption:
    """A departure of a run from its task's definition.

    Attributes:
        name: One of :func:`option_names`.
        value: The run's value; empty if the name says it all.
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
    """Return whether a run's file says which weights answered: what ``run`` found, hashes of files or a commit.

    A commit that was only asked for, or that the harness writes, proves nothing; nor do hashes of a tokenizer alone.
    """
    model = record.model
    proven = {kind.partition(" ")[0] for kind in model.weights}
    needed = {"pretrained", *model.arguments.keys() & {"peft", "delta"}}
    return model.kind in _WITHOUT_WEIGHTS or needed <= proven


def unproven_files(run: Run) -> list[str]:
    """List the files of a joined run whose weights aren't all proven."""
    if len(run.records) < 2 or all(map(are_proven, run.records)):
        return []
    return ["/".join(PurePath(record.file).parts[-2:]) for record in run.records]


def option_names() -> list[str]:
    """List all names that a changed option can have."""
    allowed = [
        fact.name
        for fact in comparability.facts().values()
        if fact.gate == "allow" and fact.departs not in _BY_PARTS
    ]
    arguments = comparability.arguments_of("prompt.template_arguments")
    roles = [benchmark.options.roles for benchmark in registry.by_name().values()]
    return list(dict.fromkeys(chain(allowed, arguments, PART, *roles)))


def _options(task: TaskRun) -> dict[str, OptionUsed]:
    """Read the options set by ``--metadata`` or by a YAML, and the data and classifiers used."""
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


def _changed(task: TaskRun) -> Sequence[str]:
    """List the keys in which a task differs from the packaged one."""
    if task.task not in catalog.entries() and "dataset_used" not in task.metadata:
        return ["another version's, or the run's own"]
    return task.inputs.get("changed", ())


def _task_used(task: TaskRun) -> TaskUsed:
    inputs = task.inputs
    code = inputs.get("package_code")
    return TaskUsed(
        task.version,
        _options(task),
        _changed(task),
        inputs.get("num_fewshot") or 0,
        f"{task.metadata.get('distribution')} {code[:8]}" if code else None,
        inputs.get("package_content"),
        inputs.get("scored") or inputs.get("documents") or UNKNOWN,
        items_run(task),
    )


def of(task: TaskRun) -> RunRecord:
    """Return the provenance record of a task, including the task's own facts."""
    prompt = task.record.prompt
    passed_over = task.inputs.get("passed_over", ())
    if "apply_chat_template" in passed_over:
        prompt = replace(prompt, template=None, template_arguments={})
    elif task.inputs.get("chat_template") and not prompt.template:
        prompt = replace(prompt, template=UNKNOWN)
    if "system_instruction" in passed_over:
        prompt = replace(prompt, system_instruction=None)
    return replace(task.record, prompt=prompt, task=_task_used(task))


def takes_part(fact: Fact, task: TaskRun) -> bool:
    """Return whether a fact can affect a task's scores (seeds: only where something is drawn)."""
    entry = catalog.entries().get(task.task)
    writes = entry is None or "generate_until" in entry.asks
    draws = samples_texts(task.definition) or task.inputs.get("num_fewshot")
    if fact.when == "sampled":
        return bool(draws or (writes and task.record.sampling.draws))
    return writes or not fact.when


def _departures(task: TaskRun) -> Iterator[tuple[Fact, ChangedOption]]:
    """Yield a task's departures from its current definition that can affect scores."""
    record = of(task)
    for fact in comparability.facts().values():
        value = fact.of(record)
        if not value or not (fact.ranks or fact.gate) or not takes_part(fact, task):
            continue
        if fact.departs in _BY_PARTS:
            for option in _BY_PARTS[fact.departs](task, record, value):
                yield fact, option
        elif not fact.departs or _DEPARTS[fact.departs](task, value):
            text = _WRITTEN.get(fact.written, shown)(value)
            problem = fact.problem.format(text or shown(value))
            if fact.departs == "version":
                problem = old_version(task)
            yield fact, ChangedOption(fact.name, text, problem)


def _other_data(task: TaskRun, digest: object) -> bool:
    """Return whether a benchmark's data files differ from this installation's, at the same version."""
    here = content_hashes.of_data_files(folder_of(task.definition))
    distribution = registry.distribution(task.definition)
    return digest != here and task.metadata.get("distribution") == distribution


def _options_set(
    task: TaskRun, record: RunRecord, used: Mapping[str, OptionUsed]
) -> Iterator[ChangedOption]:
    for name, option in used.items():
        if option.departs:
            problem = _OWN_DATA.format(option) if name == "dataset" else ""
            yield ChangedOption(name, str(option), problem)


def _template_arguments(
    task: TaskRun, record: RunRecord, given: Mapping[str, object]
) -> Iterator[ChangedOption]:
    if record.prompt.template:  # else they do nothing
        for name, value in given.items():
            yield ChangedOption(name, str(value))


def _part(task: TaskRun, record: RunRecord, items: str) -> Iterator[ChangedOption]:
    """Name the flag that chose a part of the items."""
    suite = task.metadata.get("suite") or {}
    if record.limit:
        yield ChangedOption("limit", f"{record.limit:.15g}", items)
    elif "documents" in suite:
        yield ChangedOption("suite", suite["name"], items)
    else:
        yield ChangedOption("samples", task.inputs.get("scored", "")[:12], items)


# facts whose parts have names of their own
_BY_PARTS: Mapping[str, Callable[[TaskRun, RunRecord, Any], Iterator[ChangedOption]]]
_BY_PARTS = {"option": _options_set, "argument": _template_arguments, "part": _part}
_DEPARTS: Mapping[str, Callable[[TaskRun, object], bool]] = {
    "version": lambda task, version: bool(old_version(task)),
    "unknown": lambda task, documents: documents == UNKNOWN,
    "data": _other_data,
    "seeds": lambda task, seeds: seeds != SEEDS,
}


def changed_options(task: TaskRun) -> Iterator[ChangedOption]:
    """Yield a task's departures that a policy has to allow."""
    for fact, option in _departures(task):
        if fact.gate == "allow":
            yield option


def choices(task: TaskRun) -> dict[str, str]:
    """Return the non-default facts by which runs are ranked separately."""
    chosen = {}
    for fact, option in _departures(task):
        if fact.ranks and not fact.always:
            chosen[option.name] = option.value
    return chosen


def rank_group(task: TaskRun) -> tuple[str, ...]:
    """Return the key of runs that can be ranked together; documents and items come last."""
    record = of(task)
    group = [task.benchmark]
    for name, value in sorted(choices(task).items()):
        used = record.task.options.get(name)  # a file is known by what it holds
        group.append(f"{name}={used.content if used else value}")
    for fact in comparability.facts().values():
        if fact.ranks and fact.always:
            group.append(f"{fact.name} {shown(fact.of(record))}")
    return tuple(group)


def documents_hash(task: TaskRun) -> str:
    """Return the hash of documents and prompts."""
    return of(task).task.documents


def unknown_part(task: TaskRun) -> str:
    """Explain why it isn't known which items were run; empty if it is."""
    items = items_run(task)
    if not items or "scored" in task.inputs:
        return ""
    return f"{items}, and its file doesn't say which"


def items_run(task: TaskRun) -> str:
    """Describe the part of the items that was run; empty for all."""
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
    """Describe a task version that isn't the current one; empty if it is, or is unknown."""
    entry = catalog.entries().get(task.task)
    current = str(entry.metadata.get("version", task.version)) if entry else ""
    if current in ("", task.version):
        return ""
    return f"task version {task.version}, now {current}"
