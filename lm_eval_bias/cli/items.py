"""``lm-eval-bias items`` and ``show``: what a model saw and answered, of a task's items or of one."""

from __future__ import annotations

import argparse
import sys

from lm_eval_bias.cli import output
from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.run_data import Run, TaskRun


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        metavar="RUN",
        help="run folder or results_*.json, made with --log_samples",
    )
    parser.add_argument("task", metavar="TASK", help="one of its tasks")


def _found(arguments: argparse.Namespace) -> tuple[Run, TaskRun]:
    """Read the run, and its task.

    Raises:
        BiasError: There isn't one run, no such task, or no log of it.
    """
    from lm_eval_bias.runs import items, run_discovery

    runs, problems = run_discovery.read([arguments.run])
    output.name_problems(problems)
    having = [run for run in runs if arguments.task in run.tasks] or runs
    if len(having) > 1:
        names = ", ".join(str(run.path) for run in having)
        raise BiasError(f"{arguments.run}: several runs: name one of {names}")
    return having[0], items.of_task(having[0], arguments.task)


class Items:
    """The command ``items``."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Describe the command to a parser."""
        parser.description = (
            "Write a task's items with prompt, answer, reading and what each adds to scores: a page to search and "
            "filter, or a table."
        )
        _add(parser)
        output.add_output(parser, "csv", without=["md", "latex", "text"])

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """Write the items; return the exit status.

        Raises:
            BiasError: Bad usage, or no such items.
        """
        from lm_eval_bias.report.item_pages import ItemsReport

        style = output.format_of(arguments)
        files.check_place(arguments.output, [arguments.run])
        report = ItemsReport(*_found(arguments))
        summary = f"{arguments.output}: {len(report.items):,} items"
        output.deliver(report.render(style), arguments.output, summary)
        return 0


class Show:
    """The command ``show``."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Describe the command to a parser."""
        parser.description = "Print one item with all that is known of it: the prompt as sent, the answer, its reading."
        _add(parser)
        parser.add_argument(
            "--item",
            type=int,
            default=0,
            metavar="N",
            help="place of the item in the log, from 0 (default: 0)",
        )

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """Print the item; return the exit status.

        Raises:
            BiasError: Bad usage, or no such item.
        """
        from itertools import islice

        from lm_eval_bias.report import item_pages
        from lm_eval_bias.runs import items

        run, task = _found(arguments)
        place = arguments.item
        found = next(islice(items.items(task), max(place, 0), None), None)
        if found is None or place < 0:
            raise BiasError(
                f"--item {place}: {task.task} has the items 0 to {task.documents - 1}"
            )
        sys.stdout.write(item_pages.told(run, task, found))
        return 0
