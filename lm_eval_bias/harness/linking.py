"""``link``: small stub YAMLs in the installed harness's task folder, so that plain ``lm_eval`` finds our tasks.

Each stub is an absolute ``include:`` below a header by which it is known as ours; nothing else there is touched.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import why, write_whole
from lm_eval_bias.harness import internals

FOLDER = "lm_eval_bias_linked"
_LEDGER = "ledger.json"  # beside the stubs, as releases up to 0.3.0 wrote it
_WITHOUT_ENTRY_POINTS = "0.4.13"  # the last release that doesn't look for tasks in other packages
_HEADER = (
    "# Written by 'lm-eval-bias link'; 'lm-eval-bias link --remove' removes it. If lm-eval-bias was moved or\n"
    "# uninstalled, the file below is gone and this task is not found: link again, or delete this folder.\n"
)
_STUB = re.compile(re.escape(_HEADER) + r'include: (".*")\n')


@dataclasses.dataclass(frozen=True)
class LinkState:
    """What is linked.

    Attributes:
        folder: Where the stubs lie.
        stubs: Their names, empty where nothing was linked.
        problem: What is wrong with the link, empty if nothing.
    """

    folder: Path
    stubs: tuple[str, ...] = ()
    problem: str = ""


def _own_files() -> dict[str, Path]:
    """The YAMLs of all known tasks and groups, by name."""
    return {name: entry.path for name, entry in catalog.packaged().items() if entry.path is not None}


def _read(folder: Path) -> tuple[dict[str, str], list[Path]]:
    """What the stubs in a folder include, by file name, and the files there that only have the name of one."""
    texts = {path.name: path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("*.yaml"))}
    stubs = {name: json.loads(match[1]) for name, text in texts.items() if (match := _STUB.fullmatch(text))}
    names = {f"{name}.yaml" for name in _own_files()}
    return stubs, [folder / name for name in texts if name in names and name not in stubs]


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
    found = {path.parent for name, path in _own_files().items() if name in found_by_harness()}
    return [str(own) for own in dict.fromkeys(one.folder for one in registry.benchmarks()) if own not in found]


def state() -> LinkState:
    """What is linked, and whether it still leads here; nothing about a link that is unnecessary is a problem."""
    folder = internals.tasks_folder() / FOLDER
    stubs, changed = _read(folder)
    problem = f"{changed[0]} was changed by hand: move it away" if changed else _problem(stubs)
    if problem and not missing_folders():
        problem = ""
    return LinkState(folder, tuple(stubs), f"{problem}, then run 'lm-eval-bias link' again" if problem else "")


def _problem(stubs: Mapping[str, str]) -> str:
    """Why stubs don't lead to the tasks of this package; empty where they do, or where there are none."""
    own = {f"{name}.yaml": str(path) for name, path in _own_files().items()}
    for name, path in stubs.items():
        if not Path(path).is_file():
            return f"it leads to {path}, which is gone (the package was moved or removed)"
        if path != own.get(name):
            return f"it leads to another copy of this package, {path}"
    missing = len(own.keys() - stubs.keys())
    return f"{missing} of {len(own)} tasks have no stub" if stubs and missing else ""


def link() -> LinkState:
    """Write a stub for every task and group, in place of an earlier link.

    Raises:
        BiasError: The harness's task folder cannot be written, or stubs there were changed by hand.
    """
    folder = internals.tasks_folder() / FOLDER
    if changed := _read(folder)[1]:
        raise BiasError(f"{changed[0]} was changed by hand ({len(changed)} such stubs): move it away, then link again")
    unlink()
    try:
        folder.mkdir(exist_ok=True)
        for name, path in _own_files().items():
            write_whole(folder / f"{name}.yaml", f"{_HEADER}include: {json.dumps(str(path))}\n".encode())
    except OSError as error:
        with contextlib.suppress(BiasError):
            unlink()  # the stubs that were written before
        raise BiasError(
            f"{folder} cannot be written ({why(error)}): use 'lm-eval-bias run', or "
            'lm_eval --include_path "$(lm-eval-bias path)"'
        ) from error
    return state()


def unlink() -> tuple[int, list[Path]]:
    """Remove what :func:`link` wrote.

    Returns:
        How many stubs were removed, and those left because someone changed them.

    Raises:
        BiasError: A file cannot be removed.
    """
    folder = internals.tasks_folder() / FOLDER
    stubs, changed = _read(folder)
    try:
        for name in stubs:
            (folder / name).unlink()
        if folder.is_dir():
            (folder / _LEDGER).unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()
    except OSError as error:
        raise BiasError(f"{error.filename} cannot be removed: {error.strerror}") from error
    return len(stubs), changed
