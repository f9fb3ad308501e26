"""``lm-eval-bias ls``: tasks, groups and suites with what they measure, and benchmarks' cards."""

from __future__ import annotations

import argparse
import json

from lm_eval_bias.core.errors import BiasError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="benchmark, task or group whose benchmark's tasks and scores are listed",
    )
    parser.add_argument(
        "--all", action="store_true", help="list every task, the harness's own included"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON, with each score's range and neutral value",
    )
    parser.add_argument(
        "--suites",
        action="store_true",
        help="list the suites of run --suite with their tasks, items and requests",
    )
    parser.add_argument(
        "--card",
        metavar="NAME",
        help="print the card of a benchmark (or of a task's benchmark): purpose, size, licence, flaws, misuse",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the list.

    Raises:
        BiasError: No such benchmark or card, or what can't be listed together.
    """
    from lm_eval_bias.core import catalog, registry
    from lm_eval_bias.report import listings

    asked = {
        "NAME": arguments.name,
        "--all": arguments.all,
        "--suites": arguments.suites,
        "--card": arguments.card,
    }
    given = [flag for flag, value in asked.items() if value not in (None, False)]
    if len(given) > 1:
        raise BiasError(f"{' and '.join(given)} can't be combined: give one of them")
    if arguments.card is not None:
        benchmark = listings.with_card(arguments.card)
        data = (
            json.dumps(listings.card_data(benchmark), indent=2, ensure_ascii=False)
            + "\n"
        )
        print(data if arguments.json else listings.card_text(benchmark), end="")
    elif arguments.suites:
        from lm_eval_bias.evaluation import suites

        listing = suites.listing()
        print(
            listings.suites(listing)
            if not arguments.json
            else json.dumps(listing, indent=2)
        )
    elif arguments.json:
        entries = catalog.listing()
        if arguments.name is not None:
            family = listings.family_of(arguments.name)
            entries = [
                one for one in entries if registry.family(one["benchmark"]) is family
            ]
        print(json.dumps(entries, indent=2, ensure_ascii=False))
    elif given:
        print(listings.tasks(arguments.name or ""))
    else:
        print(listings.benchmarks())
    return 0
