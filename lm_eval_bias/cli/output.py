"""What the commands about runs have in common: formats, options with commas, what was passed over, delivering text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from lm_eval_bias import files
from lm_eval_bias.errors import BiasError, printable
from lm_eval_bias.runs.run_data import Problem

ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json", ".csv": "csv", ".tex": "latex"}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
TEXT = "text"  # for a terminal; no file's ending stands for it


def format_of(form: str | None, output: str | None, without: str, flag: str = "-o") -> str:
    """The format that was named, else the one of the output's ending, else (``without`` any output) another.

    Raises:
        BiasError: An ending that stands for no format.

    >>> format_of(None, "board.TEX", "md"), format_of("csv", "board.tex", "md"), format_of(None, None, "md")
    ('latex', 'csv', 'md')
    """
    if form is not None or output is None:
        return form or without
    ending = Path(output).suffix.lower()
    if ending not in ENDINGS:
        raise BiasError(f"{flag} {output}: no format goes with {ending or 'no ending'}: name one with --format")
    return ENDINGS[ending]


def comma_separated(values: Sequence[str]) -> list[str]:
    """The names in the values of an option that takes several with commas.

    >>> comma_separated(["ss, lms,", "icat"])
    ['ss', 'lms', 'icat']
    """
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def name_problems(problems: Sequence[Problem]) -> None:
    """Say on standard error what had to be passed over."""
    for problem in problems:
        print(f"lm-eval-bias: skipped: {printable(problem)}", file=sys.stderr)


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
    files.write(text, output)
    print(summary)
