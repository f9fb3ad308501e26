"""``lm-eval-bias rescore``: every score again from saved samples, without a model."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    from lm_eval_bias.report.run_output import TABLES
    from lm_eval_bias.runs.rescoring import known_rewritings

    parser.description = (
        "Recompute every score from saved samples. A flag for one benchmark's answers skips the samples of all others, "
        "with a note."
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="run folders, sample logs (--log_samples) or prediction files"
    )
    parser.add_argument("--language", metavar="LANG", help="language of files that don't state it: de, en, ...")
    parser.add_argument(
        "--table",
        choices=TABLES,
        default="main",
        help="table to print after the scores in words: the main scores (main, the default), every score (all) or none",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with every score")
    for rewriting in known_rewritings():
        parser.add_argument(f"--{rewriting.flag}", metavar=rewriting.metavar, help=rewriting.help)


def run(arguments: argparse.Namespace) -> int:
    """Print the scores."""
    from lm_eval_bias.report import rescored_tables
    from lm_eval_bias.runs import rescoring

    values = [(rewriting, getattr(arguments, rewriting.flag)) for rewriting in rescoring.known_rewritings()]
    rewritings = [(rewriting, value) for rewriting, value in values if value is not None]
    results = rescoring.rescore(arguments.paths, arguments.language, rewritings)
    text = rescored_tables.as_json(results) if arguments.json else rescored_tables.as_text(results, arguments.table)
    print(text, end="")
    return 0
