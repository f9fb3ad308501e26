"""``link``: small stub YAMLs in the installed harness's task folder, so that plain ``lm_eval`` finds our tasks.

Each stub is an absolute ``include:`` below a header by which it is known as ours; nothing else there is touched.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
from functools import cache
from pathlib import Path

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import folder_of
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import why, write_whole
from lm_eval_bias.harness import internals

FOLDER = "lm_eval_bias_linked"
_WITHOUT_ENTRY_POINTS = (
    "0.4.13"  # the last release that doesn't look for tasks in other packages
)
_HEADER = (
    "# Written by 'lm-eval-bias link'; 'lm-eval-bias link --remove' removes it. If lm-eval-bias was moved or\n"
    "# uninstalled, the file below is gone and this task is not found: link again, or delete this folder.\n"
)


def folder() -> Path:
    """The folder of stubs in the installed harness."""
    return internals.tasks_folder() / FOLDER


def stubs() -> dict[str, str]:
    """The texts of the stubs that were written, by file name."""
    texts = {
        path.name: path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder().glob("*.yaml"))
    }
    return {name: text for name, text in texts.items() if text.startswith(_HEADER)}


def _own_files() -> dict[str, Path]:
    """The YAMLs of all known tasks and groups, by name."""
    return {
        name: entry.path
        for name, entry in catalog.packaged().items()
        if entry.path is not None
    }


def _wanted() -> dict[str, str]:
    """The texts of stubs that lead here, by file name."""
    own = _own_files()
    return {
        f"{name}.yaml": f"{_HEADER}include: {json.dumps(str(path))}\n"
        for name, path in own.items()
    }


@cache
def found_by_harness() -> frozenset[str]:
    """The tasks of other packages that the harness finds by itself, from entry points in ``lm_eval.tasks``.

    Releases up to 0.4.13 find none; others look there even where they are asked to leave out their own tasks.
    """
    from packaging.version import Version

    if Version(importlib.metadata.version("lm_eval")) <= Version(_WITHOUT_ENTRY_POINTS):
        return frozenset()
    return frozenset(internals.task_manager(include_defaults=False).all_tasks)


def missing_folders() -> list[str]:
    """The benchmarks' folders that the harness doesn't find by itself."""
    found = {
        path.parent for name, path in _own_files().items() if name in found_by_harness()
    }
    folders = dict.fromkeys(map(folder_of, registry.benchmarks()))
    return [str(own) for own in folders if own not in found and any(own.glob("*.yaml"))]


def problem() -> str:
    """Why stubs don't lead to the tasks of this package; empty where they do, or aren't there or needed."""
    written, wanted = stubs(), _wanted()
    if not written or written == wanted or not missing_folders():
        return ""
    astray = next(
        (name for name, text in written.items() if text != wanted.get(name)), ""
    )
    text = (
        f"{folder() / astray} leads to another file than this package's"
        if astray
        else "there are tasks without a stub"
    )
    return f"{text}: run 'lm-eval-bias link' again"


def link() -> int:
    """Write a stub for every task and group, in place of an earlier link; returns how many.

    Raises:
        BiasError: The harness's task folder cannot be written, or holds another file of that name.
    """
    written, wanted = stubs(), _wanted()
    if foreign := [
        path
        for name in wanted
        if name not in written and (path := folder() / name).exists()
    ]:
        raise BiasError(
            f"{foreign[0]} was changed by hand: move it away, then link again"
        )
    unlink()
    try:
        folder().mkdir(exist_ok=True)
        for name, text in wanted.items():
            write_whole(folder() / name, text.encode())
    except OSError as error:
        with contextlib.suppress(BiasError):
            unlink()  # the stubs that were written before
        raise BiasError(
            f"{folder()} cannot be written ({why(error)}): use 'lm-eval-bias run', or "
            'lm_eval --include_path "$(lm-eval-bias path)"'
        ) from error
    return len(wanted)


def unlink() -> int:
    """Remove what :func:`link` wrote; returns how many stubs that were.

    Raises:
        BiasError: A file cannot be removed.
    """
    written = stubs()
    try:
        for name in written:
            (folder() / name).unlink()
        if folder().is_dir() and not any(folder().iterdir()):
            folder().rmdir()
    except OSError as error:
        raise BiasError(
            f"{error.filename} cannot be removed: {error.strerror}"
        ) from error
    return len(written)
