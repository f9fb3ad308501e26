"""``lm-eval-bias export``: runs in other people's formats, on this machine alone."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from lm_eval_bias.cli import output
from lm_eval_bias.core import registry
from lm_eval_bias.core.benchmark import ExportFormat

_EXAMPLES = """examples:
  lm-eval-bias export OUT --to eee -o eee/
  lm-eval-bias export OUT --to model-card -o bias.md
"""


def _brought() -> dict[str, ExportFormat]:
    """The formats that benchmarks bring, by name."""
    return {form.name: form for _, form in registry.extensions(ExportFormat)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    from lm_eval_bias.exports.exporting import FORMATS, RELATIONSHIPS

    brought = _brought()
    every: dict[str, Any] = {**FORMATS, **brought}
    lines = [f"  {name:<16} {form.help}" for name, form in every.items()]
    parser.description = "Write runs in another tool's format. Nothing is ever uploaded."
    parser.epilog = "\n".join(["formats:", *lines, "", _EXAMPLES])
    parser.add_argument("paths", nargs="+", metavar="RUN", help="run folders, results_*.json or run files")
    parser.add_argument(
        "--to", required=True, choices=[*FORMATS, *brought], metavar="FORMAT", help="output format, see below"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="PATH", help="file to write, or folder for formats of several files"
    )
    parser.add_argument("--name", metavar="NAME", help="name of the model, as OWNER/NAME if it is on the Hub")
    parser.add_argument(
        "--scores", choices=["main", "all"], help="which scores (default: main for the Hub's formats, else all)"
    )
    parser.add_argument(
        "--allow-trial", action="store_true", help="the Hub's formats: write runs of a part of the items, too"
    )
    parser.add_argument("--no-items", action="store_true", help="eee: leave out the records of individual items")
    parser.add_argument("--organization", metavar="NAME", help="eee: the organization that ran the evaluation")
    parser.add_argument(
        "--relationship",
        choices=RELATIONSHIPS,
        help="eee: that organization's relationship to the model (default other)",
    )
    parser.add_argument(
        "--dataset", metavar="OWNER/NAME", help="hf-eval-results: the data set of the leaderboard on the Hub"
    )
    for form in brought.values():
        importlib.import_module(form.module).add_arguments(parser.add_argument_group(f"--to {form.name}"))


def run(arguments: argparse.Namespace) -> int:
    """Write an export; returns the exit status.

    Raises:
        BiasError: Bad usage, no run at all, or a place that can't be written.
    """
    from lm_eval_bias.core.numbers import few
    from lm_eval_bias.exports import directed_scores, exporting
    from lm_eval_bias.runs import run_discovery

    brought, form, place = _brought(), arguments.to, arguments.output
    options = {key: value for key, value in vars(arguments).items() if key not in ("paths", "to", "output")}
    given = {key: value for key, value in options.items() if value not in (None, False)}
    own = {name: argparse.ArgumentParser(add_help=False) for name in brought}
    for name, parser in own.items():
        importlib.import_module(brought[name].module).add_arguments(parser)
    foreign = {name: vars(parser.parse_args([])) for name, parser in own.items()}
    exporting.check(form, given, foreign, place, arguments.paths, "-o")
    if form in brought:
        return int(importlib.import_module(brought[form].module).run(arguments))
    runs, problems = run_discovery.read(arguments.paths)
    output.name_problems(problems)
    made = exporting.write(form, place, runs, problems, given)
    print(f"{place}: {made.scores:,} {'score' if made.scores == 1 else 'scores'}")
    for reason, names in directed_scores.by_reason(made.left_out).items():
        print(f"left out: {few(names)}: {reason}")
    for remark in made.remarks:
        print(remark)
    return 0
