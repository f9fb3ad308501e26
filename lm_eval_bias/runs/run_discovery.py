"""Finds and reads runs under paths; what can't be read is named, and the rest still counts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded, read_json, under
from lm_eval_bias.runs import harness_results, run_file, same_model, sample_logs, soundness
from lm_eval_bias.runs.run_data import Problem, Run


def run_of(path: Path) -> Run | None:
    """The file's run; ``None`` if it isn't meant to be one.

    Raises:
        BiasError: It can't be read, or holds numbers that can't be.
    """
    content = read_json(path)
    if run_file.matches(content):
        run = run_file.read(path, content)
    elif harness_results.matches(path):
        run = harness_results.read(path, content)
    else:
        return None
    soundness.check(run)
    return run


def problems_beside(logs: Sequence[Path]) -> list[Problem]:
    """What is wrong with the results files of the runs that some sample logs are of, where they lie beside these."""
    problems = []
    for path in dict.fromkeys(log.with_name(f"results_{log.stem.rpartition('_')[2]}.json") for log in logs):
        try:
            if path.is_file():
                run_of(path)
        except BiasError as error:
            problems.append(Problem(path, str(error)))
    return problems


def _under(folder: Path, seen: set[str]) -> tuple[list[Run], list[Problem]]:
    runs: list[Run] = []
    problems: list[Problem] = []
    dates = set()
    is_read = False
    for path in sorted(under(folder, "*.json"), key=Path.is_symlink):  # logs lie beside the file itself
        if os.path.realpath(path) in seen:
            is_read = True
        else:
            try:
                run = run_of(path)
                if run is None:
                    continue
                runs.append(run)
            except BiasError as error:
                problems.append(Problem(path, str(error)))
            seen.add(os.path.realpath(path))
        dates.add((path.parent, path.stem.removeprefix("results_")))
    for path in (p for p in under(folder, "samples_*.jsonl") if sample_logs.matches(p)):
        date = path.stem.rpartition("_")[2]
        if (path.parent, date) not in dates:
            problems.append(
                Problem(path, f"no results_{date}.json beside it: the run is unfinished (rescore can read its samples)")
            )
    if not runs and not problems and not is_read:
        problems.append(Problem(folder, "holds no run (no results_*.json, no run file)"))
    return runs, problems


def _named(path: Path) -> Run:
    """The run of a file that was named itself.

    Raises:
        BiasError: It can't be read, or is none.
    """
    try:
        run = run_of(path)
    except BiasError as error:
        raise BiasError(f"{path}: {error}") from error
    if run is None:
        raise BiasError(f"{path}: neither the results of a harness run (results_*.json) nor a run file of this package")
    return run


def _scores(run: Run) -> str:
    """A run's scores as text, in which nan is like nan."""
    tasks = sorted(run.tasks.items())
    return repr([(name, [(v.name, v.value, v.stderr) for v in task.scores.values()]) for name, task in tasks])


def _is_copy(one: Run, other: Run) -> bool:
    """Whether runs of one model with the same scores are one, by when they began, else by all that their files say.

    A model may well be run twice and score the same; run files alone don't say when, but for the day.
    """
    if one.began is not None and other.began is not None:
        return one.began == other.began
    return run_file.as_data(one) == run_file.as_data(other)


def _once(runs: Sequence[Run], known: dict[tuple[str, str], list[Run]]) -> tuple[list[Run], list[Problem]]:
    """The runs that aren't copies of known ones, which are known from now on, and the copies."""
    own, copies = [], []
    for run in runs:
        alike = known.setdefault((run.name, _scores(run)), [])
        if first := next((one for one in alike if _is_copy(one, run)), None):
            reason = f"a copy of {first.path} (model, date and scores are the same): it counts once"
            copies.append(Problem(run.path, reason, is_copy=True))
        else:
            alike.append(run)
            own.append(run)
    return own, copies


def read(paths: Sequence[str | Path], by_task: bool = False) -> tuple[list[Run], list[Problem]]:
    """All runs under some paths, in the order of the paths, then of the files' names.

    Args:
        paths: Folders (searched to any depth), the harness's ``results_*.json``, or run files of this package.
        by_task: Whether they are for tables by task: files under several of the paths may then be one run, as those
            under one path are, and runs with other tasks may have the same name.

    Returns:
        The runs, each once, and what had to be passed over; names are made unique (by folders).

    Raises:
        BiasError: A path doesn't exist, a file named itself can't be read, or no run was found at all.
    """
    runs: list[Run] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    known: dict[tuple[str, str], list[Run]] = {}
    for name in paths:
        path = expanded(name)
        if not os.path.exists(path):
            raise BiasError(f"{name}: no such file or folder")
        if path.is_dir():
            inside, wrong = _under(path, seen)
        else:
            inside, wrong = ([] if os.path.realpath(path) in seen else [_named(path)]), []
            seen.add(os.path.realpath(path))
        own, copies = _once(inside, known)
        runs += same_model.merged(own)
        problems += [*wrong, *copies]
    if not runs:
        raise BiasError("no run found: " + "; ".join(map(str, problems)))
    return same_model.distinguished(same_model.merged(runs) if by_task else runs, by_task), problems
