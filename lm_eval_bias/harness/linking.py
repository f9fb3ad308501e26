"""``link``: small stub YAMLs in the installed harness's task folder, so that plain ``lm_eval`` finds our tasks.

Each stub is an absolute ``include:`` below a header that marks it as ours; nothing else there is touched.
"""

from __future__ import annotations

import contextlib
import json
import sys
from functools import cache
from pathlib import Path

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import folder_of
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import why, write_whole
from lm_eval_bias.harness import internals

FOLDER = "lm_eval_bias_linked"
_HEADER = (
    "# Written by 'lm-eval-bias link'; 'lm-eval-bias link --remove' removes it. If lm-eval-bias was moved or\n"
    "# uninstalled, the file below is gone and this task is not found: link again, or delete this folder.\n"
)


def folder() -> Path:
    """Return the folder of stubs in the installed harness."""
    return internals.tasks_folder() / FOLDER


def outside() -> str:
    """Explain that the harness is installed outside of this environment; empty if it isn't."""
    place = folder().resolve()
    ours = Path(__file__).resolve().parents[2]
    if place.is_relative_to(Path(sys.prefix).resolve()) or place.is_relative_to(ours):
        return ""
    return (
        f"the lm_eval that Python finds lies in {place.parents[1]}, outside of this environment ({sys.prefix}): link "
        "--outside writes there all the same; 'lm-eval-bias run' needs no link"
    )


def _texts() -> dict[str, str]:
    """Read the YAMLs in the folder of stubs, by file name."""
    return {
        path.name: path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder().glob("*.yaml"))
    }


def stubs() -> dict[str, str]:
    """Read the stubs that were written, by file name."""
    return {name: text for name, text in _texts().items() if text.startswith(_HEADER)}


def _wanted() -> dict[str, str]:
    """Write stubs that lead to this package's tasks and groups, as texts by file name."""
    return {
        f"{name}.yaml": f"{_HEADER}include: {json.dumps(str(entry.path))}\n"
        for name, entry in catalog.packaged().items()
    }


@cache
def found_by_harness() -> frozenset[str]:
    """Return the tasks that the harness finds through entry points in ``lm_eval.tasks``.

    Release 0.4.13 finds none; later ones look there even where they are asked to leave out their own tasks.
    """
    return frozenset(internals.task_manager().all_tasks)


def missing_folders() -> list[str]:
    """List the benchmarks' folders that the harness doesn't find by itself."""
    known = {
        entry.path.parent
        for name, entry in catalog.packaged().items()
        if name in found_by_harness()
    }
    folders = dict.fromkeys(map(folder_of, registry.benchmarks()))
    return [
        str(path) for path in folders if path not in known and any(path.glob("*.yaml"))
    ]


def stale_links() -> str:
    """Explain why the stubs don't lead to this package's tasks; empty if they do, or aren't needed."""
    written = stubs()
    wanted = _wanted()
    if not written or written == wanted or not missing_folders():
        return ""
    for name, text in written.items():
        if text != wanted.get(name):
            return f"{folder() / name} leads to another file than this package's: run 'lm-eval-bias link' again"
    return "there are tasks without a stub: run 'lm-eval-bias link' again"


def link() -> int:
    """Write a stub for every task and group, replacing earlier ones; return their number.

    Raises:
        BiasError: The harness's task folder can't be written, or a stub was changed by hand.
    """
    wanted = _wanted()
    there = _texts()
    for name, text in there.items():
        if name in wanted and not text.startswith(_HEADER):
            raise BiasError(
                f"{folder() / name} was changed by hand: move it away, then link again"
            )
    # in place of those that are there: other processes may link at the same time
    try:
        for name, text in wanted.items():
            write_whole(folder() / name, text.encode())
        for name, text in there.items():
            if name not in wanted and text.startswith(_HEADER):
                (folder() / name).unlink(missing_ok=True)
    except OSError as error:
        with contextlib.suppress(BiasError):
            unlink()  # the stubs that were written before
        raise BiasError(
            f"{folder()} cannot be written ({why(error)}): use 'lm-eval-bias run', or "
            'lm_eval --include_path "$(lm-eval-bias path)"'
        ) from error
    return len(wanted)


def unlink() -> int:
    """Remove the stubs that :func:`link` wrote; return their number.

    Raises:
        BiasError: A file cannot be removed.
    """
    written = stubs()
    try:
        for name in written:
            (folder() / name).unlink(missing_ok=True)
        if folder().is_dir() and not any(folder().iterdir()):
            folder().rmdir()
    except OSError as error:
        raise BiasError(
            f"{error.filename} cannot be removed: {error.strerror}"
        ) from error
    return len(written)
