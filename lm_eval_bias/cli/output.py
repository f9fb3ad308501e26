"""What commands have in common: which runs they read, and where they write."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lm_eval_bias import api
from lm_eval_bias.cli.signatures import Names
from lm_eval_bias.core import files, safe_stream
from lm_eval_bias.core.errors import BiasError, printable

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import Problem
    from lm_eval_bias.report.outputs import Output


def share(text: str) -> float:
    """Read a share from 0 to below 1.

    Raises:
        ValueError: It is none.
    """
    from lm_eval_bias.gate import policy_file

    try:
        number = policy_file.share(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < 1:
        raise BiasError(f"{text}: give a share from 0 to below 1, such as 0.05, or 5%")
    return number


@dataclass(kw_only=True)
class Which:
    """Options that select tasks.

    Attributes:
        tasks (A,B): only these tasks: names, groups, tags, or patterns such as '*_gen' (default: all)
        language (CODE): only the tasks in these languages: de, or de,en (default: all)
    """

    tasks: Names = ()
    language: Names = ()


@dataclass(kw_only=True)
class ToFile:
    """Options for a command's output file.

    Attributes:
        output (FILE): file to write (default: standard output)
    """

    output: str | None = None

    def write(self, text: str, *notes: str) -> None:
        """Print text, or write it to the file and report where.

        Raises:
            BiasError: The file cannot be written.
        """
        if self.output is not None:
            files.write(text, self.output)
            print(": ".join([self.output, *notes]))
        else:
            sys.stdout.write(text)


@dataclass(kw_only=True)
class To(ToFile):
    """Options for a command's output file and format.

    Attributes:
        format: output format (default: by FILE's ending, else the first of these)
    """

    format: str | None = None
    formats = files.FORMATS

    def __post_init__(self) -> None:
        """Choose the format: as named, by the file's ending, or the usual one.

        Raises:
            BiasError: The ending is another one's, or a flag goes with another one.
        """
        self.style = self.format or self.formats[0]
        if self.output and not self.format:
            self.style = files.format_of(self.output, self.formats)

    def deliver(self, made: Output, *notes: str) -> None:
        """Print the output, or write it to the file and report where."""
        text = made.render(self.style)
        if self.style == "html" and self.output is None:
            safe_stream.write_page(text)
        else:
            self.write(text, *notes)


def read(
    paths: Sequence[str], which: Which, to: ToFile, by_file: bool = False
) -> api.Runs:
    """Read runs with the selected tasks; name skipped files and tasks.

    Raises:
        BiasError: There is no run, none has such a task, or the output can't be written.
    """
    files.check_place(to.output, paths)
    runs = api.read(paths, by_file).choose(which.tasks, which.language)
    name_problems(runs.problems)
    return runs


def name_problems(problems: Iterable[Problem]) -> None:
    """Name skipped files on standard error."""
    for text in dict.fromkeys(map(str, problems)):
        print(f"lm-eval-bias: skipped: {printable(text)}", file=sys.stderr)
