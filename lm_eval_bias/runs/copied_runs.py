"""One run that lies in several places, by links or as copies: it counts once."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

from lm_eval_bias.runs import run_file
from lm_eval_bias.runs.run_data import Run


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


class Known:
    """Files and runs that were read before."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._runs: dict[tuple[str, str], list[Run]] = defaultdict(list)

    def has(self, path: Path) -> bool:
        """Whether a file was read before, by whatever link."""
        return os.path.realpath(path) in self._files

    def add(self, path: Path) -> None:
        """Take note of a file that was read."""
        self._files.add(os.path.realpath(path))

    def original(self, run: Run) -> Run | None:
        """The run that was read before and is this one; ``None`` where none is, and this one is known from now on."""
        alike = self._runs[run.name, _scores(run)]
        for one in alike:
            if _is_copy(one, run):
                return one
        alike.append(run)
        return None
