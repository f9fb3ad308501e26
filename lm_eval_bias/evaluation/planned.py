"""A run before its model answers: its flags, the tasks that they name, and these tasks once they are built."""

from __future__ import annotations

import fnmatch
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lm_eval_bias.core import Data, catalog, registry
from lm_eval_bias.core.catalog import Entry
from lm_eval_bias.core.errors import BiasError, did_you_mean, import_failure, one_line
from lm_eval_bias.harness import internals, linking

if TYPE_CHECKING:
    from lm_eval.api.model import LM

    from lm_eval_bias.harness.internals import EvaluatorConfig, Group, Task, TaskManager

logger = logging.getLogger("lm_eval.bias")
Entries = Mapping[str, Entry]


@dataclass
class Planned:
    """The state of a run before the model answers; checks read it, later steps complete it.

    Attributes:
        config: Its flags, as the harness has them.
        entries: All known tasks, by name.
        device: ``--device`` as it was given; ``None`` without it.
        ours: Those of the named tasks that this package knows; empty until they are named.
        manager: What built the tasks; ``None`` before.
        tasks: Tasks by name, those of groups, too; empty until they are built, and where tasks of the harness are
            among them, which it builds later.
        model: The model as the harness built it; ``None`` before.
    """

    config: EvaluatorConfig
    entries: Entries
    device: str | None = None
    ours: list[Entry] = field(default_factory=list)
    manager: TaskManager = None
    tasks: Data = field(default_factory=dict)
    model: LM = None

    @property
    def asks(self) -> list[str]:
        """The kinds of requests of our tasks."""
        return sorted({kind for entry in self.ours for kind in entry.asks})

    def model_class(self) -> type[LM]:
        """Import the class of the model type.

        Raises:
            BiasError: One of its packages isn't installed.
        """
        try:
            return internals.model_class(self.config.model)
        except (ImportError, ValueError, KeyError) as error:
            raise BiasError(
                f"--model {self.config.model}: {import_failure(error)}"
            ) from error

    def name_tasks(self) -> None:
        """List this package's tasks among ``--tasks``, with groups resolved."""
        named: dict[str, None] = {}
        for name in split_tasks(self.config.tasks):
            for match in fnmatch.filter(self.entries, name):
                named |= dict.fromkeys(self.entries[match].members or (match,))
        self.ours = [self.entries[task] for task in named]

    def only_ours(self) -> bool:
        """Return whether all names and patterns can only match this package's tasks."""
        families = tuple(registry.by_name())
        names = split_tasks(self.config.tasks)
        for name in names:
            stem = re.split(r"[*?\[]", name)[0]
            is_stem = stem != name and stem.startswith(families)
            if name not in self.entries and not is_stem:
                return False
        return bool(names)

    def load_tasks(self) -> None:
        """Put the named tasks into the configuration: this package's as objects, the harness's by name.

        Raises:
            BiasError: A task doesn't exist, or can't be built.
        """
        folders = linking.missing_folders()
        if self.config.include_path:  # of two tasks of one name the later is taken
            folders.append(self.config.include_path)
        # the harness's thousands of YAMLs are only read for its own tasks
        if self.only_ours():
            self.manager = internals.task_manager(folders, self.config.metadata)
            self.config.tasks = [self._built(name) for name in self._matched()]
            self.tasks = tasks_of(self.config.tasks)
        else:
            self._load_with_harness(folders)

    def _load_with_harness(self, folders: list[str]) -> None:
        stale = linking.stale_links()
        if stale:
            logger.warning("link: %s", stale)
        if stale or not linking.stubs():
            self.config.include_path = folders
        try:
            self.manager = self.config.process_tasks(self.config.metadata)
        except ValueError as error:
            name = str(error).removeprefix("Tasks not found: ")
            raise BiasError(
                f"no task named {name}, neither here nor in the harness.{did_you_mean(name, self.entries)}"
            ) from error

    def _matched(self) -> list[str]:
        """List the tasks and groups that match ``--tasks``, each once."""
        known = [n for n in self.manager.all_tasks if n not in self.manager.all_tags]
        matched = {}
        for name in split_tasks(self.config.tasks):
            matches = fnmatch.filter(known, name)
            if not matches:
                raise BiasError(f"no task matches {name!r}.{did_you_mean(name, known)}")
            matched.update(dict.fromkeys(matches))
        for name in list(matched):
            for member in self.entries[name].members if name in self.entries else ():
                matched.pop(member, None)  # it comes with its group
        return list(matched)

    def _built(self, name: str) -> Task | Group:
        """Build a task or group, so that errors in metadata or YAML appear before a model is loaded."""
        try:
            loaded = self.manager.load([name])
        except Exception as error:
            entry = self.entries.get(name)
            if entry is None or isinstance(error, BiasError | MemoryError):
                raise
            logger.debug("where the task failed", exc_info=error)
            raise BiasError(
                f"{entry.path}: the task {name} can't be built: {one_line(error)}"
            ) from error
        return loaded["groups"].get(name) or loaded["tasks"][name]

    def output_types(self) -> set[str]:
        """Return the output types of all tasks that use the chat template; tasks of the harness are loaded for this."""
        tasks = self.tasks or self.manager.load(self.config.tasks)["tasks"]
        return {
            task.OUTPUT_TYPE
            for task in tasks.values()
            if not (task.config.metadata or {}).get("asks")
        }


def split_tasks(tasks: str | list[str] | None) -> list[str]:
    """Split names from ``--tasks a,b c``."""
    if not isinstance(tasks, str | list | None):
        raise BiasError(f"--tasks {tasks!r}: must be names of tasks")
    texts = [tasks] if isinstance(tasks, str) else tasks or []
    names = map(str.strip, ",".join(texts).split(","))
    return list(filter(None, names))


def without_tags(tasks: str | list[str] | None, entries: Entries) -> list[str]:
    """Return task names, with tags (``social_bias``) replaced by their tasks."""
    names = []
    for name in split_tasks(tasks):
        names += catalog.tagged(name, entries) or [name]
    return names


def tasks_of(tasks_and_groups: Iterable[Task | Group]) -> Data:
    """Return tasks by name, those of groups included."""
    tasks: Data = {}
    for top in tasks_and_groups:
        members = top.get_all_tasks() if hasattr(top, "get_all_tasks") else [top]
        tasks.update((task.task_name, task) for task in members)
    return tasks
