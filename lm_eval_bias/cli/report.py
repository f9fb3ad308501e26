"""``lm-eval-bias report``: runs as a page to hand to someone, or as tables for a paper."""

from __future__ import annotations

import argparse
import sys

from lm_eval_bias.cli import output
from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    parser.description = (
        "Write a report on runs: an HTML page that needs no network, or tables for papers and programs. Where the runs "
        "have sample logs, the page lists the items that move each task's main score most."
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="RUN",
        help="run folders or results_*.json (--log_samples lets it show prompts and texts), or NAME=PATH with a name "
        "for the model",
    )
    parser.add_argument(
        "--figures",
        metavar="DIR",
        help="folder to write the benchmarks' figures into, as SVG and PDF, 6.9 inches wide (3.3 with --column); "
        "without -o and --format nothing else is written",
    )
    output.add_scores(
        parser,
        "scores in tables and pictures (default: each benchmark's main scores); tasks without them are left out",
    )
    parser.add_argument(
        "--facets",
        action="store_true",
        help="let the page have the main scores by what the items differ in, which takes seconds",
    )
    output.add_choice(parser)
    output.add_output(parser, "html", without=["text"])


def run(arguments: argparse.Namespace) -> int:
    """Write the report; return the exit status.

    Raises:
        BiasError: Usage is bad, there is no run, or a file can't be written.
    """
    from lm_eval_bias.report import run_reports
    from lm_eval_bias.runs import run_discovery

    output_format = output.format_of(arguments)
    is_wanted = arguments.output or arguments.format or not arguments.figures
    if is_wanted and output_format == "html" and arguments.output is None:
        raise BiasError(
            "an HTML report needs a file: add -o report.html, or --format md|json|csv|latex to print one"
        )
    files.check_place(arguments.output, arguments.paths)
    runs, problems = run_discovery.read(arguments.paths)
    runs = output.chosen(arguments, runs, problems)
    if arguments.scores:
        runs = run_reports.choose(runs, arguments.scores)
    if arguments.figures:
        written = run_reports.write_figures(runs, arguments.figures, arguments.column)
        is_printed = is_wanted and arguments.output is None
        stream = sys.stderr if is_printed else sys.stdout
        print(f"{arguments.figures}: {', '.join(written)}", file=stream)
    if is_wanted:
        report = run_reports.RunReport(runs, problems, facets=arguments.facets)
        text = report.render(output_format, arguments.column)
        output.deliver(text, arguments.output, arguments.output)
    return 0
