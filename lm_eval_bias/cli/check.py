"""``lm-eval-bias check``: a gate for release pipelines."""

from __future__ import annotations

import argparse
import os
import sys

from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded, read_text, writing

_EPILOG = """exit status: 0 all bounds hold, 1 a bound is violated or a run can't be read, 2 bad usage or input

example:
  lm-eval-bias check --example > policy.yaml
  lm-eval-bias run --suite quick --model hf --model_args pretrained=... --output_path OUT --log_samples
  lm-eval-bias check OUT --policy policy.yaml --strict
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description = (
        "Check the scores of runs against the bounds of a policy, and list those that are violated. A run with other "
        "options, data or prompts than the task's own, or on only part of its items, is a violation unless the policy "
        "allows it by name."
    )
    parser.epilog = _EPILOG
    parser.add_argument(
        "runs", nargs="*", metavar="RUN", help="run folders or results_*.json"
    )
    parser.add_argument("--policy", metavar="FILE", help="YAML file with the bounds")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="recompute every score from the sample logs beside the results; a results file that differs is a "
        "violation. Needs the logs (run with --log_samples)",
    )
    parser.add_argument(
        "--as-logged",
        action="store_true",
        help="with --strict: keep what was read from logged texts when the run was made, instead of reading them by "
        "today's rules",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the findings as JSON"
    )
    parser.add_argument(
        "--junit", metavar="FILE", help="also write the findings to FILE as JUnit XML"
    )
    parser.add_argument(
        "--markdown",
        metavar="FILE",
        help="also write the findings to FILE as Markdown, such as for $GITHUB_STEP_SUMMARY",
    )
    parser.add_argument(
        "--example", action="store_true", help="print a sample policy to start from"
    )


def run(arguments: argparse.Namespace) -> int:
    """Check runs; return the exit status.

    Raises:
        BiasError: Bad usage or input.
    """
    from lm_eval_bias.gate import policy_file, verdict
    from lm_eval_bias.report import policy_outputs
    from lm_eval_bias.runs.run_discovery import read as read_runs

    if arguments.example:
        print(policy_file.example(), end="")
        return 0
    if not arguments.runs or not arguments.policy:
        raise BiasError(
            "check needs RUN and --policy FILE ('lm-eval-bias check --example' prints a sample policy)"
        )
    if arguments.junit and arguments.junit == arguments.markdown:
        raise BiasError(
            f"--junit and --markdown name the same file, {arguments.junit}: name two different files"
        )
    inputs = [*arguments.runs, arguments.policy]
    files.check_place(arguments.junit, inputs, "--junit")
    files.check_place(arguments.markdown, inputs, "--markdown")
    policy = policy_file.read(expanded(arguments.policy))
    runs, problems = read_runs(arguments.runs)
    checked = [(run, verdict.check(run, policy)) for run in runs]
    if arguments.strict:
        for run, findings in checked:
            findings += verdict.recomputed(run, arguments.as_logged)
    # nothing is known about a run that can't be read: it must not seem to pass with the others
    holds = not problems
    for _, findings in checked:
        holds &= all(finding.holds for finding in findings)
    if arguments.json:
        text = policy_outputs.as_json(checked, problems, arguments.policy, holds)
    else:
        text = policy_outputs.as_text(checked)
    print(text, end="")
    if arguments.junit:
        _write(arguments.junit, policy_outputs.junit(checked, problems))
    if arguments.markdown:
        text = policy_outputs.comment(checked, problems, arguments.policy)
        _write(arguments.markdown, text)
    for problem in problems:
        print(f"violated: {problem}", file=sys.stderr)
    return 0 if holds else 1


def _write(file: str, text: str) -> None:
    """Write a file whole; append to the summary of a step of GitHub Actions, which earlier commands may have begun.

    Raises:
        BiasError: It can't be written.
    """
    path = expanded(file)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary and path.exists() and path.resolve() == expanded(summary).resolve():
        with writing(file):
            text = f"{read_text(path)}\n{text}"
    files.write(text, file)
