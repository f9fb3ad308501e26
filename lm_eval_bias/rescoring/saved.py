"""Saved answers of a run, whatever file they come from, and the readers that find them.

A reader is a pair of functions: does this file look like mine, and what does it hold. The other benchmarks' formats
are further entries of :data:`READERS`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded
from lm_eval_bias.rescoring import harness_samples, labelled_texts, predictions


@dataclass(frozen=True)
class Reader:
    """A file format.

    Attributes:
        name: For messages.
        matches: Whether a path looks like this format, by its name.
        read: The file's content, as :class:`harness_samples.Saved` parts, given the language where one was named.
    """

    name: str
    matches: Callable[[Path], bool]
    read: Callable[[Path, str | None], list[harness_samples.Saved]]


READERS = [
    Reader("samples of a harness run (--log_samples)", harness_samples.matches, harness_samples.read),
    Reader("the StereoSet authors' predictions (JSON)", predictions.matches, predictions.read),
    Reader("labelled texts about women and men (JSONL or CSV)", labelled_texts.matches, labelled_texts.read),
]


def find(paths: list[str], readers: Sequence[Reader] = READERS) -> list[tuple[Reader, Path, bool]]:
    """The files to read, in a fixed order, and whether each was named itself: folders are searched to any depth.

    Raises:
        BiasError: A path doesn't exist, or holds nothing that a reader knows.
    """
    found: dict[Path, tuple[Reader, bool]] = {}
    for given in paths:
        path = expanded(given)
        if not os.path.exists(path):
            raise BiasError(f"{given}: no such file or folder")
        candidates = sorted(p for p in (path.rglob("*") if path.is_dir() else [path]) if p.is_file())
        hits = {p: (r, not path.is_dir()) for p in candidates for r in readers if r.matches(p)}
        if not hits:
            known = "; ".join(reader.name for reader in readers)
            what = "holds no file" if path.is_dir() else "is no file"
            raise BiasError(f"{given} {what} that can be rescored (known: {known}); run with --log_samples")
        found.update(hits)
    return [(reader, path, named) for path, (reader, named) in found.items()]


def read(
    paths: list[str], language: str | None = None, readers: Sequence[Reader] = READERS
) -> list[harness_samples.Saved]:
    """Everything saved under the paths; other tasks' logs in a folder are passed over with a note.

    Args:
        paths: Files or folders.
        language: The language of files that don't say it themselves.
        readers: Which formats to look for.

    Raises:
        BiasError: A file that cannot be read, another task's if it was named itself, or nothing of ours at all.
    """
    parts: list[harness_samples.Saved] = []
    foreign: list[harness_samples.NotOurs] = []
    for reader, path, named in find(paths, readers):
        try:
            # the two files of a pair are one part, whichever of them was found first
            parts += [part for part in reader.read(path, language) if part not in parts]
        except harness_samples.NotOurs as error:
            if named:
                raise
            foreign.append(error)
    if not parts:
        raise foreign[0]
    for passed_over in foreign:
        print(f"lm-eval-bias: passed over: {passed_over}", file=sys.stderr)
    return parts
