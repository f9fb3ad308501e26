"""``lm-eval-bias agree``: which scores go together over models."""

from __future__ import annotations

import argparse

from lm_eval_bias import output_files
from lm_eval_bias.cli import output
from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.files import expanded, under

_EPILOG = """examples:
  lm-eval-bias agree runs/
  lm-eval-bias agree runs/ --scores ss,diff_bias_amb
  lm-eval-bias agree results/published/stereoset.csv -o languages.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    from lm_eval_bias.report.comparison_reports import CORRECTIONS

    parser.description = (
        "Correlate the ranks of models between scores: Spearman's and Kendall's coefficients with 95% intervals, and "
        "p-values that are exact for up to nine models. By default, correlate each main score between the languages, "
        "forms of asking and tasks of a benchmark, and the bias scores between benchmarks."
    )
    parser.epilog = _EPILOG
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="RUN",
        help="run folders, result files, CSV files as in results/published, or a folder of those",
    )
    parser.add_argument(
        "--scores", metavar="A,B", help="scores to correlate, all pairs of them (default: the main scores)"
    )
    parser.add_argument(
        "--task",
        action="append",
        default=[],
        metavar="TASK",
        help="only this task or group; repeat it, or separate several with commas",
    )
    parser.add_argument(
        "--correction",
        choices=CORRECTIONS,
        default="holm",
        help="correction for the number of tests: Holm (default), Benjamini-Hochberg or none",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write (default: standard output)")
    parser.add_argument(
        "--format",
        choices=(output_files.TEXT, *output_files.FORMATS),
        help="output format (default: by FILE's ending, else text)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Correlate; returns the exit status.

    Raises:
        BiasError: Bad usage, no run at all, nothing to correlate, or a file that can't be read or written.
    """
    from lm_eval_bias.analysis import board_building, published_scores, score_correlations
    from lm_eval_bias.report import correlation_reports
    from lm_eval_bias.runs import run_discovery

    form = output_files.format_of(arguments.format, arguments.output, without=output_files.TEXT)
    names = output.comma_separated([arguments.scores]) if arguments.scores is not None else None
    tasks = board_building.resolved(output.comma_separated(arguments.task))
    for flag, given, own in (("--scores", arguments.scores is not None, names), ("--task", arguments.task, tasks)):
        if given and not own:
            raise BiasError(f"{flag} is empty: leave it out to take all")
    output_files.check_place(arguments.output, arguments.paths)
    tables = {path: published_scores.files_at(expanded(path)) for path in arguments.paths}
    folders = [path for path, own in tables.items() if not own or any(under(expanded(path), "*.json"))]
    runs, problems = run_discovery.read(folders, by_task=True) if folders else ([], [])
    problems += board_building.foreign(runs)
    rows = [row for own in tables.values() for path in own for row in published_scores.of_file(path)]
    output.name_problems(problems)

    def variables(scores: list[str] | None) -> list[score_correlations.Variable]:
        every = [*score_correlations.of_runs(runs, scores), *score_correlations.of_papers(rows, scores)]
        return [variable for variable in every if not tasks or variable.task in tasks]

    chosen = variables(names)
    for name in names or ():
        if all(variable.score != name for variable in chosen):
            known = {variable.score for variable in variables(None)}
            raise BiasError(f"--scores {name}: no task in these files has it.{did_you_mean(name, sorted(known))}")
    found = score_correlations.find(chosen, named=names is not None, correction=arguments.correction)
    remarks = score_correlations.remarks(runs, tasks)
    text = correlation_reports.render(form, found, arguments.correction, remarks, problems)
    output.deliver(text, arguments.output, f"{arguments.output}: {len(found)} correlations")
    return 0
