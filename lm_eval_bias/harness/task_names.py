"""Which names no task can have, found without the harness's index, whose making takes seconds."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lm_eval_bias.harness import internals


def unknown(names: Sequence[str], folders: Iterable[Path]) -> list[str]:
    """Those of some names, unknown to this package, that the harness can't know either: no YAML has them in it.

    Patterns, paths of YAMLs and folders are left to the harness.

    Args:
        names: Of tasks, groups or tags.
        folders: What ``--include_path`` names, beside the tasks of the harness and of other packages.
    """
    left = {name for name in names if not (re.search(r"[*?\[]", name) or os.path.isdir(name))}
    left -= {name for name in left if name.endswith(".yaml") and os.path.isfile(name)}
    encoded = {name: name.encode("utf-8", "backslashreplace") for name in left}
    for text in _texts([*folders, *_packages(), internals.tasks_folder()]):
        encoded = {name: raw for name, raw in encoded.items() if raw not in text or not _is_word(raw, text)}
        if not encoded:
            break
    return [name for name in names if name in encoded]


def _is_word(name: bytes, text: bytes) -> bool:
    """Whether a name stands alone in a text, as no part of another name or of a path."""
    return re.search(rb"(?<![\w/\\.-])" + re.escape(name) + rb"(?![\w/\\.-])", text) is not None


def _packages() -> Iterator[Path]:
    """The folders of tasks that other packages name to the harness."""
    for point in importlib.metadata.entry_points(group="lm_eval.tasks"):
        spec = None
        if not point.value.startswith("lm_eval_bias."):
            with contextlib.suppress(ImportError):
                spec = importlib.util.find_spec(point.value)
        yield from map(Path, (spec.submodule_search_locations or ()) if spec is not None else ())


def _texts(folders: Iterable[Path]) -> Iterator[bytes]:
    """The YAMLs, and the base files that they include."""
    for folder in folders:
        for parent, _, files in os.walk(folder):
            for file in files:
                if file.endswith(("yaml", "yml")):
                    with contextlib.suppress(OSError):  # the harness can't read it either
                        yield Path(parent, file).read_bytes()
