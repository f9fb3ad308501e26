"""``lm-eval-bias path``: the task folder, for ``lm_eval --include_path``."""

from __future__ import annotations

import argparse

from lm_eval_bias.paths import tasks_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(arguments: argparse.Namespace) -> int:
    """Print the folder."""
    print(tasks_path())
    return 0
