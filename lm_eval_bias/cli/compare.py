"""``lm-eval-bias compare``: differences between runs, instructions or languages on the same items."""

from __future__ import annotations

import argparse
import math

from lm_eval_bias.cli import output
from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError, printable

_EPILOG = """exit status: 0 done, 2 bad usage or input; 'lm-eval-bias check NEW --base OLD' fails where a score is worse

examples:
  lm-eval-bias compare base/ instruct/
  lm-eval-bias compare base/ instruct/ -o compare.html
  lm-eval-bias compare base/ instruct/ --margin 0.05
  lm-eval-bias compare run/ --by instruction
  lm-eval-bias compare run/ --by language --base en --scores ss,icat
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    from lm_eval_bias.comparing.findings import axes
    from lm_eval_bias.comparing.pairing import conditions
    from lm_eval_bias.report.comparison_reports import CORRECTIONS

    within = "".join(f"{condition.help}, " for condition in conditions().values())
    parser.description = (
        "Compare scores item by item: clustered 95% intervals, p-values of Student's t on the same error, and the "
        "smallest difference that could have been found."
    )
    parser.epilog = _EPILOG
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="run folders (--output_path) with the answers saved there, or NAME=PATH with a name for the model",
    )
    parser.add_argument(
        "--by",
        choices=axes(),
        default="run",
        help=f"what to compare: runs (default), {within}or languages of each model",
    )
    parser.add_argument(
        "--base",
        metavar="NAME",
        help="baseline that the others are compared with (default: the first run; instruction none; language en)",
    )
    output.add_scores(
        parser, "scores to compare (default: each benchmark's main scores)"
    )
    parser.add_argument(
        "--unpaired",
        action="store_true",
        help="compare runs as independent where items, seeds or versions differ",
    )
    parser.add_argument(
        "--correction",
        choices=CORRECTIONS,
        default="holm",
        help="correction for the number of tests: Holm (default), Benjamini-Hochberg or none",
    )
    parser.add_argument(
        "--margin",
        type=output.margin,
        metavar="SHARE",
        help="say which scores are shown to be equivalent within it: 0.05 or 5%% is five points of a score in percent",
    )
    parser.add_argument("--fail-on", help=argparse.SUPPRESS)
    output.add_choice(parser)
    output.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare; return the exit status.

    Raises:
        BiasError: Usage is bad, or runs can't be read or compared.
    """
    from lm_eval_bias.comparing.findings import (
        Choice,
        compare,
        not_chosen,
    )
    from lm_eval_bias.report import comparison_reports
    from lm_eval_bias.runs.run_discovery import read

    if arguments.fail_on:
        raise BiasError(
            "--fail-on: a comparison has no verdict. Type: lm-eval-bias check NEW --base OLD"
        )
    output_format = output.format_of(arguments)
    choice = Choice(
        by=arguments.by,
        base=arguments.base,
        scores=arguments.scores,
        unpaired=arguments.unpaired,
        correction=arguments.correction,
        leave_out=True,
        margin=math.nan if arguments.margin is None else arguments.margin,
    )
    files.check_place(arguments.output, arguments.runs)
    runs, problems = read(arguments.runs)
    unread = len(problems)
    runs = output.chosen(arguments, runs, problems)
    findings, left_out = compare(runs, choice)
    left_out = [*left_out, *not_chosen(problems[unread:])]
    report = comparison_reports.ComparisonReport(
        findings, left_out, arguments.correction, runs
    )
    lines = [f"{arguments.output}: {len(findings)} comparisons"]
    lines += [f"not compared: {printable(one)}" for one in left_out]
    output.deliver(
        report.render(output_format, arguments.column),
        arguments.output,
        "\n".join(lines),
    )
    return 0
