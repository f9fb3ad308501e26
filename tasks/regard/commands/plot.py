"""``lm-eval-bias plot``: figures of regard and sexism facets."""

from __future__ import annotations

import argparse

from lm_eval_bias.files import expanded
from lm_eval_bias.tasks.regard.benchmark import BENCHMARK
from lm_eval_bias.tasks.regard.regard_texts import LANGUAGES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.add_argument("paths", nargs="+", metavar="RESULTS", help="run folders or labelled texts, as for rescore")
    parser.add_argument(
        "-o", "--output", metavar="DIR", default=".", help="folder for the figures (default: the current folder)"
    )
    parser.add_argument("--language", metavar="LANG", choices=LANGUAGES, help="language of labelled texts: de or en")
    parser.add_argument("--classifier", metavar="NAME", help="classify the texts again with this classifier")


def run(arguments: argparse.Namespace) -> int:
    """Draw the figures, and print their paths."""
    from lm_eval_bias.runs import rescoring
    from lm_eval_bias.tasks.regard import plots

    folder = expanded(arguments.output)
    rewritings = [] if arguments.classifier is None else [(BENCHMARK.rewritings[0], arguments.classifier)]
    results = rescoring.rescore(arguments.paths, arguments.language, rewritings, only="regard")
    for path in plots.write(results, folder):
        print(path)
    return 0
