"""Common parts of commands: the parser, formats, notes on skipped files, delivery of text."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from lm_eval_bias.core import files, printed
from lm_eval_bias.core.errors import BadOption, printable

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import Problem, Run

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


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add ``--tasks`` and ``--language``, which choose some of the runs' tasks."""
    parser.add_argument(
        "--tasks",
        type=names,
        default=(),
        metavar="A,B",
        help="only these tasks: names, groups, tags, or patterns such as '*_gen' (default: all)",
    )
    parser.add_argument(
        "--language",
        type=names,
        default=(),
        metavar="CODE",
        help="only the tasks in these languages: de, or de,en (default: all)",
    )


def chosen(
    arguments: argparse.Namespace, runs: Sequence[Run], problems: list[Problem]
) -> list[Run]:
    """Return the chosen tasks of runs; add what is left out to the problems, and name these all.

    Raises:
        BiasError: No run has such a task or language.
    """
    from lm_eval_bias.runs.choosing import choose

    kept, left_out = choose(runs, arguments.tasks, arguments.language)
    problems += left_out
    name_problems(problems)
    return kept


def add_scores(parser: argparse.ArgumentParser, help: str) -> None:
    """Add ``--scores``, of which there are none by default."""
    parser.add_argument("--scores", type=names, default=(), metavar="A,B", help=help)


def add_output(
    parser: argparse.ArgumentParser,
    usual: str = "text",
    without: Sequence[str] = (),
) -> None:
    """Add ``-o`` and ``--format``, by default to standard output.

    Args:
        parser: The command's.
        usual: The format without either.
        without: Formats that the command doesn't write.
    """
    formats = [name for name in files.FORMATS if name not in without]
    parser.set_defaults(formats=formats, usual=usual)
    parser.add_argument(
        "--format",
        choices=formats,
        help=f"output format (default: by FILE's ending, else {usual})",
    )
    if "latex" in formats:
        parser.add_argument(
            "--column",
            action="store_true",
            help="with LaTeX: tables for one of two columns (default: as wide as the text)",
        )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="file to write (default: standard output)",
    )


def format_of(arguments: argparse.Namespace) -> str:
    """Return the format that the flags of :func:`add_output` name, or the output's ending, or the usual one.

    Raises:
        BiasError: The ending stands for no format, or a flag goes with another one.
    """
    style = str(arguments.format or arguments.usual)
    if arguments.output and not arguments.format:
        style = files.format_of(arguments.output, arguments.formats)
    draws = getattr(arguments, "figures", None)
    if getattr(arguments, "column", False) and style != "latex" and not draws:
        raise BadOption("column", style, "goes with LaTeX alone (-o FILE.tex)")
    return style


def name_problems(problems: Sequence[Problem]) -> None:
    """Name the skipped files on standard error."""
    for told in dict.fromkeys(map(str, problems)):
        print(f"lm-eval-bias: skipped: {printable(told)}", file=sys.stderr)


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
        is_page = text.startswith("<!doctype html>")
        printed.write_page(text) if is_page else sys.stdout.write(text)
        return
    files.write(text, output)
    print(summary)


def margin(text: str) -> float:
    """Read a margin, as a share from 0 to below 1.

    Raises:
        ArgumentTypeError: It is none.
    """
    from lm_eval_bias.gate.policy_file import share

    try:
        number = share(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(
            f"{text}: give a share from 0 to below 1, such as 0.05, or 5%"
        )
    return number
