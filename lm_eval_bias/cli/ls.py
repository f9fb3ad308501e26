"""``lm-eval-bias ls``: tasks, groups and suites with what they measure, and benchmarks' cards."""

from __future__ import annotations

import argparse
import json

from lm_eval_bias.cli import output
from lm_eval_bias.core.errors import BiasError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
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
        "--language",
        type=output.names,
        default=(),
        metavar="CODE",
        help="only the tasks in these languages: de, or de,en (default: all)",
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
        BiasError: There is no such benchmark or card, or the flags can't be combined.
    """
    from lm_eval_bias.core import catalog
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
    if arguments.language and (arguments.card is not None or arguments.suites):
        raise BiasError("--language is for lists of tasks: leave it out")
    if arguments.card is not None:
        benchmark, card = listings.with_card(arguments.card)
        if arguments.json:
            _print_json(listings.card_data(benchmark, card))
        else:
            from lm_eval_bias.report import citing, run_reports

            print(listings.card_text(benchmark, card))
            print(run_reports.bibtex(citing.of_card(benchmark.name, card)))
    elif arguments.suites:
        from lm_eval_bias.evaluation import suites

        if arguments.json:
            _print_json(suites.listing())
        else:
            print(listings.suites(suites.listing()))
    elif arguments.json:
        entries = listings.entries(arguments.name or "", arguments.language)
        names = {entry.name for entry in entries}
        _print_json([one for one in catalog.listing() if one["name"] in names])
    elif given or arguments.language:
        entries = listings.entries(arguments.name or "", arguments.language)
        print(listings.tasks(entries))
    else:
        print(listings.benchmarks())
    return 0


def _print_json(data: object) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False))
