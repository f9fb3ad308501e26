"""``lm-eval-bias ls``: tasks, groups and suites with what they measure, and benchmarks' cards."""

from __future__ import annotations

import argparse
import json

from lm_eval_bias.core.errors import BiasError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.add_argument("--json", action="store_true", help="print JSON, with each score's range and neutral value")
    parser.add_argument(
        "--suites", action="store_true", help="list the suites of run --suite with their tasks, items and requests"
    )
    parser.add_argument(
        "--card",
        metavar="NAME",
        help="print the card of a benchmark (or of a task's benchmark): purpose, size, licence, flaws, misuse",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the list.

    Raises:
        BiasError: No such card, or one beside suites.
    """
    from lm_eval_bias.core import catalog
    from lm_eval_bias.report import cards, listings

    if arguments.card is not None:
        if arguments.suites:
            raise BiasError("--card and --suites can't be combined: give one of them")
        benchmark = cards.of(arguments.card)
        data = json.dumps(cards.as_data(benchmark), indent=2, ensure_ascii=False) + "\n"
        print(data if arguments.json else cards.text(benchmark), end="")
    elif arguments.suites:
        from lm_eval_bias.evaluation import suites

        listing = suites.listing()
        print(listings.suites(listing) if not arguments.json else json.dumps(listing, indent=2))
    elif arguments.json:
        print(json.dumps(catalog.listing(), indent=2, ensure_ascii=False))
    else:
        print(listings.tasks())
    return 0
