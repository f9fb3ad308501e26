"""Finds and reads runs under paths; what can't be read is named, and the rest still counts."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded, read_text, under
from lm_eval_bias.runs import harness_results, run_file, sample_logs
from lm_eval_bias.runs.run_data import Problem, Run


def _json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        problem = getattr(error, "msg", None) or getattr(error, "reason", None) or "nested too deeply"
        raise BiasError(f"truncated or damaged: no JSON ({problem})") from error
    except OSError as error:
        raise BiasError(f"cannot be read: {error.strerror}") from error


def _run_of(path: Path) -> Run | None:
    """The file's run; ``None`` if it isn't meant to be one."""
    content = _json(path)
    if run_file.matches(content):
        return run_file.read(path, content)
    if harness_results.matches(path):
        return harness_results.read(path, content)
    return None


def _under(folder: Path) -> tuple[list[Run], list[Problem]]:
    runs: list[Run] = []
    problems: list[Problem] = []
    dates = set()
    for path in under(folder, "*.json"):
        try:
            run = _run_of(path)
            if run is None:
                continue
            runs.append(run)
        except BiasError as error:
            problems.append(Problem(path, str(error)))
        dates.add((path.parent, path.stem.removeprefix("results_")))
    for path in (p for p in under(folder, "samples_*.jsonl") if sample_logs.matches(p)):
        date = path.stem.rpartition("_")[2]
        if (path.parent, date) not in dates:
            problems.append(Problem(path, f"no results_{date}.json beside it: an unfinished run (rescore can read it)"))
    return runs, problems


SAME = ("model", "model_args", "model_revision", "dtype", "chat_template", "system_instruction", "lm_eval", "torch")


def _merged(runs: Sequence[Run]) -> list[Run]:
    """Runs of one model under one path whose tasks differ, as one run; what differs between them is listed."""
    merged: list[Run] = []
    alike: dict[str, list[int]] = {}  # places in it, by model
    for run in runs:
        places = alike.setdefault(repr([run.name, *(run.provenance.get(key) for key in SAME)]), [])
        for i in places:
            earlier = merged[i]
            if not set(run.tasks) & set(earlier.tasks):
                provenance = {
                    key: _joined(earlier.provenance.get(key), run.provenance.get(key))
                    for key in {**earlier.provenance, **run.provenance}
                }
                merged[i] = replace(
                    earlier,
                    provenance=provenance,
                    command=f"{earlier.command}\n{run.command}",
                    tasks={**earlier.tasks, **run.tasks},
                )
                break
        else:
            places.append(len(merged))
            merged.append(run)
    return merged


def _joined(first: Any, second: Any) -> Any:
    if first == second:
        return first
    parts = [*str("–" if first is None else first).split("; "), str("–" if second is None else second)]
    return "; ".join(dict.fromkeys(parts))


def _distinguished(runs: Sequence[Run]) -> list[Run]:
    """The runs with names that tell them apart."""
    often = Counter(run.name for run in runs)
    number: Counter[str] = Counter()
    distinguished = []
    for run in runs:
        number[run.name] += 1
        distinguished.append(replace(run, name=f"{run.name} ({number[run.name]})") if often[run.name] > 1 else run)
    return distinguished


def read(paths: Sequence[str | Path]) -> tuple[list[Run], list[Problem]]:
    """All runs under some paths, in the order of the paths, then of the files' names.

    Args:
        paths: Folders (searched to any depth), the harness's ``results_*.json``, or run files of this package.

    Returns:
        The runs, their names made unique, and what had to be passed over.

    Raises:
        BiasError: A path doesn't exist, a file named itself can't be read, or no run was found at all.
    """
    runs: list[Run] = []
    problems: list[Problem] = []
    for name in paths:
        path = expanded(name)
        if not os.path.exists(path):
            raise BiasError(f"{name}: no such file or folder")
        if path.is_dir():
            inside, wrong = _under(path)
            if not inside and not wrong:
                problems.append(Problem(path, "holds no run (no results_*.json, no run file)"))
            runs += _merged(inside)
            problems += wrong
            continue
        try:
            run = _run_of(path)
        except BiasError as error:
            raise BiasError(f"{path}: {error}") from error
        if run is None:
            raise BiasError(f"{path}: no results of a harness run (results_*.json) and no run file of this package")
        runs.append(run)
    if not runs:
        raise BiasError("no run found: " + "; ".join(map(str, problems)))
    return _distinguished(runs), problems
