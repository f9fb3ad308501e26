"""Finds, reads and joins the runs under some paths; names the files that can't be read, and goes on."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded, read_json, under
from lm_eval_bias.core.run_data import Problem, Run, readable
from lm_eval_bias.runs import harness_results, sample_logs

# what changes numbers; the number of items (limit) is told by each task
SAME = (
    "model", "model_args", "model_revision", "dtype", "chat_template", "system_instruction", "gen_kwargs", "seeds",
    "lm-eval-bias", "lm_eval", "transformers", "torch",
)  # fmt: skip
_FILES = "model_files"  # hashed by runs of lm-eval-bias alone, of local checkpoints


def _fact(run: Run, key: str) -> Any:
    value = run.provenance.get(key) or None
    # builds of one release for one kind of device or another: 2.13.0+cpu
    return (
        value.partition("+")[0] if key == "torch" and isinstance(value, str) else value
    )


def _differing(one: Run, other: Run) -> list[str]:
    """Which of the facts that change numbers are others, or known of one run alone; a checkpoint's files of both."""
    differing = [key for key in SAME if _fact(one, key) != _fact(other, key)]
    files = {_fact(one, _FILES), _fact(other, _FILES)} - {None}
    return [*differing, _FILES] if len(files) > 1 else differing


def merged(runs: Sequence[Run]) -> list[Run]:
    """Runs of one model whose tasks differ, and nothing that changes numbers, as one; what else differs is listed."""
    result: list[Run] = []
    places: dict[str, list[int]] = defaultdict(list)  # in it, by model
    for run in runs:
        for i in places[run.name]:
            earlier = result[i]
            if not set(run.tasks) & set(earlier.tasks) and not _differing(earlier, run):
                provenance = {
                    key: _joined(earlier.provenance.get(key), run.provenance.get(key))
                    for key in {**earlier.provenance, **run.provenance}
                }
                result[i] = replace(
                    earlier,
                    provenance=provenance,
                    command=f"{earlier.command}\n{run.command}",
                    tasks={**earlier.tasks, **run.tasks},
                )
                break
        else:
            places[run.name].append(len(result))
            result.append(run)
    return result


def _joined(first: Any, second: Any) -> Any:
    if first == second:
        return first
    parts = [
        *str("–" if first is None else first).split("; "),
        str("–" if second is None else second),
    ]
    return "; ".join(dict.fromkeys(parts))


def _places(runs: Sequence[Run]) -> list[str]:
    """Where each run lies, as far as that tells them apart: folders, else files."""
    paths = [os.path.abspath(run.path).split(os.sep) for run in runs]
    folders = [path[:-1] for path in paths]
    shown = folders if len(set(map(tuple, folders))) == len(folders) else paths
    first = len(os.path.commonprefix(shown))
    last = len(os.path.commonprefix([path[first:][::-1] for path in shown]))
    return [os.sep.join(path[first : len(path) - last]) or path[-1] for path in shown]


def _difference(run: Run, first: Run) -> str:
    """In what a run differs from the first of its model, in words."""
    parts = []
    for key in (*SAME, _FILES, "limit"):
        values = [_fact(one, key) for one in (run, first)]
        if values[0] != values[1]:
            here, there = (readable(value)[:60] for value in values)
            parts.append(f"{key.replace('_', ' ')} ({here}, there {there})")
    return ", ".join(parts) or "nothing that its file records"


def distinguished(runs: Sequence[Run], repeatable: bool = False) -> list[Run]:
    """The runs with names that tell them apart: by their folders where they are of one model.

    Args:
        runs: The runs.
        repeatable: Whether a name may stand there again with other tasks.
    """
    alike: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        alike[run.name].append(run)
    renamed: dict[int, Run] = {}
    for name, group in alike.items():
        tasks = Counter(task for run in group for task in run.tasks)
        if len(group) == 1 or (repeatable and max(tasks.values()) == 1):
            continue
        places = _places(group)
        for place, run in zip(places, group, strict=True):
            differs = (
                ""
                if run is group[0]
                else f"{name} ({places[0]}) in {_difference(run, group[0])}"
            )
            renamed[id(run)] = replace(run, name=f"{name} ({place})", differs=differs)
    return [renamed.get(id(run), run) for run in runs]


def run_of(path: Path) -> Run | None:
    """The file's run; ``None`` if it isn't meant to be one.

    Raises:
        BiasError: It can't be read.
    """
    if not harness_results.matches(path):
        return None
    return harness_results.read(path, read_json(path))


def beside(samples: Path) -> Run | None:
    """Return the run of the results file beside a sample log; ``None`` where there is none that can be read."""
    try:
        return run_of(sample_logs.results_beside(samples))
    except BiasError:
        return None


def _under(folder: Path, seen: set[str]) -> tuple[list[Run], list[Problem]]:
    runs: list[Run] = []
    problems: list[Problem] = []
    dates = set()
    is_read = False
    for path in sorted(
        under(folder, "*.json"), key=Path.is_symlink
    ):  # logs lie beside the file itself
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
                Problem(
                    path,
                    f"no results_{date}.json beside it: the run is unfinished (rescore can read its samples)",
                )
            )
    if not runs and not problems and not is_read:
        problems.append(Problem(folder, "holds no run (no results_*.json)"))
    return runs, problems


def _named(path: Path, seen: set[str]) -> tuple[list[Run], list[Problem]]:
    """The run of a file that was named itself; a BiasError where it can't be read, or is none."""
    if os.path.realpath(path) in seen:
        return [], []
    seen.add(os.path.realpath(path))
    try:
        run = run_of(path)
    except BiasError as error:
        raise BiasError(f"{path}: {error}") from error
    if run is None:
        raise BiasError(f"{path}: not the results of a run (results_*.json)")
    return [run], []


def read(
    paths: Sequence[str | Path], by_task: bool = False
) -> tuple[list[Run], list[Problem]]:
    """All runs under some paths, in the order of the paths, then of the files' names.

    Args:
        paths: Folders (searched to any depth), or the harness's ``results_*.json``.
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
    for name in paths:
        path = expanded(name)
        if not os.path.exists(path):
            raise BiasError(f"{name}: no such file or folder")
        inside, wrong = _under(path, seen) if path.is_dir() else _named(path, seen)
        runs += merged(inside)
        problems += wrong
    if not runs:
        raise BiasError("no run found: " + "; ".join(map(str, problems)))
    return distinguished(merged(runs) if by_task else runs, by_task), problems
