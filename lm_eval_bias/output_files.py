"""Files that are written for users: their format by their ending, where they may not go, and writing them whole."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded, replace_folder, same, under, write_whole, writing

ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json", ".csv": "csv", ".tex": "latex"}
_ITEM_PAGE = re.compile(r"r[0-9]+t[0-9]+\.html")
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
TEXT = "text"  # for a terminal; no file's ending stands for it


def format_of(form: str | None, output: str | None, without: str, flag: str = "-o") -> str:
    """The format that was named, else the one of the output's ending, else (``without`` any output) another.

    Raises:
        BiasError: An ending that stands for no format.

    >>> format_of(None, "board.TEX", "md"), format_of("csv", "board.tex", "md"), format_of(None, None, "md")
    ('latex', 'csv', 'md')
    """
    if form is not None:
        return form
    if output is None:
        return without
    ending = Path(output).suffix.lower()
    if ending not in ENDINGS:
        raise BiasError(f"{flag} {output}: no format goes with {ending or 'no ending'}: name one with --format")
    return ENDINGS[ending]


def check_place(output: str | None, inputs: Sequence[str] = (), flag: str = "-o") -> None:
    """Refuse a file that can't be written, or that would replace what is read, before the work for it is done.

    Args:
        output: The file; ``None`` is standard output.
        inputs: Files and folders that the command reads.
        flag: What names the file.

    Raises:
        BiasError: Its folder isn't there or can't be written, it is a folder itself, or see :func:`refuse_inputs`.
    """
    if output is None:
        return
    path = expanded(output)
    with writing(output):
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(path).st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    refuse_inputs(output, inputs, flag)


def folder_beside(output: str, flag: str = "-o") -> Path:
    """The folder for the pages that a report's page leads to: ``report-items`` beside ``report.html``.

    Raises:
        BiasError: There is one with other things in it, which would be lost.
    """
    path = expanded(output)
    folder = path.with_name(f"{path.stem}-items")
    if os.path.lexists(folder):
        is_ours = folder.is_dir() and not folder.is_symlink()
        if not is_ours or not all(_ITEM_PAGE.fullmatch(name) for name in os.listdir(folder)):
            raise BiasError(
                f"{flag} {output}: its item pages go into {folder}, which holds something else: name another file, or "
                "add --items 0"
            )
    return folder


def refuse_inputs(output: str, inputs: Sequence[str], flag: str = "-o") -> None:
    """Refuse a file that would replace what is read, or be taken for a run's own.

    Raises:
        BiasError: It is an input or a run's file below one, also by a link, or is named like one.
    """
    path = expanded(output)
    if _is_of_run(path) or _is_of_run(Path(os.path.realpath(path))):
        raise BiasError(f"{flag} {output}: a run's own files have this name: name another file")
    for place in map(expanded, inputs):
        if same(path, place) or (os.path.exists(path) and any(_is_run(p) for p in under(place) if same(p, path))):
            raise BiasError(f"{flag} {output}: this file is also an input and would be overwritten: name another file")


def _is_of_run(path: Path) -> bool:
    """Whether a file is called like results or a sample log."""
    from lm_eval_bias.runs import harness_results, sample_logs

    return harness_results.matches(path) or sample_logs.matches(path)


def _is_run(path: Path) -> bool:
    """Whether a file holds a run, or a part of one."""
    from lm_eval_bias.runs import json_files, run_file

    with contextlib.suppress(BiasError):
        return _is_of_run(path) or (path.suffix == ".json" and run_file.matches(json_files.read(path)))
    return False


def write(text: str, output: str) -> None:
    """Write text whole to a file.

    Raises:
        BiasError: The file cannot be written.
    """
    with writing(output):
        write_whole(expanded(output), text.encode("utf-8", "backslashreplace"))


def write_folder(pages: Mapping[str, str], folder: Path) -> None:
    """Write pages to a folder, whole and in place of an earlier one's.

    Raises:
        BiasError: The folder cannot be written.
    """
    with writing(folder):
        replace_folder(folder, {name: text.encode("utf-8", "backslashreplace") for name, text in pages.items()})
