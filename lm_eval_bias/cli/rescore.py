"""``lm-eval-bias rescore``: every score again from saved samples, without a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lm_eval_bias.cli import output
from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError

if TYPE_CHECKING:
    from lm_eval_bias.runs.rescoring import AnswerReading

INCOMPLETE = 2  # the exit status where a folder has logs that this version can't read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    from lm_eval_bias.report.run_output import TABLES
    from lm_eval_bias.runs.rescoring import known_rewritings

    parser.description = (
        "Recompute every score from saved samples. A flag for one benchmark's answers skips the samples of all others, "
        "with a note."
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="run folders (--output_path), answers or sample logs in them, or prediction files",
    )
    parser.add_argument(
        "--language",
        metavar="LANG",
        help="language of files that don't state it: de, en, ...",
    )
    parser.add_argument(
        "--table",
        choices=TABLES,
        default="main",
        help="table to print after the scores in words: the main scores (main, the default), every score (all) or none",
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON, with every score"
    )
    parser.add_argument(
        "--by",
        type=output.names,
        metavar="FACET",
        help="show the main scores by what the items differ in, such as job, template or term, or by two facets "
        "(a,b), in place of the scores; ls --card NAME lists a benchmark's facets",
    )
    output.add_scores(parser, "with --by: scores to show (default: the main scores)")
    parser.add_argument(
        "--csv",
        metavar="FILE",
        help="with --by: write the values to FILE instead of printing them",
    )
    parser.add_argument(
        "--as-logged",
        action="store_true",
        help="keep what was read from logged texts when the run was made, instead of reading them by today's rules",
    )
    for rewriting in known_rewritings():
        parser.add_argument(
            f"--{rewriting.flag}", metavar=rewriting.metavar, help=rewriting.help
        )


def run(arguments: argparse.Namespace) -> int:
    """Print the scores; return the exit status.

    Raises:
        BiasError: Usage or input is bad, or a file can't be written.
    """
    from lm_eval_bias.report import rescored_tables
    from lm_eval_bias.runs import rescoring

    rewritings = []
    for rewriting in rescoring.known_rewritings():
        value = getattr(arguments, rewriting.flag)
        if value is not None:
            rewritings.append((rewriting, value))
    reading = rescoring.AnswerReading(rewritings, arguments.as_logged)
    if arguments.by is not None:
        _break_down(arguments, reading)
        return INCOMPLETE if reading.unreadable else 0
    for flag in ("scores", "csv"):
        if getattr(arguments, flag):
            raise BiasError(f"--{flag} is for --by FACET: name one")
    results = rescoring.rescore(arguments.paths, arguments.language, reading)
    if arguments.json:
        print(rescored_tables.as_json(results), end="")
    else:
        print(rescored_tables.as_text(results, arguments.table), end="")
    return INCOMPLETE if reading.unreadable else 0


def _break_down(arguments: argparse.Namespace, reading: AnswerReading) -> None:
    """Print, or write, the scores by facets."""
    from lm_eval_bias.report import breakdown_tables
    from lm_eval_bias.report.tables import json_text
    from lm_eval_bias.runs.breakdowns import breakdowns

    if arguments.csv is not None:
        files.check_place(arguments.csv, arguments.paths, "--csv")
    computed = breakdowns(
        arguments.paths,
        arguments.by,
        arguments.scores,
        arguments.language,
        reading,
    )
    if arguments.csv is not None:
        files.write(breakdown_tables.as_csv(computed), arguments.csv)
    elif arguments.json:
        print(json_text(list(breakdown_tables.records(computed)), indent=2), end="")
    else:
        print(breakdown_tables.as_text(computed), end="")
