"""What the commands about runs have in common: the format by a file's ending, what was passed over, and writing."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded, write_whole, writing
from lm_eval_bias.runs.run_data import Problem

ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json", ".csv": "csv", ".tex": "latex"}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))


def format_of(form: str | None, output: str | None, without: str) -> str:
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
        raise BiasError(
            f"-o {output}: the ending says no format: no format goes with {ending or 'no ending'}; "
            "name it with --format"
        )
    return ENDINGS[ending]


def check_place(output: str | None) -> None:
    """Refuse a file that can't be written, before the work for it is done.

    Raises:
        BiasError: Its folder isn't there or can't be written, or it is a folder itself.
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


def name_problems(problems: Sequence[Problem]) -> None:
    """Say on standard error what had to be passed over."""
    from lm_eval_bias.runs import printable_runs

    for problem in problems:
        print(f"lm-eval-bias: passed over: {printable_runs.one_line(problem)}", file=sys.stderr)


def deliver(text: str, output: str | None, summary: str) -> None:
    """Print text, or write it whole to a file and say so.

    Args:
        text: The text.
        output: The file; ``None`` is standard output.
        summary: What is printed where a file was written.

    Raises:
        BiasError: The file cannot be written.
    """
    if output is None:
        sys.stdout.write(text)
        return
    with writing(output):
        write_whole(expanded(output), text.encode("utf-8", "backslashreplace"))
    print(summary)
