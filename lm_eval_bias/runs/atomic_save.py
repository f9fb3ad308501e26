"""Result files that appear whole or not at all: the harness's tracker writes in place, one file after another."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock

from lm_eval_bias.errors import BiasError

_PREFIX = ".unfinished-"
_LOCK = ".lock"
_YOUNG = 60.0  # seconds in which another run's folder may not have its lock yet


def _clean(root: Path) -> None:
    """Remove what runs left that were killed while they wrote."""
    for folder in root.glob(f"{_PREFIX}*"):
        try:
            if time.time() - folder.stat().st_mtime > _YOUNG:
                with filelock.FileLock(folder / _LOCK, timeout=0):
                    shutil.rmtree(folder, ignore_errors=True)
        except (OSError, filelock.Timeout):
            continue  # another run's, which is writing


@contextlib.contextmanager
def whole(tracker: Any) -> Iterator[None]:
    """Move what the tracker writes meanwhile to its output path once all of it is there, the results file last.

    Args:
        tracker: The harness's ``EvaluationTracker``.

    Raises:
        BiasError: The results could not be written.
    """
    if not tracker.output_path:
        yield
        return
    output_path = tracker.output_path
    path = Path(output_path)
    root = path.parent if path.suffix == ".json" else path
    try:
        root.mkdir(parents=True, exist_ok=True)
        _clean(root)
        folder = Path(tempfile.mkdtemp(dir=root, prefix=_PREFIX))
    except OSError as error:
        raise BiasError(f"--output_path {output_path} cannot be written: {error.strerror}") from error
    lock = filelock.FileLock(folder / _LOCK)
    lock.acquire()
    tracker.output_path = str(folder / path.name if path.suffix == ".json" else folder)
    try:
        yield
        files = [file for file in folder.rglob("*") if file.is_file() and file.name != _LOCK]
        if not any(file.suffix == ".json" for file in files):
            raise BiasError(f"--output_path {output_path}: the harness could not write the results: is the disk full?")
        for file in sorted(files, key=lambda file: (file.suffix == ".json", file)):
            target = root / file.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, target)
    except OSError as error:
        raise BiasError(f"--output_path {output_path} cannot be written: {error.strerror}") from error
    finally:
        tracker.output_path = output_path
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)
