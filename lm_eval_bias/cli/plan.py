"""``lm-eval-bias plan``: which differences a run could find, before a second model is run."""

from __future__ import annotations

import argparse

from lm_eval_bias.cli import output
from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BadOption, BiasError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    parser.description = (
        "Say which differences from another model a run's primary scores could find with 80% probability, alone and "
        "among all of them, and how many times the items would find a smaller one."
    )
    parser.epilog = "example:\n  lm-eval-bias plan run/ --target 0.05\n"
    parser.add_argument(
        "run",
        metavar="RUN",
        help="run folder or results_*.json, or NAME=PATH with a name for the model",
    )
    parser.add_argument(
        "--target",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="difference to be found, as a share of half the range (default: 0.1)",
    )
    output.add_choice(parser)
    output.add_output(parser, without=["html"])


def run(arguments: argparse.Namespace) -> int:
    """Print or write the plan; return the exit status.

    Raises:
        BiasError: Usage is bad, or there isn't one run with primary scores.
    """
    from lm_eval_bias.comparing.findings import detectable
    from lm_eval_bias.report import comparison_reports
    from lm_eval_bias.runs.run_discovery import read

    style = output.format_of(arguments)
    if not 0 < arguments.target <= 1:
        raise BadOption("target", arguments.target, "must be above 0 and up to 1")
    files.check_place(arguments.output, [arguments.run])
    runs, problems = read([arguments.run])
    runs = output.chosen(arguments, runs, problems)
    if len(runs) > 1:
        raise BiasError(f"{arguments.run}: a plan is of one run, not {len(runs)}")
    planned = detectable(runs[0])
    report = comparison_reports.PlanReport(planned, target=arguments.target)
    summary = f"{arguments.output}: {len(planned)} primary scores"
    output.deliver(report.render(style), arguments.output, summary)
    return 0
