"""``lm-eval-bias path``: the task folder, for ``lm_eval --include_path``."""

from __future__ import annotations

import argparse

from lm_eval_bias.core import registry
from lm_eval_bias.core.files import tasks_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.add_argument(
        "benchmark",
        nargs="?",
        metavar="BENCHMARK",
        help="print the folder of this benchmark alone, which may come from another distribution",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the folder."""
    print(tasks_path() if arguments.benchmark is None else registry.get(arguments.benchmark).folder)
    return 0
