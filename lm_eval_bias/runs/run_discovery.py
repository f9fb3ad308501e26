"""Search for runs under some paths, which are read and joined; files that can't be read are named and skipped."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from lm_eval_bias.core import comparability
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded, list_files, read_json, split_name
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.run_data import Problem, Run
from lm_eval_bias.runs import harness_results, sample_logs

Found = tuple[list[Run], list[Problem]]


def is_same(run: Run, other: Run) -> bool:
    """Return whether the files of two runs can be one run, as the table of what counts says."""
    pairs = product(run.records, other.records)
    return all(comparability.can_join(*records) for records in pairs)


def _merged(runs: Sequence[Run]) -> list[Run]:
    """Join runs of one model if their tasks differ and nothing that changes numbers does."""
    joined: list[Run] = []
    for run in runs:
        for earlier in joined:
            is_apart = run.name != earlier.name or run.tasks.keys() & earlier.tasks
            if not is_apart and is_same(earlier, run):
                earlier.tasks = {**earlier.tasks, **run.tasks}
                break
        else:
            joined.append(run)
    return joined


def _places(runs: Sequence[Run]) -> list[str]:
    """Describe each run's path as far as it distinguishes the runs: folders, else files."""
    paths = [os.path.abspath(run.path).split(os.sep) for run in runs]
    folders = [path[:-1] for path in paths]
    shown = folders if len(set(map(tuple, folders))) == len(folders) else paths
    first = len(os.path.commonprefix(shown))
    last = len(os.path.commonprefix([path[first:][::-1] for path in shown]))
    return [os.sep.join(path[first : len(path) - last]) or path[-1] for path in shown]


def _distinguished(runs: Sequence[Run]) -> list[Run]:
    """Give the runs distinct names, from their folders where the model is the same."""
    renamed = {}
    for name, group in grouped((run.name, run) for run in runs).items():
        if len(group) > 1:
            for place, run in zip(_places(group), group, strict=True):
                renamed[id(run)] = replace(run, name=f"{name} ({place})")
    return [renamed.get(id(run), run) for run in runs]


def beside(logs: Iterable[Path]) -> dict[Path, Run]:
    """Read the runs of the results files beside sample logs, as far as they can be read, by the log."""
    runs: dict[Path, Run | None] = {}
    found = {}
    for log in logs:
        file = sample_logs.results_beside(log)
        if file not in runs:
            runs[file] = None
            with contextlib.suppress(BiasError):
                runs[file] = harness_results.read(file, read_json(file))
        if run := runs[file]:
            found[log] = run
    return found


def _under(folder: Path, seen: set[str]) -> Found:
    runs = []
    problems = []
    dates = set()
    is_read = False
    # links last: logs lie beside the file itself
    files = filter(harness_results.matches, list_files(folder))
    for path in sorted(files, key=Path.is_symlink):
        try:
            if os.path.realpath(path) in seen:
                is_read = True
            else:
                runs.append(harness_results.read(path, read_json(path)))
        except BiasError as error:
            problems.append(Problem(path, str(error)))
        seen.add(os.path.realpath(path))
        dates.add((path.parent, path.stem.removeprefix("results_")))
    for path in list_files(folder, "samples_*.jsonl"):
        date = path.stem.rpartition("_")[2]
        if sample_logs.matches(path) and (path.parent, date) not in dates:
            reason = "the run is unfinished (rescore can read its samples)"
            # as plain lm_eval --output_path NAME.json calls them
            for other in path.parent.glob(f"*_{date}.json"):
                reason = f"rename {other.name}, which holds its results"
            problems.append(
                Problem(path, f"no results_{date}.json beside it: {reason}")
            )
    if not runs and not problems and not is_read:
        problems.append(Problem(folder, "holds no run (no results_*.json)"))
    return runs, problems


def _named(path: Path, seen: set[str]) -> Found:
    """Read the run of a file that was named itself.

    Raises:
        BiasError: It can't be read, or is no run.
    """
    if os.path.realpath(path) in seen:
        return [], []
    seen.add(os.path.realpath(path))
    if not harness_results.matches(path):
        raise BiasError(f"{path}: not the results of a run (results_*.json)")
    try:
        return [harness_results.read(path, read_json(path))], []
    except BiasError as error:
        raise BiasError(f"{path}: {error}") from error


def read(paths: Sequence[str | Path], by_file: bool = False) -> Found:
    """Read all runs under some paths, in the order of the paths, then of the files' names.

    Args:
        paths: Folders (searched to any depth), or the harness's ``results_*.json``; as ``NAME=PATH`` with the name that
            the model is to have.
        by_file: Whether each file is a run, under its model's name, as boards take them.

    Returns:
        The runs, each once and with a name of its own unless they are taken by file, and the files that were skipped.

    Raises:
        BiasError: A path doesn't exist, a file named itself can't be read, or no run was found at all.
    """
    runs = []
    problems = []
    seen: set[str] = set()
    for argument in paths:
        name, place = split_name(str(argument))
        path = expanded(place)
        if not os.path.exists(path):
            raise BiasError(f"{place}: no such file or folder")
        inside, wrong = _under(path, seen) if path.is_dir() else _named(path, seen)
        for run in inside if by_file else _merged(inside):
            runs.append(replace(run, name=name) if name else run)
        problems += wrong
    if not runs:
        raise BiasError("no run found: " + "; ".join(map(str, problems)))
    return (runs if by_file else _distinguished(runs)), problems
