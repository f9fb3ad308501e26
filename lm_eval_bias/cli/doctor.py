"""``lm-eval-bias doctor``: versions, link and data, or one benchmark."""

from __future__ import annotations

import argparse
import json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--benchmark",
        metavar="NAME",
        help="check this benchmark instead, with random and planted answers: files, documents, names, scores, pages",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; status 1 where something is a problem."""
    from lm_eval_bias.cli import installation

    name = arguments.benchmark
    findings = installation.examine() if name is None else installation.examine_benchmark(name)
    if arguments.json:
        print(json.dumps([vars(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        for finding in findings:
            print(f"{finding.status:8} {finding.text}")
    return 1 if any(finding.status == "problem" for finding in findings) else 0
