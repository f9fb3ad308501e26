"""``link``: small stub YAMLs in the installed harness's task folder, so that plain ``lm_eval`` finds our tasks.

Each stub is an absolute ``include:``; nothing that the harness ships is touched. A ledger beside them lists what was
written, so that ``unlink`` removes exactly that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from lm_eval_bias.core import catalog
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import tasks_path, why, write_whole
from lm_eval_bias.harness import internals

FOLDER = "lm_eval_bias_linked"
LEDGER = "ledger.json"
_WITHOUT_ENTRY_POINTS = "0.4.13"  # the last release that doesn't look for tasks in other packages
_HEADER = (
    "# Written by 'lm-eval-bias link'; 'lm-eval-bias link --remove' removes it. If lm-eval-bias was moved or\n"
    "# uninstalled, the file below is gone and this task is not found: link again, or delete this folder.\n"
)


@dataclasses.dataclass(frozen=True)
class LinkState:
    """What is linked.

    Attributes:
        folder: Where the stubs lie.
        stubs: Stub names of the ledger, empty where nothing was linked.
        problem: What is wrong with the link, empty if nothing.
    """

    folder: Path
    stubs: tuple[str, ...] = ()
    problem: str = ""


def stub_text(path: Path) -> str:
    """A stub that includes the YAML at ``path``."""
    return f"{_HEADER}include: {json.dumps(str(path))}\n"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _changed(folder: Path, stubs: Mapping[str, str]) -> list[Path]:
    """Stubs that are there but not as they were written."""
    return [
        folder / name
        for name, digest in stubs.items()
        if (folder / name).is_file() and _digest((folder / name).read_bytes()) != digest
    ]


def _own_files() -> dict[str, Path]:
    """The YAMLs of all known tasks and groups, by name."""
    return {name: entry.path for name, entry in catalog.packaged().items() if entry.path is not None}


@cache
def unnecessary() -> bool:
    """Whether the harness finds the tasks by itself, from our entry point in the group ``lm_eval.tasks``.

    Releases up to 0.4.13 don't; others look there even where they are asked to leave out their own tasks.
    """
    from packaging.version import Version

    if Version(importlib.metadata.version("lm_eval")) <= Version(_WITHOUT_ENTRY_POINTS):
        return False  # known at once: to import its task manager takes seconds
    return set(_own_files()) <= set(internals.task_manager(include_defaults=False).all_tasks)


def state() -> LinkState:
    """What is linked, and whether it still leads here; nothing about a link that is unnecessary is a problem."""
    folder = internals.tasks_folder() / FOLDER
    try:
        target, stubs = _ledger(folder)
        current = LinkState(folder, tuple(sorted(stubs)), _problem(folder, target, stubs))
    except BiasError:
        current = LinkState(folder, ("?",), f"{folder / LEDGER} is damaged: delete the folder, then link again")
    return dataclasses.replace(current, problem="") if current.problem and unnecessary() else current


def _problem(folder: Path, target: str, stubs: Mapping[str, str]) -> str:
    if not stubs:
        leftover = folder.is_dir() and any(folder.iterdir())
        return f"{folder} holds files but no {LEDGER}: delete the folder" if leftover else ""
    again = "run 'lm-eval-bias link' again"
    tasks = str(tasks_path())
    if not Path(target).is_dir():
        return f"links to {target}, which is gone (the package was moved or removed): {again}"
    if target != tasks:
        return f"links to another copy of this package, {target}, not to {tasks}: {again}"
    if set(stubs) != {f"{name}.yaml" for name in _own_files()}:
        return f"links to the tasks of another version: {again}"
    if changed := _changed(folder, stubs):
        return f"{changed[0]} was changed by hand: move it away, then {again}"
    missing = [name for name in stubs if not (folder / name).is_file()]
    return f"{len(missing)} of {len(stubs)} stubs are gone: {again}" if missing else ""


def link() -> LinkState:
    """Write a stub for every task and group, in place of an earlier link.

    Raises:
        BiasError: The harness's task folder cannot be written, or stubs there were changed by hand.
    """
    folder = internals.tasks_folder() / FOLDER
    changed = _changed(folder, _ledger(folder)[1])
    if changed:
        raise BiasError(f"{changed[0]} was changed by hand ({len(changed)} such stubs): move it away, then link again")
    unlink()
    texts = {f"{name}.yaml": stub_text(path) for name, path in _own_files().items()}
    ledger = {"target": str(tasks_path()), "stubs": {name: _digest(text.encode()) for name, text in texts.items()}}
    try:
        folder.mkdir(exist_ok=True)
        ledger_text = json.dumps(ledger, indent=1) + "\n"
        write_whole(folder / LEDGER, ledger_text.encode())  # first: a killed link can be unlinked
        for name, text in texts.items():
            write_whole(folder / name, text.encode())
    except OSError as error:
        with contextlib.suppress(BiasError):
            unlink()  # the stubs that were written before
        with contextlib.suppress(OSError):
            folder.rmdir()
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
        BiasError: The ledger is damaged, or a file cannot be removed.
    """
    folder = internals.tasks_folder() / FOLDER
    stubs = _ledger(folder)[1]
    if not (folder / LEDGER).is_file():
        return 0, []
    changed = _changed(folder, stubs)
    removed = 0
    try:
        for name in stubs:
            path = folder / name
            if path.is_file() and path not in changed:
                path.unlink()
                removed += 1
        if not changed:
            (folder / LEDGER).unlink()
            if not any(folder.iterdir()):
                folder.rmdir()
    except OSError as error:
        raise BiasError(f"{error.filename} cannot be removed: {error.strerror}") from error
    return removed, changed


def _ledger(folder: Path) -> tuple[str, dict[str, str]]:
    """What link wrote down: the tasks folder that the stubs include, and their digests by name; none if it didn't.

    Raises:
        BiasError: The ledger is damaged, or names files elsewhere.
    """
    path = folder / LEDGER
    if not path.is_file():
        return "", {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        target, stubs = str(content["target"]), dict(content["stubs"])
        safe = all(Path(name).name == name for name in stubs)
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        safe = False
    if not safe:
        raise BiasError(f"{path} is damaged: delete the folder {folder} by hand")
    return target, stubs
