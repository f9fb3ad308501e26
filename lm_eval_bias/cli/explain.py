"""``lm-eval-bias explain``: one score of a run in full."""

from __future__ import annotations

import argparse

from lm_eval_bias.errors import BiasError, did_you_mean

_EPILOG = """example:
  lm-eval-bias explain OUT
  lm-eval-bias explain OUT stereotype_gap --task occugender_explicit
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.description = (
        "Explain a score: what it means, how it was computed, its worst groups, the items that move it most, what "
        "would change the verdict, and which conclusions it can't support."
    )
    parser.epilog = _EPILOG
    parser.add_argument("run", metavar="RUN", help="run folder, results_*.json or run file")
    parser.add_argument(
        "score",
        nargs="?",
        metavar="SCORE",
        help="name of the score (default: for each task, the main score furthest from neutral)",
    )
    parser.add_argument("--task", metavar="TASK", help="only this task")
    parser.add_argument("--items", type=int, default=3, metavar="N", help="number of items to show (default 3)")


def run(arguments: argparse.Namespace) -> int:
    """Print the explanations.

    Raises:
        BiasError: Bad usage or input.
    """
    from lm_eval_bias.cli import output
    from lm_eval_bias.report import explanations
    from lm_eval_bias.runs import run_discovery

    if arguments.items < 0:
        raise BiasError(f"--items {arguments.items}: must be 0 or more")
    runs, problems = run_discovery.read([arguments.run])
    output.name_problems(problems)
    pairs = [(one, task) for one in runs for task in one.tasks.values()]
    if arguments.task is not None:
        names = {task.task for _, task in pairs}
        pairs = [(one, task) for one, task in pairs if arguments.task in (task.task, task.base)]
        if not pairs:
            raise BiasError(
                f"--task {arguments.task}: not in this run, which has {', '.join(sorted(names))}."
                f"{did_you_mean(arguments.task, names)}"
            )
    if arguments.score is not None:
        known = {name for _, task in pairs for name in task.scores}
        pairs = [(one, task) for one, task in pairs if arguments.score in task.scores]
        if not pairs:
            raise BiasError(
                f"no score named {arguments.score!r} in {arguments.run}.{did_you_mean(arguments.score, known)}"
            )
    for number, (one, task) in enumerate((one, task) for one, task in pairs if task.scores):
        name = arguments.score or explanations.chosen(task)
        print(("\n" if number else "") + explanations.text(one, task, name, arguments.items), end="")
    return 0
