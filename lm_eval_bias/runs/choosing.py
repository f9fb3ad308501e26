"""Some tasks of runs, by name, group, tag, pattern or language; what is left out is named."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import replace

from lm_eval_bias.core import catalog
from lm_eval_bias.core.errors import BadOption, BiasError, did_you_mean
from lm_eval_bias.core.numbers import join_some
from lm_eval_bias.core.run_data import Problem, Run


def _matching(name: str, known: Sequence[str]) -> set[str]:
    """Return the tasks that a name stands for: a task, a group, a tag or a pattern."""
    entries = catalog.entries()
    group = entries[name].members if name in entries else ()
    patterns = [*group, *catalog.tagged(name, entries)] or [name]
    return {task for one in patterns for task in fnmatch.filter(known, one)}


def choose(
    runs: Sequence[Run], tasks: Sequence[str] = (), languages: Sequence[str] = ()
) -> tuple[list[Run], list[Problem]]:
    """Return runs with the selected tasks (without empty runs), and what was left out.

    Args:
        runs: The runs.
        tasks: Names of tasks, groups and tags, or patterns such as ``mbbq_*``; all if empty.
        languages: ISO 639-1 codes; all if empty.

    Raises:
        BadOption: No run has such a task, or one in such a language.
        BiasError: Nothing is left.
    """
    if not tasks and not languages:
        return list(runs), []
    known = list(dict.fromkeys(task for run in runs for task in run.tasks))
    spoken = {task.language for run in runs for task in run.tasks.values()}
    wanted = set() if tasks else set(known)
    for name in tasks:
        found = _matching(name, known)
        if not found:
            raise BadOption("tasks", name, f"no run has it.{did_you_mean(name, known)}")
        wanted |= found
    for code in languages:
        if code not in spoken:
            have = ", ".join(sorted(spoken))
            raise BadOption("language", code, f"no run has it, only {have}")
    chosen = []
    left_out = []
    for run in runs:
        kept = {
            name: task
            for name, task in run.tasks.items()
            if name in wanted and (not languages or task.language in languages)
        }
        if kept:
            chosen.append(replace(run, tasks=kept))
        others = [name for name in run.tasks if name not in kept]
        if others:
            reason = f"left out, not chosen: {join_some(others)}"
            left_out.append(Problem(run.path, reason, is_choice=True))
    if not chosen:
        raise BiasError("no run has one of these tasks in one of these languages")
    return chosen, left_out
