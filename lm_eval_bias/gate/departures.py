"""Where a run isn't its task as the benchmark defines it: what a policy has to allow by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lm_eval_bias.core import catalog, content_hashes, registry
from lm_eval_bias.core.benchmark import DATA, DETAIL, options_for
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.data import sources
from lm_eval_bias.runs import settings

_OF_TEMPLATES = ("chat_template_args", "enable_thinking", "think_end_token")  # arguments of models
_SEEDS = [0, 1234, 1234, 1234]  # the harness's own
PART = ("limit", "samples", "suite")
# what tasks of every benchmark can depart in, beside their benchmarks' options
NAMES = (
    "version", "task", "inputs", "package_data", "dataset", "classifier", "gen_kwargs", "num_fewshot", "seeds",
    "system_instruction", "chat_template", *_OF_TEMPLATES, *PART,
)  # fmt: skip


@dataclass(frozen=True)
class Departure:
    """One thing in which a run isn't its task as the benchmark defines it.

    Attributes:
        name: One of :func:`names`.
        value: What the run has; empty where there is nothing more to say.
        problem: What is the matter, in words.
    """

    name: str
    value: str
    problem: str

    @property
    def exact(self) -> str:
        """What a policy allows just this by."""
        return f"{self.name}={self.value}" if self.value else self.name

    @property
    def line(self) -> str:
        """The same as a line of a policy."""
        return f"allow: {json.dumps([self.exact], ensure_ascii=False)}"


def names() -> list[str]:
    """All names that a departure can have."""
    benchmarks = registry.by_name().values()
    options = [option for benchmark in benchmarks for option, role in benchmark.options.items() if role != DETAIL]
    return list(dict.fromkeys([*NAMES, *options]))


def find_departures(run: Run, task: TaskRun) -> Iterator[Departure]:
    """Everything in which a task of a run isn't the task as its benchmark defines it."""
    entry = catalog.entries().get(task.base)
    for name, value in settings.choices(run, task).items():
        used = task.metadata.get("classifier_used") if name == "classifier" else None
        default = used.get("is_default", task.metadata.get("classifier") is None) if used else False
        if not default:  # of classifiers, the task's own is no departure
            yield Departure(name, value, f"it is {value}")
    if entry is None and "dataset_used" not in task.metadata:
        yield Departure("task", "", "not a task of this package")
    elif changed := task.inputs.get("changed"):
        yield Departure("task", "", f"not the packaged task of this name: {', '.join(map(str, changed))}")
    current = entry.metadata.get("version") if entry else None
    if current is not None and not settings.same_version(task.version, current):
        yield Departure("version", task.version, f"it is {task.version}, now {current}")
    yield from _of_model(run, task)
    yield from _of_inputs(run, task)


def _of_model(run: Run, task: TaskRun) -> Iterator[Departure]:
    """What is put around prompts, and the seeds of sampled texts."""
    template = run.provenance.get("chat_template")
    if template or task.inputs.get("chat_template"):
        yield Departure("chat_template", str(template or "")[:12], "the prompts use a chat template")
        arguments = str(run.provenance.get("model_args") or "")
        for name in _OF_TEMPLATES:
            if match := re.search(rf"(?:^|,){name}=([^,]*)", arguments):
                yield Departure(name, match[1], f"it is {match[1]}")
    seeds = run.provenance.get("seeds")
    if registry.get(task.benchmark).samples_texts != "never" and seeds != _SEEDS:
        value = ",".join(map(str, seeds)) if isinstance(seeds, list) else str(seeds)
        yield Departure("seeds", value, f"they are {value}")


def _unread(task: TaskRun) -> list[str]:
    """The pinned files of a task that its run isn't known to have read, where none of its own took their place."""
    entry = catalog.entries().get(task.base)
    replaced = any(task.metadata.get(option) for option in options_for(registry.get(task.benchmark), DATA))
    if entry is None or "dataset_used" in task.metadata or replaced:
        return []
    read = task.inputs.get("files", {})
    return [name for name, digest in sources.hashes(entry.data).items() if read.get(name) != digest]


def _of_inputs(run: Run, task: TaskRun) -> Iterator[Departure]:
    """What was read, and the part of it that was run."""
    if "documents" not in task.inputs and "scored" not in task.inputs:
        yield Departure("inputs", "", "its file doesn't say which inputs were read and scored: run the task again")
    elif unread := _unread(task):
        yield Departure("inputs", "", f"its file doesn't say that it read the pinned version of {unread[0]}")
    here = content_hashes.of_data_files(registry.get(task.benchmark).folder)
    there = task.inputs.get("package_content", here)
    if there != here and task.metadata.get("distribution") == registry.distribution(task.benchmark):
        yield Departure("package_data", there[:12], "the benchmark's own files differ from those here")
    if part := settings.part(task):
        limit = run.provenance.get("limit") or task.extra.get("limit")
        suite = task.metadata.get("suite")
        if limit:
            yield Departure("limit", str(int(limit) if limit == int(limit) else limit), part)
        elif isinstance(suite, Mapping) and "documents" in suite:
            yield Departure("suite", str(suite.get("name")), part)
        else:
            yield Departure("samples", str(task.inputs.get("scored") or "")[:12], part)
