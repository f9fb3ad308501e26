"""``lm-eval-bias link``: lets plain ``lm_eval --tasks occugender`` find the tasks."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(arguments: argparse.Namespace) -> int:
    """Link, unless the harness finds the tasks by itself."""
    from lm_eval_bias.harness import linking

    if linking.unnecessary():
        print(
            "Nothing to link: this version of the harness reads entry points, so 'lm_eval --tasks occugender' works "
            "without a link."
        )
        return 0
    state = linking.link()
    print(f"{len(state.stubs)} stubs written to {state.folder}; 'lm_eval --tasks occugender' works now.")
    return 0
