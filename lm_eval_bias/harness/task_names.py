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

_KEY = re.compile(rb"""\s*(?:-\s+)*["']?([\w.-]+)["']?\s*:(?:\s|$)""")
_NAMING_KEYS = (b"task", b"group", b"tag")


def unknown(names: Sequence[str], folders: Iterable[Path]) -> list[str]:
    """Those of some names, unknown to this package, that the harness can't know either: no YAML names anything so.

    Patterns, paths of YAMLs and folders are left to the harness.

    Args:
        names: Of tasks, groups or tags.
        folders: What ``--include_path`` names, beside the tasks of the harness and of other packages.
    """
    left = {name for name in names if not (re.search(r"[*?\[]", name) or os.path.isdir(name))}
    left -= {name for name in left if name.endswith(".yaml") and os.path.isfile(name)}
    encoded = {name: name.encode("utf-8", "backslashreplace") for name in left}
    for text in _texts([*folders, *_packages(), internals.tasks_folder()]):
        encoded = {name: raw for name, raw in encoded.items() if raw not in text or not _may_name(raw, text)}
        if not encoded:
            break
    return [name for name in names if name in encoded]


def _may_name(name: bytes, text: bytes) -> bool:
    """Whether a YAML may call a task, group or tag so: it stands under no other key, and in no sentence or comment."""
    for match in re.finditer(rb"(?<![\w/\\.-])" + re.escape(name) + rb"(?![\w/\\.-])", text):
        start = text.rfind(b"\n", 0, match.start()) + 1
        before, after = text[start : match.start()], text[match.end() :].partition(b"\n")[0]
        key = _KEY.match(before + match[0] + after)
        if re.search(rb"(^|\s)#", before):
            continue
        if key is not None and key[1] in _NAMING_KEYS:
            return True
        if key is None and not (re.search(rb"\w[ \t]+$", before) or re.match(rb"[ \t]+\w", after)):
            return True
    return False


def _packages() -> Iterator[Path]:
    """The folders of tasks that other packages name to the harness."""
    for point in importlib.metadata.entry_points(group="lm_eval.tasks"):
        spec = None
        if not point.value.startswith("lm_eval_bias."):
            with contextlib.suppress(ImportError):
                spec = importlib.util.find_spec(point.value)
        yield from map(Path, (spec.submodule_search_locations or ()) if spec is not None else ())


def _texts(folders: Iterable[Path]) -> Iterator[bytes]:
    """The YAMLs, and the base files that they include: the harness has some without an ending (``_template``)."""
    for folder in folders:
        for parent, _, files in os.walk(folder):
            for file in files:
                if "yaml" in file or "yml" in file or "." not in file:
                    with contextlib.suppress(OSError):  # the harness can't read it either
                        yield Path(parent, file).read_bytes()
