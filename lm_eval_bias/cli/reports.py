"""The commands that write what people read of runs: reports, comparisons, boards, and what a paper needs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from lm_eval_bias import api
from lm_eval_bias.cli.output import (
    To,
    ToFile,
    Which,
    name_problems,
    read,
)
from lm_eval_bias.cli.signatures import Names
from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError, printable


@dataclass(kw_only=True)
class _ToReport(To):
    """Options for a report's output and its figures.

    Attributes:
        figures (DIR): folder to write figures into, as SVG and PDF, 6.7 inches wide: the primary
            scores; without -o and --format nothing else is written
    """

    figures: str | None = None
    formats = ("html", "md", "json", "csv", "latex")


class _ToMethods(To):
    formats = ("md", "latex")


def report(
    runs: Sequence[str],
    *,
    scores: Names = (),
    which: Which,
    to: _ToReport,
) -> None:
    """Write a page on runs, or tables for papers and programs.

    An HTML page needs no network. Where the runs have sample logs, it shows an
    item of each task.

    Args:
        runs (RUN): run folders or results_*.json (--log_samples lets it show prompts and texts), or NAME=PATH with a
            name for the model
        scores (A,B): scores in tables and pictures (default: each benchmark's main scores); tasks without them are left
            out
    """
    is_wanted = to.output or to.format or not to.figures
    is_printed = is_wanted and to.output is None
    if is_printed and to.style == "html":
        raise BiasError(
            "an HTML report needs a file: add -o report.html, or --format md|json|csv|latex to print one"
        )
    chosen = read(runs, which, to)
    made = chosen.report(scores)
    if to.figures:
        written = chosen.figures(to.figures, scores)
        stream = sys.stderr if is_printed else sys.stdout
        print(f"{to.figures}: {', '.join(written)}", file=stream)
    if is_wanted:
        to.deliver(made)


def compare(
    runs: Sequence[str],
    *,
    by: str = "run",
    base: str | None = None,
    scores: Names = (),
    unpaired: bool = False,
    which: Which,
    to: To,
) -> None:
    """Test whether models, languages or instructions differ.

    Compare scores item by item: clustered 95% intervals, p-values of Student's t
    on the same error, and the smallest difference that could have been found.

    Args:
        runs (RUN): run folders (--output_path) with the answers saved there, or NAME=PATH with a name for the model
        by (AXIS): what to compare: runs (run, the default), languages of each model (language), or a condition that a
            benchmark has, such as instruction
        base (NAME): baseline that the others are compared with (default: the first run; instruction none; language en)
        scores (A,B): scores to compare (default: each benchmark's main scores)
        unpaired: compare runs as independent where items, seeds or versions differ

    exit status: 0 done, 2 bad usage or input; 'lm-eval-bias check NEW --base OLD'
    fails where a score is worse

    Examples:
      lm-eval-bias compare base/ instruct/
      lm-eval-bias compare base/ instruct/ -o compare.html
      lm-eval-bias compare run/ --by instruction
      lm-eval-bias compare run/ --by language --base en --scores ss,icat
    """
    made = api.comparison(
        read(runs, which, to),
        by,
        base,
        scores,
        unpaired=unpaired,
    )
    lines = [f"{len(made.findings)} comparisons"]
    lines += [f"not compared: {printable(one)}" for one in made.left_out]
    to.deliver(made, "\n".join(lines))


def leaderboard(
    paths: Sequence[str],
    *,
    which: Which,
    to: To,
) -> None:
    """List runs beside the models in the published papers.

    A table per benchmark, with 95% intervals of the ranks.

    Args:
        paths (RUNS_DIR): folders with result files (results_*.json) at any depth, or NAME=PATH with a name for the
            model
    """
    files.check_place(to.output, paths)
    board = api.leaderboard(
        *paths,
        tasks=which.tasks,
        language=which.language,
    )
    name_problems(board.problems)
    counts = {"model": board.models, "run": board.runs, "task": board.boards}
    counted = [f"{len(of)} {name}{'s' * (len(of) != 1)}" for name, of in counts.items()]
    to.deliver(board, ", ".join(counted))


def methods(runs: Sequence[str], *, which: Which, to: _ToMethods) -> None:
    """Write the methods paragraphs of a paper on runs.

    From the runs' records: data, prompts, models, scores with formulas, intervals
    and tests with citations, and what was left out. The keys are those that 'cite'
    writes of the same runs.

    Args:
        runs (RUN): run folders or results_*.json
    """
    to.deliver(read(runs, which, to).methods())


def cite(runs: Sequence[str], *, which: Which, to: ToFile) -> None:
    """Write BibTeX for the sources of runs.

    Benchmarks, the works that they build on, the harness and this package, with
    licences as comments; 'ls --card NAME' writes those of a benchmark.

    Args:
        runs (RUN): run folders or results_*.json
    """
    to.write(read(runs, which, to).cite())
