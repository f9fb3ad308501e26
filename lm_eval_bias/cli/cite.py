"""``lm-eval-bias cite``: the papers and packages that runs rest on, as BibTeX."""

from __future__ import annotations

import argparse
import os

from lm_eval_bias.cli import output
from lm_eval_bias.core import files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    parser.description = (
        "Write BibTeX of the benchmarks that were run, of those that they go back to, of the harness and of this "
        "package, with licences as comments."
    )
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="run folders or results_*.json, or names of benchmarks and tasks",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="file to write (default: standard output)",
    )
    output.add_choice(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the citations; return the exit status.

    Raises:
        BiasError: There is no run, or the file can't be written.
    """
    from lm_eval_bias.core import catalog, registry
    from lm_eval_bias.report import citing, listings, run_reports
    from lm_eval_bias.runs import run_discovery

    files.check_place(arguments.output, arguments.runs)
    known = {*registry.by_name(), *catalog.entries()}
    paths = [one for one in arguments.runs if one not in known or os.path.exists(one)]
    names = [one for one in arguments.runs if one not in paths]
    cited = citing.of_benchmarks(map(listings.family_of, names))
    if paths:
        runs, problems = run_discovery.read(paths)
        runs = output.chosen(arguments, runs, problems)
        cited += [one for one in citing.of_runs(runs) if one not in cited]
    text = run_reports.bibtex(cited) + "\n"
    output.deliver(text, arguments.output, str(arguments.output))
    return 0
