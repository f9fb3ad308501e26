"""``lm-eval-bias compare``: differences between runs, instructions or languages on the same items."""

from __future__ import annotations

import argparse

from lm_eval_bias.cli import output
from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError, printable

_EPILOG = """exit status: 0 done, 1 with --fail-on worse: a primary score (any, if none is primary) is shown to be
worse, 2 bad usage or input

examples:
  lm-eval-bias compare base/ instruct/
  lm-eval-bias compare base/ instruct/ -o compare.html
  lm-eval-bias compare lastweek/ today/ --fail-on worse
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
        "--fail-on",
        choices=("worse",),
        help="exit with status 1 if a primary score is shown to be worse than the base's: significantly further from "
        "neutral, or of lower ability. What can't be read or paired is an error then (2)",
    )
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
        is_worse,
        not_chosen,
    )
    from lm_eval_bias.report import comparison_reports
    from lm_eval_bias.runs.run_discovery import read

    output_format = output.format_of(arguments)
    choice = Choice(
        by=arguments.by,
        base=arguments.base,
        scores=arguments.scores,
        unpaired=arguments.unpaired,
        correction=arguments.correction,
        leave_out=not arguments.fail_on,
    )
    files.check_place(arguments.output, arguments.runs)
    runs, problems = read(arguments.runs)
    if arguments.fail_on and problems:
        output.name_problems(problems)
        raise BiasError(f"--fail-on {arguments.fail_on}: {problems[0]}")
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
    return int(bool(arguments.fail_on) and is_worse(findings))
