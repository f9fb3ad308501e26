"""``lm-eval-bias rescore``: every score again from saved samples, without a model."""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    from lm_eval_bias.report.run_output import TABLES
    from lm_eval_bias.runs.rescoring import known_rewritings

    parser.description = (
        "Compute every score again from saved samples. A flag that is about one benchmark's answers passes over all "
        "others, with a note. Lines of a log may have 16 MiB."
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="run folders, samples files (--log_samples) or predictions"
    )
    parser.add_argument("--language", metavar="LANG", help="of files that don't say it themselves: de, en, ...")
    parser.add_argument(
        "--table",
        choices=TABLES,
        default="main",
        help="beside the scores in words: the main scores (main, the default), every score (all), or nothing (none)",
    )
    parser.add_argument("--json", action="store_true", help="machine-readable, with every score")
    for rewriting in known_rewritings():
        parser.add_argument(f"--{rewriting.flag}", metavar=rewriting.metavar, help=rewriting.help)


def run(arguments: argparse.Namespace) -> int:
    """Print the scores."""
    from lm_eval_bias.report import rescored_tables
    from lm_eval_bias.runs import rescoring

    values = [(rewriting, getattr(arguments, rewriting.flag)) for rewriting in rescoring.known_rewritings()]
    rewritings = [(rewriting, value) for rewriting, value in values if value is not None]
    results = rescoring.rescore(arguments.paths, arguments.language, rewritings)
    for problem in () if rewritings else rescoring.unlike_results(results):
        print(f"lm-eval-bias: not what its run says: {problem}", file=sys.stderr)
    text = rescored_tables.as_json(results) if arguments.json else rescored_tables.as_text(results, arguments.table)
    print(text, end="")
    return 0
