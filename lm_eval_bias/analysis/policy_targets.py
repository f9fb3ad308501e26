"""Which tasks and scores a policy's names mean, and whether they exist at all."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence

from lm_eval_bias import catalog, registry
from lm_eval_bias.analysis.policy_file import Bound, Policy
from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.runs.run_data import Run, TaskRun, Value


def _fits(task: TaskRun, pattern: str) -> bool:
    return fnmatch.fnmatchcase(task.task, pattern) or fnmatch.fnmatchcase(task.base, pattern)


def patterns(bound: Bound) -> tuple[str, ...]:
    """Patterns of tasks each of which a run has to have: of a group, all its tasks."""
    entry = catalog.entries().get(bound.task)
    return entry.members if entry and entry.members else (bound.task,)


def tasks(run: Run, bound: Bound) -> Iterator[TaskRun]:
    """The tasks of a run that a bound is about."""
    for task in run.tasks.values():
        if any(_fits(task, pattern) for pattern in patterns(bound)):
            yield task


def scores(task: TaskRun, bound: Bound) -> Iterator[Value]:
    """The scores of a task that a bound is about."""
    for name, value in task.scores.items():
        if fnmatch.fnmatchcase(name, bound.score):
            yield value


def unmeasured(run: Run, bound: Bound) -> list[str]:
    """What a bound names and a run doesn't have."""
    missing = []
    for pattern in patterns(bound):
        fitting = [task for task in run.tasks.values() if _fits(task, pattern)]
        if not fitting:
            missing.append(pattern)
        elif not any(True for task in fitting for _ in scores(task, bound)):
            missing.append(", ".join(task.task for task in fitting))
    return missing


def refuse_unknown(policy: Policy, runs: Sequence[Run]) -> None:
    """Refuse a task or score that neither this package nor any of the runs has: a misspelt bound must not be met.

    Raises:
        BiasError: The first such name, and where it stands.
    """
    entries = catalog.entries()
    task_runs = [task for run in runs for task in run.tasks.values()]
    for bound in policy.bounds:
        benchmarks = {
            n: e.benchmark for n, e in entries.items() if any(fnmatch.fnmatchcase(n, p) for p in patterns(bound))
        }
        benchmarks |= {task.task: task.benchmark for run in runs for task in tasks(run, bound)}
        if not benchmarks:
            hint = did_you_mean(bound.task, {*entries, *(task.task for task in task_runs)})
            raise BiasError(f"{bound.place}: there is no task {bound.task!r}.{hint} ('lm-eval-bias ls')")
        names = {s.name for benchmark in set(benchmarks.values()) for s in registry.get(benchmark).scores([])}
        names |= {name for task in task_runs if task.task in benchmarks for name in task.scores}
        if not _exists(bound.score, names):
            hint = did_you_mean(bound.score, names)
            raise BiasError(f"{bound.place}: {bound.task} has no score {bound.score!r}.{hint}")


def _exists(pattern: str, names: set[str]) -> bool:
    """Whether a pattern means a score that a run may have; breakdowns are named by what the data hold.

    >>> known = {"ss", "all/chi2"}
    >>> [_exists(name, known) for name in ("ss", "gender/ss", "s*", "sss", "gender/sss")]
    [True, True, True, False, False]
    """
    if fnmatch.filter(names, pattern):
        return True
    parts = {part for name in names for part in name.split("/")}
    return "/" in pattern and any(fnmatch.filter(parts, part) for part in pattern.split("/"))
