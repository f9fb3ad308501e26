"""``lm-eval-bias methods``: the paragraphs that the methods section of a paper on runs needs."""

from __future__ import annotations

import argparse

from lm_eval_bias.cli import output
from lm_eval_bias.core import files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    parser.description = (
        "Write the methods paragraphs of a paper on runs, from their records: data, prompts, models, scores with "
        "formulas, intervals and tests with citations, and what was left out. The keys are those that 'cite' writes of "
        "the same runs."
    )
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="run folders or results_*.json"
    )
    output.add_choice(parser)
    output.add_output(parser, "md", without=["text", "html", "json", "csv"])


def run(arguments: argparse.Namespace) -> int:
    """Write the paragraphs; return the exit status.

    Raises:
        BiasError: There is no run, or the file can't be written.
    """
    from lm_eval_bias.report.methods import Methods
    from lm_eval_bias.runs import run_discovery

    output_format = output.format_of(arguments)
    files.check_place(arguments.output, arguments.runs)
    runs, problems = run_discovery.read(arguments.runs)
    runs = output.chosen(arguments, runs, problems)
    text = Methods(runs, problems).render(output_format)
    output.deliver(text, arguments.output, arguments.output)
    return 0
