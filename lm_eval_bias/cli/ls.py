"""``lm-eval-bias ls``: tasks, groups and suites with what they measure."""

from __future__ import annotations

import argparse
import json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.add_argument(
        "--json", action="store_true", help="machine-readable, with each score's range and neutral value"
    )
    parser.add_argument(
        "--suites", action="store_true", help="the suites of run --suite, with tasks, items and requests"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the list."""
    from lm_eval_bias import catalog
    from lm_eval_bias.report import listings

    if arguments.suites:
        from lm_eval_bias.evaluation import suites

        listing = suites.listing()
        print(listings.suites(listing) if not arguments.json else json.dumps(listing, indent=2))
    elif arguments.json:
        print(json.dumps(catalog.listing(), indent=2, ensure_ascii=False))
    else:
        print(listings.tasks())
    return 0
