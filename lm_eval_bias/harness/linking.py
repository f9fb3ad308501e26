"""``link``: small stub YAMLs in the installed harness's task folder, so that plain ``lm_eval`` finds our tasks.

Each stub is an absolute ``include:``; nothing that the harness ships is touched. A ledger beside them lists what was
written, so that ``unlink`` removes exactly that.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from lm_eval_bias import catalog
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import write_whole
from lm_eval_bias.harness import internals, versions
from lm_eval_bias.paths import tasks_path

FOLDER = "lm_eval_bias_linked"
LEDGER = "ledger.json"
_WITHOUT_ENTRY_POINTS = "0.4.13"  # the last release that doesn't look for tasks in other packages
_HEADER = (
    "# Written by 'lm-eval-bias link'; 'lm-eval-bias unlink' removes it. If lm-eval-bias was moved or uninstalled,\n"
    "# the file below is gone and this task is not found: link again, or delete this folder.\n"
)


@dataclasses.dataclass(frozen=True)
class State:
    """What is linked.

    Attributes:
        folder: Where the stubs lie.
        stubs: Stub names of the ledger.
        target: The tasks folder that they include.
        problem: What is wrong with the link, empty if nothing.
    """

    folder: Path
    stubs: tuple[str, ...]
    target: str
    problem: str

    @property
    def linked(self) -> bool:
        """Whether stubs were written at all."""
        return bool(self.stubs)


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


@cache
def unnecessary() -> bool:
    """Whether the harness finds the tasks by itself, from our entry point in the group ``lm_eval.tasks``.

    Releases up to 0.4.13 don't; others look there even where they are asked to leave out their own tasks.
    """
    if versions.harness_is_at_most(_WITHOUT_ENTRY_POINTS):
        return False  # known at once: to import its task manager takes seconds
    return set(catalog.packaged()) <= set(internals.task_manager(include_defaults=False).all_tasks)


def state() -> State:
    """What is linked, and whether it still leads here; nothing about a link that is unnecessary is a problem."""
    found = _state()
    return dataclasses.replace(found, problem="") if found.problem and unnecessary() else found


def _state() -> State:
    folder = internals.tasks_folder() / FOLDER
    try:
        ledger = json.loads((folder / LEDGER).read_text(encoding="utf-8"))
        stubs, target = tuple(sorted(ledger["stubs"])), str(ledger["target"])
        changed = _changed(folder, ledger["stubs"])
    except FileNotFoundError:
        leftover = folder.is_dir() and any(folder.iterdir())
        return State(folder, (), "", f"{folder} holds files but no {LEDGER}: delete the folder" if leftover else "")
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return State(folder, ("?",), "", f"{folder / LEDGER} is damaged: delete the folder, then link again")
    here = str(tasks_path())
    problem = ""
    if not Path(target).is_dir():
        problem = f"links to {target}, which is gone (package moved or removed): run 'lm-eval-bias link' again"
    elif target != here:
        problem = f"links to another copy of this package, {target}, not to {here}: run 'lm-eval-bias link' again"
    elif set(stubs) != {f"{name}.yaml" for name in catalog.packaged()}:
        problem = "links another version's tasks: run 'lm-eval-bias link' again"
    elif changed:
        problem = f"{changed[0]} was changed by hand: move it away, then run 'lm-eval-bias link' again"
    else:
        gone = [name for name in stubs if not (folder / name).is_file()]
        if gone:
            problem = f"{len(gone)} of {len(stubs)} stubs are gone: run 'lm-eval-bias link' again"
    return State(folder, stubs, target, problem)


def link() -> State:
    """Write a stub for every task and group, in place of an earlier link.

    Raises:
        BiasError: The harness's task folder cannot be written, or stubs there were changed by hand.
    """
    folder = internals.tasks_folder() / FOLDER
    kept = _changed(folder, _ledger(folder) or {})
    if kept:
        raise BiasError(f"{kept[0]} was changed by hand ({len(kept)} such stubs): move it away, then link again")
    unlink()
    texts = {f"{name}.yaml": stub_text(entry.path) for name, entry in catalog.packaged().items()}
    ledger = {"target": str(tasks_path()), "stubs": {name: _digest(text.encode()) for name, text in texts.items()}}
    try:
        folder.mkdir(exist_ok=True)
        ledger_text = json.dumps(ledger, indent=1) + "\n"
        write_whole(folder / LEDGER, ledger_text.encode())  # first: a killed link can be unlinked
        for name, text in texts.items():
            write_whole(folder / name, text.encode())
    except OSError as error:
        raise BiasError(
            f"{folder} cannot be written ({error.strerror}): use 'lm-eval-bias run', or "
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
    stubs = _ledger(folder)
    if stubs is None:
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


def _ledger(folder: Path) -> dict[str, str] | None:
    """Stub names and digests that link wrote down; ``None`` if it wrote nothing.

    Raises:
        BiasError: The ledger is damaged, or names files elsewhere.
    """
    path = folder / LEDGER
    if not path.is_file():
        return None
    try:
        stubs = dict(json.loads(path.read_text(encoding="utf-8"))["stubs"])
        safe = all(Path(name).name == name for name in stubs)
    except (ValueError, KeyError, TypeError):
        safe = False
    if not safe:
        raise BiasError(f"{path} is damaged: delete the folder {folder} by hand")
    return stubs
