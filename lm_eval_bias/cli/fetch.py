"""``lm-eval-bias fetch``: downloads and verifies the pinned data."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets or files to download (default: all)")


def run(arguments: argparse.Namespace) -> int:
    """Fetch, and print where each file lies."""
    from lm_eval_bias.data.download import fetch

    for source, path in fetch(arguments.names):
        print(f"{source.name}: {source.size:,} bytes, SHA-256 verified, {source.licence}\n  {path}")
    return 0
