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

    if arguments.suites:
        from lm_eval_bias.evaluation import suites

        print(suites.as_text() if not arguments.json else json.dumps(suites.listing(), indent=2))
    elif arguments.json:
        print(json.dumps(catalog.listing(), indent=2, ensure_ascii=False))
    else:
        _print_tables()
    return 0


def _print_tables() -> None:
    from tabulate import tabulate

    from lm_eval_bias import catalog

    entries = catalog.entries().values()
    rows = [[e.name, e.kind, e.benchmark, e.language, catalog.format_count(e.items), e.measures] for e in entries]
    headers = ["Name", "Kind", "Benchmark", "Lang", "Items", "Measures"]
    align = ("left", "left", "left", "left", "right", "left")
    print(tabulate(rows, headers=headers, tablefmt="simple", colalign=align))
    for benchmark in dict.fromkeys(e.benchmark for e in entries):
        scores = [
            [s.name, catalog.format_range(s), catalog.format_number(s.neutral), s.direction]
            for s in catalog.headline(benchmark)
        ]
        print(f"\nScores of {benchmark}")
        print(tabulate(scores, headers=["Score", "Range", "Neutral", "Reads as"], tablefmt="simple"))
