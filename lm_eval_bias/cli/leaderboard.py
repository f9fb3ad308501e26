"""``lm-eval-bias leaderboard``: all runs of a folder beside the published models."""

from __future__ import annotations

import argparse

from lm_eval_bias.boards import building, models
from lm_eval_bias.cli import output
from lm_eval_bias.core import files
from lm_eval_bias.report import board_reports
from lm_eval_bias.runs import run_discovery


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    parser.description = (
        "List all runs beside the models in the published papers, with 95% intervals "
        "of their ranks: a table per task."
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="RUNS_DIR",
        help="folders with result files (results_*.json) at any depth, or NAME=PATH with a name for the model",
    )
    output.add_scores(
        parser, "scores in the first table (default: each task's primary score)"
    )
    parser.add_argument(
        "--models-across",
        action="store_true",
        help="in texts, models across and tasks down: for few models, or for many languages (default: a row a model)",
    )
    output.add_choice(parser)
    output.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read the runs, name files that can't be read, print or write the boards.

    Raises:
        BiasError: There is no run, or a file can't be written.
    """
    output_format = output.format_of(arguments)
    files.check_place(arguments.output, arguments.paths)
    runs, problems = run_discovery.read(arguments.paths, by_file=True)
    problems += building.foreign(runs)
    runs = output.chosen(arguments, runs, problems)
    found = models.models(runs)
    board = board_reports.BoardReport(
        found, problems, arguments.scores, arguments.models_across
    )
    counted = [f"{len(found)} model{'s' * (len(found) != 1)}"]
    counted.append(f"{len(runs)} run{'s' * (len(runs) != 1)}")
    counted.append(f"{len(board.boards)} task{'s' * (len(board.boards) != 1)}")
    summary = f"{arguments.output}: {', '.join(counted)}"
    output.deliver(board.render(output_format), arguments.output, summary)
    return 0
