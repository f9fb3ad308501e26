"""``lm-eval-bias link``: lets plain ``lm_eval --tasks occugender`` find the tasks."""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.add_argument("--remove", action="store_true", help="remove what link wrote, and nothing else")


def run(arguments: argparse.Namespace) -> int:
    """Link, unless the harness finds the tasks by itself, or remove the links.

    Returns:
        2 where links were left because someone changed them.
    """
    from lm_eval_bias.harness import linking

    if arguments.remove:
        removed, changed = linking.unlink()
        for path in changed:
            print(f"kept, because it was changed after it was linked: {path}", file=sys.stderr)
        print(f"{removed} stubs removed." if removed or changed else "Nothing was linked.")
        return 2 if changed else 0
    if linking.unnecessary():
        print(
            "Nothing to link: this version of the harness reads entry points, so 'lm_eval --tasks occugender' works "
            "without a link."
        )
        return 0
    state = linking.link()
    print(f"{len(state.stubs)} stubs written to {state.folder}; 'lm_eval --tasks occugender' works now.")
    return 0
