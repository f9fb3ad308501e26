"""Common parts of commands: the parser, formats, notes on skipped files, delivery of text."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError, printable

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import Problem

ENDINGS = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".json": "json",
    ".csv": "csv",
    ".tex": "latex",
}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
TEXT = "text"  # for a terminal, or a file that ends in .txt
# argparse's words for a value of a wrong type: they name the function that reads it, or its address
_WRONG_TYPE = re.compile(
    r"invalid (?!choice)(\S+|functools\..*|<.*>) value: (?='.*'$|\".*\"$)", re.DOTALL
)


class Parser(argparse.ArgumentParser):
    """An argument parser that reports usage errors in one line.

    Attributes:
        on_error: Is called with the arguments and what is wrong with them, before that is reported.
    """

    on_error: Callable[[Sequence[str], str], None] | None = None
    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as usual, but refuse an empty value, as an unset variable gives: it would count as no option."""
        args = sys.argv[1:] if args is None else list(args)
        self._given = args
        for flag, value in zip(args, [*args[1:], "-"], strict=False):
            is_empty = "=" not in flag and not value.strip()
            if flag.startswith("--") and (is_empty or flag.endswith("=")):
                self.error(
                    f"argument {flag.rstrip('=')}: is empty: give a value, or leave the option out"
                )
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the message and how to get help, and exit with status 2."""
        text = printable(_WRONG_TYPE.sub("not a valid value: ", message))
        if self.on_error:
            self.on_error(self._given, text)
        self.exit(2, f"{self.prog}: error: {text} (see '{self.prog} --help')\n")


def names(text: str) -> tuple[str, ...]:
    """Read names separated by commas, each once: the type of an option.

    Raises:
        argparse.ArgumentTypeError: There is none.

    >>> names("ss, icat,ss")
    ('ss', 'icat')
    """
    listed = dict.fromkeys(filter(None, map(str.strip, text.split(","))))
    if not listed:
        raise argparse.ArgumentTypeError(f"{text!r} holds no name")
    return tuple(listed)


def add_scores(parser: argparse.ArgumentParser, help: str) -> None:
    """Add ``--scores``, of which there are none by default."""
    parser.add_argument("--scores", type=names, default=(), metavar="A,B", help=help)


def add_output(parser: argparse.ArgumentParser, html_alone: bool = False) -> None:
    """Add ``-o`` and ``--format``, by default text on standard output.

    Args:
        parser: The command's.
        html_alone: Whether the command writes a page unless another format is named, and no plain text.
    """
    usual = "html" if html_alone else TEXT
    parser.add_argument(
        "--format",
        choices=FORMATS if html_alone else (TEXT, *FORMATS),
        help=f"output format (default: by FILE's ending, else {usual})",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="file to write (default: standard output)",
    )


def format_of(
    named: str | None, output: str | None, default: str, flag: str = "-o"
) -> str:
    """Return the named format, else that of the output's ending, else, without an output, the default.

    Raises:
        BiasError: The ending stands for no format.

    >>> format_of(None, "board.TEX", "md"), format_of("csv", "board.tex", "md"), format_of(None, None, "md")
    ('latex', 'csv', 'md')
    """
    if named is not None or output is None:
        return named or default
    ending = Path(output).suffix.lower()
    if ending == ".txt" and default == TEXT:
        return TEXT
    if ending not in ENDINGS:
        raise BiasError(
            f"{flag} {output}: no format goes with {ending or 'no ending'}: name one with --format"
        )
    return ENDINGS[ending]


def name_problems(problems: Sequence[Problem]) -> None:
    """Name the skipped files on standard error."""
    for problem in problems:
        print(f"lm-eval-bias: skipped: {printable(problem)}", file=sys.stderr)


def deliver(text: str, output: str | None, summary: str) -> None:
    """Print text, or write it whole to a file and say so.

    Args:
        text: The text.
        output: The file; ``None`` is standard output.
        summary: Text to print when a file was written.

    Raises:
        BiasError: The file cannot be written.
    """
    if output is None:
        sys.stdout.write(text)
        return
    files.write(text, output)
    print(summary)
