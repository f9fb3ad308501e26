"""Saved answers of a run, whatever file they come from, and the readers that find them.

A reader is a pair of functions: does this file look like mine, and what does it hold. Benchmarks bring further ones
(:meth:`lm_eval_bias.Benchmark.readers`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from lm_eval_bias.core import registry
from lm_eval_bias.core.answers import NotConcerned, NotOurs, Reader, Saved, SavedPart, SavedSample
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded, under
from lm_eval_bias.runs import run_discovery, sample_logs

T = TypeVar("T")


SAMPLE_LOGS = Reader(
    "samples of a harness run (--log_samples)",
    sample_logs.matches,
    lambda path, language: sample_logs.samples(path),
)


def _files(paths: Sequence[str], readers: Sequence[Reader]) -> dict[Path, tuple[Reader, bool]]:
    """The files to read, in a fixed order, and whether each was named itself: folders are searched to any depth.

    Raises:
        BiasError: A path doesn't exist, or holds nothing that a reader knows.
    """
    files: dict[Path, tuple[Reader, bool]] = {}
    for name in paths:
        path = expanded(name)
        if not os.path.exists(path):
            raise BiasError(f"{name}: no such file or folder")
        candidates = under(path) if path.is_dir() else [path]
        hits = {p: (r, not path.is_dir()) for p in candidates for r in readers if r.matches(p)}
        if not hits:
            formats = "; ".join(reader.name for reader in readers)
            complaint = "holds no file" if path.is_dir() else "is not a file"
            advice = "name its folder" if path.suffix == ".json" else "run again with --log_samples"
            raise BiasError(f"{name} {complaint} that can be rescored (known: {formats}); {advice}")
        real = {os.path.realpath(own): own for own in files}
        files.update({real.get(os.path.realpath(own), own): hit for own, hit in hits.items()})
    return files


def gather(
    paths: list[str],
    take: Callable[[Iterator[SavedSample]], dict[SavedPart, T]],
    language: str | None = None,
    readers: Sequence[Reader] | None = None,
) -> list[T]:
    """What is made of everything saved under the paths, one file after another.

    Other tasks' logs in a folder are passed over with a note, and so is what isn't concerned, wherever it lies.

    Args:
        paths: Files or folders.
        take: Makes of a file's samples what is kept of each of its parts.
        language: The language of files that don't say it themselves.
        readers: Which formats to look for.

    Raises:
        BiasError: A file that cannot be read, another task's if it was named itself, or nothing of ours at all.
    """
    parts: dict[SavedPart, T] = {}
    foreign: list[NotOurs] = []
    any_ours = False
    if readers is None:
        readers = [SAMPLE_LOGS, *(reader for benchmark in registry.benchmarks() for reader in benchmark.readers())]
    files = _files(paths, readers)
    for path, (reader, explicit) in files.items():
        try:
            # the two files of a pair are one part, whichever of them was found first
            for part, result in take(reader.samples(path, language)).items():
                parts.setdefault(part, result)
            any_ours = True
        except NotOurs as error:
            if explicit and not isinstance(error, NotConcerned):
                raise
            foreign.append(error)
    if not any_ours:
        raise next((error for error in foreign if isinstance(error, NotConcerned)), foreign[0])
    logs = [part.path for part in parts if files.get(part.path, (None, False))[0] is SAMPLE_LOGS]
    for problem in run_discovery.problems_beside(logs):
        print(f"lm-eval-bias: ignored: {problem}", file=sys.stderr)
    for passed_over in foreign:
        print(f"lm-eval-bias: skipped: {passed_over}", file=sys.stderr)
    return list(parts.values())


def read(paths: list[str], readers: Sequence[Reader] | None = None) -> list[Saved]:
    """Everything saved under the paths, whole; see :func:`gather`."""
    return gather(paths, sample_logs.collect, readers=readers)
