"""Several files of one model: one run where their tasks differ and nothing else does, told apart where not."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lm_eval_bias.runs.run_data import Run, readable

# what changes numbers; the number of items (limit) is told by each task
SAME = (
    "model", "model_args", "model_revision", "dtype", "chat_template", "system_instruction", "gen_kwargs", "seeds",
    "lm-eval-bias", "lm_eval", "transformers", "torch",
)  # fmt: skip
_FILES = "model_files"  # hashed by runs of lm-eval-bias alone, of local checkpoints
_LONGEST = 60


def _fact(run: Run, key: str) -> Any:
    value = run.provenance.get(key) or None
    # builds of one release for one kind of device or another: 2.13.0+cpu
    return value.partition("+")[0] if key == "torch" and isinstance(value, str) else value


def _differing(one: Run, other: Run) -> list[str]:
    """Which of the facts that change numbers are others, or known of one run alone; a checkpoint's files of both."""
    files = [_fact(run, _FILES) for run in (one, other)]
    return [key for key in SAME if _fact(one, key) != _fact(other, key)] + [_FILES] * (
        all(files) and files[0] != files[1]
    )


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
    parts = [*str("–" if first is None else first).split("; "), str("–" if second is None else second)]
    return "; ".join(dict.fromkeys(parts))


def _places(runs: Sequence[Run]) -> list[str]:
    """Where each run lies, as far as that tells them apart: folders, else files; numbers where nothing does."""
    paths = [os.path.abspath(run.path).split(os.sep) for run in runs]
    folders = [path[:-1] for path in paths]
    if len(set(map(tuple, folders))) < len(folders):
        folders = paths
    if len(set(map(tuple, folders))) < len(folders):
        return [str(number) for number in range(1, len(runs) + 1)]
    first = len(os.path.commonprefix(folders))
    last = len(os.path.commonprefix([folder[first:][::-1] for folder in folders]))
    shown = [os.sep.join(folder[first : len(folder) - last]) for folder in folders]
    return [place or os.sep.join(folder[-1:]) for place, folder in zip(shown, folders, strict=True)]


def _difference(run: Run, first: Run) -> str:
    """In what a run differs from the first of its model, in words."""
    parts = []
    for key in (*SAME, _FILES, "limit"):
        values = [_fact(one, key) for one in (run, first)]
        if values[0] != values[1]:
            here, there = (readable(value)[:_LONGEST] for value in values)
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
    places: dict[str, list[str]] = {}
    for name, group in alike.items():
        tasks = Counter(task for run in group for task in run.tasks)
        if len(group) > 1 and not (repeatable and max(tasks.values()) == 1):
            places[name] = _places(group)
    result: list[Run] = []
    number: Counter[str] = Counter()
    for run in runs:
        if run.name in places:
            (first, *_), own = places[run.name], number[run.name]
            number[run.name] += 1
            differs = f"{run.name} ({first}) in {_difference(run, alike[run.name][0])}" if own else ""
            run = replace(run, name=f"{run.name} ({places[run.name][own]})", differs=differs, model=run.name)
        result.append(run)
    return result
