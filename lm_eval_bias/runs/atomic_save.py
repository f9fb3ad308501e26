"""Result files that appear whole or not at all: the harness's tracker writes in place, and goes on where it can't."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock

from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.files import UNFINISHED, why
from lm_eval_bias.harness import running
from lm_eval_bias.runs import sample_logs

_LOCK = ".lock"
_ATTEMPTS = 5


def _lock(folder: Path) -> filelock.BaseFileLock | None:
    """The lock of a run's folder, held; ``None`` where the file system has no locks.

    Raises:
        filelock.Timeout: Another process holds it.
    """
    lock = filelock.FileLock(folder / _LOCK, timeout=0)
    try:
        lock.acquire()
    except NotImplementedError:
        return None
    return lock


def _clean(root: Path) -> None:
    """Remove what was left by processes that were killed while they wrote: nobody holds its locks."""
    for folder in root.glob(f"{UNFINISHED}*"):
        with contextlib.suppress(OSError, filelock.Timeout):
            lock = _lock(folder)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                lock.release()


@contextlib.contextmanager
def _own_folder(root: Path) -> Iterator[Path]:
    """A new folder below the root whose lock is held: another run takes it for a killed one's until then."""
    for attempt in range(_ATTEMPTS):
        folder = Path(tempfile.mkdtemp(dir=root, prefix=UNFINISHED))
        try:
            lock = _lock(folder)
            if lock is None or Path(lock.lock_file).is_file():
                break
        except (filelock.Timeout, FileNotFoundError):
            if attempt == _ATTEMPTS - 1:
                raise
    try:
        yield folder
    finally:
        if lock is not None:
            lock.release()
        shutil.rmtree(folder, ignore_errors=True)


def save(tracker: Any, results: dict[str, Any], samples: dict[str, Any] | None) -> None:
    """Let the harness save a run, and give what it wrote its place once it is seen to be whole, the results file last.

    Args:
        tracker: The harness's ``EvaluationTracker``.
        results: Of the run.
        samples: By task; ``None`` where they aren't to be saved.

    Raises:
        BiasError: Something isn't there as it was meant. What is whole has its place all the same.
    """
    if not tracker.output_path:
        running.save(tracker, results, samples)
        return
    output_path = tracker.output_path
    path = Path(output_path)
    root = path.parent if path.suffix == ".json" else path
    try:
        root.mkdir(parents=True, exist_ok=True)
        _clean(root)
        with _own_folder(root) as folder:
            tracker.output_path = str(folder / path.name if path.suffix == ".json" else folder)
            try:
                running.save(tracker, results, samples)
            finally:
                tracker.output_path = output_path
            placed, problems = _put_in_place(folder, root, results, samples)
    except (OSError, filelock.Timeout) as error:
        raise BiasError(f"--output_path {output_path} cannot be written: {why(error)}") from error
    if problems:
        kept = f"saved: {', '.join(placed)}" if placed else "nothing was saved"
        raise BiasError(
            f"--output_path {output_path}: {'; '.join(problems)}: is the disk full? ({kept}; with --use_cache FILE a "
            "run keeps its answers, and the same command resumes it)"
        )


def _put_in_place(
    folder: Path, root: Path, results: dict[str, Any], samples: dict[str, Any] | None
) -> tuple[list[str], list[str]]:
    """Move what is whole to where it belongs; the names of what is, and of what isn't with the reason."""
    logs = {sample_logs.task_of(file): file for file in folder.rglob("*.jsonl")}
    counts = {} if samples is None else {task: len(samples[task]) for task in results["configs"]}
    checks: list[tuple[str, Path | None, Any]] = [
        (f"samples of {task}", logs.get(task), count) for task, count in counts.items()
    ]
    placed, problems = [], []
    for name, file, content in (*checks, ("results", next(folder.rglob("*.json"), None), results)):
        try:
            problem = "not written" if file is None else _problem(file, content)
            if file is not None and not problem:
                target = root / file.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, target)
        except OSError as error:
            problem = why(error)
        placed += [] if problem else [name]
        problems += [f"{name}: {problem}"] if problem else []
    return placed, problems


def _problem(file: Path, content: int | dict[str, Any]) -> str:
    """How a file differs from what it should hold, so many lines or these results; empty where it doesn't."""
    with file.open("rb+") as written:
        os.fsync(written.fileno())  # where blocks are allocated late, a full disk shows only now
        if isinstance(content, int):
            count = sum(line.endswith(b"\n") for line in written)
            return "" if count == content else f"{count:,} of {content:,} lines"
        try:
            found = json.load(written, parse_constant=str)
        except ValueError as error:
            return f"cut off ({one_line(error)})"
    meant = json.loads(running.as_json(content), parse_constant=str)
    different = [key for key in meant if key not in found or found[key] != meant[key]]
    return f"another {different[0]!r} than the run's" if different else ""
