"""``lm-eval-bias report``: runs as a page to hand to someone, or as tables for a paper."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from lm_eval_bias.cli import output
from lm_eval_bias.errors import BiasError, require_extra


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.description = (
        "A report on runs: an HTML page that needs no network, with the items behind its scores in a folder beside it "
        "where the runs have sample logs; or tables for papers and programs."
    )
    parser.add_argument(
        "paths", nargs="+", metavar="RUN", help="result folders (with --log_samples for all figures) or run files"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to; html needs it, the others print without")
    parser.add_argument("--format", choices=output.FORMATS, help="default: by FILE's ending, else html")
    parser.add_argument(
        "--items",
        type=int,
        default=20,
        metavar="N",
        help="html, of runs with sample logs: a folder of pages beside the report with the N items that move each main "
        "score most, and N others (default 20; 0: none)",
    )
    parser.add_argument("--name", metavar="NAME", help="the model's name, as it shall stand there; for one run")


def run(arguments: argparse.Namespace) -> int:
    """Write the report; returns the exit status.

    Raises:
        BiasError: Bad usage, no run at all, or a file that cannot be written.
    """
    form = output.format_of(arguments.format, arguments.output, without="html")
    if form == "html" and arguments.output is None:
        raise BiasError("an HTML report needs a file: add -o report.html, or --format md|json|csv|latex to print one")
    if form == "html":
        require_extra("report")
    from lm_eval_bias.report import run_reports
    from lm_eval_bias.runs import printable_runs, run_discovery

    if arguments.items < 0:
        raise BiasError(f"--items {arguments.items}: must be 0 or more")
    output.check_place(arguments.output, arguments.paths)
    folder = output.folder_beside(arguments.output) if form == "html" and arguments.items else None
    runs, problems = run_discovery.read(arguments.paths)
    if arguments.name is not None:
        if len(runs) != 1:
            raise BiasError(f"--name is for one run, here are {len(runs)}: {', '.join(run.name for run in runs)}")
        runs = [replace(runs[0], name=arguments.name)]
    output.name_problems(problems)
    shown = printable_runs.runs(runs)
    pages = run_reports.items(shown, arguments.items, folder.name, Path(arguments.output).name) if folder else None
    text = run_reports.render(form, shown, problems, pages)
    if folder and pages and pages.files:
        output.deliver_folder(pages.files, folder)
    output.deliver(text, arguments.output, arguments.output)
    return 0
