"""``lm-eval-bias unlink``: removes exactly what ``link`` wrote."""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(arguments: argparse.Namespace) -> int:
    """Unlink; status 2 where stubs were left because someone changed them."""
    from lm_eval_bias.harness import linking

    removed, changed = linking.unlink()
    for path in changed:
        print(f"kept, because it was changed after it was linked: {path}", file=sys.stderr)
    print(f"{removed} stubs removed." if removed or changed else "Nothing was linked.")
    return 2 if changed else 0
