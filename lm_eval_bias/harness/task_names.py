"""Which names no task can have, found without the harness's index, whose making takes seconds."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lm_eval_bias.files import read_bytes
from lm_eval_bias.harness import internals

_KEY = re.compile(rb"""\s*(?:-\s+)*["']?([\w.-]+)["']?\s*:(?:\s|$)""")
_NAMING_KEYS = (b"task", b"group", b"tag")
_ANY = rb"""[^\s,'"\[\]{}#]"""  # what a wildcard stands for: no name in a YAML goes beyond that
_WILDCARD = re.compile(r"\[.*\]|[*?\[]", re.DOTALL)


def unknown(names: Sequence[str], folders: Iterable[Path]) -> list[str]:
    """Those of some names, unknown to this package, that the harness can't know either: no YAML names anything so.

    Paths of YAMLs and folders are left to the harness.

    Args:
        names: Of tasks, groups or tags, or patterns of such names.
        folders: What ``--include_path`` names, beside the tasks of the harness and of other packages.
    """
    left = {name for name in names if not os.path.isdir(name)}
    left -= {name for name in left if name.endswith(".yaml") and (_WILDCARD.search(name) or os.path.isfile(name))}
    if not left:
        return []
    patterns = {name: _pattern(name) for name in left}
    for text in _texts([*folders, *_packages(), internals.tasks_folder()]):
        patterns = {
            name: pair for name, pair in patterns.items() if pair[0] not in text or not _may_name(pair[1], text)
        }
        if not patterns:
            break
    return [name for name in names if name in patterns]


def _pattern(name: str) -> tuple[bytes, re.Pattern[bytes]]:
    """What a text holds that names anything so, and how the name stands there; a wildcard is taken for ``*``."""
    parts = [part.encode("utf-8", "backslashreplace") for part in _WILDCARD.split(name)]
    inside, *others = map(re.escape, parts)
    for number, part in enumerate(others[:-1]):  # each where it stands first: tried everywhere they would take for ever
        inside += b"(?=(?P<p%d>%b*?%b))(?P=p%d)" % (number, _ANY, part, number)
    inside += b"".join(_ANY + b"*" + part for part in others[-1:])
    return max(parts, key=len), re.compile(rb"(?<![\w/\\.-])" + inside + rb"(?![\w/\\.-])")


def _may_name(pattern: re.Pattern[bytes], text: bytes) -> bool:
    """Whether a YAML may call a task, group or tag so: it stands under no other key, and in no sentence or comment."""
    for match in pattern.finditer(text):
        start = text.rfind(b"\n", 0, match.start()) + 1
        before, after = text[start : match.start()], text[match.end() :].partition(b"\n")[0]
        key = _KEY.match(before + match[0] + after)
        if re.search(rb"(^|\s)#", before) or (key is not None and len(before) < key.end(1)):  # a comment, the key
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
                        yield read_bytes(Path(parent, file))
