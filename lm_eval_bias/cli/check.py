"""``lm-eval-bias check``: a gate for release pipelines."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias.cli.output import Parser, add_choice, margin
from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError, kind_of
from lm_eval_bias.core.files import expanded, read_text, writing

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import Run
    from lm_eval_bias.gate.verdict import GateFinding
    from lm_eval_bias.report.policy_outputs import Judged

_COMMAND = Path("lm-eval-bias check")  # in the place of a run where none is named
# flags on which a verdict depends, beside its files
_DECIDING = (
    "margin", "require_shown", "strict", "weights", "newer_than", "tasks", "language",
)  # fmt: skip
_EPILOG = """exit status: 0 all bounds hold; 1 a bound is violated, or one of several runs can't be read; 2 bad usage or
input, or nothing could be read: there is no verdict; the files of --junit and --markdown are written whatever happens

example:
  lm-eval-bias check --example > policy.yaml
  lm-eval-bias run --suite quick --model hf --model_args pretrained=... --output_path OUT --log_samples
  lm-eval-bias check OUT --policy policy.yaml --strict --weights ./model
  lm-eval-bias check OUT --base LASTWEEK --margin 0.05
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    parser.description = (
        "Check the scores of runs against the bounds of a policy, and list those that are violated. A run with other "
        "options, data or prompts than the task's own, or on only part of its items, is a violation unless the policy "
        "allows it by name."
    )
    parser.epilog = _EPILOG
    if isinstance(parser, Parser):
        parser.on_error = _no_verdict
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="run folders or results_*.json, or NAME=PATH with a name for the model",
    )
    parser.add_argument(
        "--policy", action=_Once, metavar="FILE", help="YAML file with the bounds"
    )
    parser.add_argument(
        "--base",
        action=_Once,
        metavar="RUN",
        help="an earlier run: a primary score or an ability that is shown to be worse than there is a violation (the "
        "paired test of compare, corrected for the number of scores), and so is a task that only one of the runs has",
    )
    parser.add_argument(
        "--margin",
        type=margin,
        metavar="SHARE",
        help="with --base: by how much a score may be worse (default 0; 0.05 or 5%% is five points of a score in "
        "percent); the policy's margins go before",
    )
    parser.add_argument(
        "--require-shown",
        action="store_true",
        help="with --base: a score that isn't shown to be within its margin is a violation, too",
    )
    add_choice(parser)
    parser.add_argument(
        "--weights",
        metavar="MODEL",
        help="a run whose recorded hashes aren't those of these weights is a violation: a checkpoint's folder or file, "
        "by content, or a "
        "model of the Hub in the cache, by commit; or --model_args that name them: pretrained=NAME,revision=REVISION,"
        "peft=FOLDER",
    )
    parser.add_argument(
        "--newer-than",
        type=_moment,
        metavar="TIME",
        help="a run that was begun earlier is a violation: a time in UTC, such as 2026-11-27T23:59",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="recompute every score from the saved answers that are compared, and check the SHA-256 of its files; "
        "what differs is a violation",
    )
    parser.add_argument(
        "--evidence",
        metavar="FILE",
        help="an earlier verdict (--json): other runs, files, base, policy, flags or findings than there are a "
        "violation",
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


class _Once(argparse.Action):
    """A flag of which the second value would silently replace the first."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest):
            parser.error(f"{option_string} is given twice: name one")
        setattr(namespace, self.dest, values)


def _moment(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text}: give a time, such as 2026-11-27T23:59"
        ) from error
    if moment.tzinfo:
        moment = moment.astimezone(timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def run(arguments: argparse.Namespace) -> int:
    """Check runs; return the exit status. Files of a verdict are written whatever happens.

    Raises:
        BiasError: Bad usage or input.
    """
    from lm_eval_bias.core.run_data import Problem
    from lm_eval_bias.gate import policy_file
    from lm_eval_bias.report.policy_outputs import Judged

    if arguments.example:
        print(policy_file.example(), end="")
        return 0
    options = {name: getattr(arguments, name) for name in _DECIDING}
    judged = Judged(arguments.policy or "", options=options)
    _check_places(arguments)
    try:
        _check_usage(arguments)
        _judge(arguments, judged)
    except Exception as error:  # yesterday's verdict must not stay
        place = Path(arguments.runs[0]) if arguments.runs else _COMMAND
        judged.problems.append(Problem(place, kind_of(error)))
        judged.is_complete = False
        _tell(arguments, judged)
        raise
    _tell(arguments, judged)
    for problem in judged.problems:
        print(f"violated: {problem}", file=sys.stderr)
    return 0 if judged.holds else 1


def _no_verdict(given: Sequence[str], message: str) -> None:
    """Write the files of a verdict that can't be reached, since the arguments are wrong."""
    from lm_eval_bias.core.run_data import Problem
    from lm_eval_bias.report.policy_outputs import Judged

    outputs = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ("--junit", "--markdown"):
        outputs.add_argument(flag, nargs="?")
    arguments, _ = outputs.parse_known_args(given)
    arguments.json = False
    named = [arguments.junit, arguments.markdown]
    with contextlib.suppress(BiasError):  # it is about to be told what is wrong
        for name in filter(None, named):
            inputs = [text for text in given if text not in named]
            files.check_place(name, inputs, "")
        _tell(arguments, Judged("", [], [Problem(_COMMAND, message)], False))


def _check_places(arguments: argparse.Namespace) -> None:
    if arguments.junit and arguments.junit == arguments.markdown:
        raise BiasError(
            f"--junit and --markdown name the same file, {arguments.junit}: name two different files"
        )
    inputs = [
        *arguments.runs,
        *filter(None, (arguments.policy, arguments.base, arguments.evidence)),
    ]
    files.check_place(arguments.junit, inputs, "--junit")
    files.check_place(arguments.markdown, inputs, "--markdown")


def _check_usage(arguments: argparse.Namespace) -> None:
    asked = ("policy", "base", "strict", "weights", "newer_than", "evidence")
    if not arguments.runs or not any(getattr(arguments, name) for name in asked):
        raise BiasError(
            "check needs RUN, and --policy FILE, --base RUN or --strict "
            "('lm-eval-bias check --example' prints a sample policy)"
        )
    for name in ("margin", "require_shown"):
        if getattr(arguments, name) not in (None, False) and not arguments.base:
            raise BiasError(f"--{name.replace('_', '-')} goes with --base")


def _judge(arguments: argparse.Namespace, judged: Judged) -> None:
    """Read the policy and the runs, and judge them."""
    from lm_eval_bias.gate import policy_file, regression, verdict
    from lm_eval_bias.report.policy_outputs import JudgedRun
    from lm_eval_bias.runs import diagnostics
    from lm_eval_bias.runs.choosing import choose
    from lm_eval_bias.runs.run_discovery import read as read_runs

    policy = policy_file.Policy(())
    if arguments.policy:
        policy = policy_file.read(expanded(arguments.policy))
    runs, judged.problems = read_runs(arguments.runs)
    bases: list[Run] = []
    if arguments.base:
        bases, problems = read_runs([arguments.base])
        judged.problems += problems
        if len(bases) != 1:
            raise BiasError(
                f"--base {arguments.base}: holds {len(bases)} runs: name one"
            )
    runs, left_out = choose(runs, arguments.tasks, arguments.language)
    if bases:
        bases, _ = choose(bases, arguments.tasks, arguments.language)
    runs, bases = (
        [diagnostics.without(run, policy.allow) for run in some]
        for some in (runs, bases)
    )
    of_base: list[GateFinding] = []
    for base in bases if arguments.strict else ():
        for finding in verdict.recomputed(base, policy):
            of_base.append(replace(finding, score=f"base: {finding.score}"))
    for run in runs:
        compared = {name for base in bases for name in base.tasks}
        findings = verdict.check(run, policy, compared)
        for problem in left_out:
            if problem.path == run.path:
                findings.append(verdict.told("", "choice", problem.reason))
        for base in bases:
            allowed = arguments.margin or 0.0
            findings += regression.regressions(
                run, base, allowed, policy.margins, arguments.require_shown
            )
        if arguments.newer_than:
            findings.append(verdict.made_after(run, arguments.newer_than))
        if arguments.weights:
            findings.append(verdict.made_by(run, arguments.weights))
        if arguments.strict:
            findings += verdict.recomputed(run, policy)
        if not policy.refuse and not any(one.is_checked for one in findings):
            raise BiasError(
                f"{run.name}: nothing to check: give a policy with bounds, --base RUN or --strict"
            )
        earlier = bases[0] if bases else None
        judged.runs.append(JudgedRun(run, findings + of_base, earlier))
    if arguments.evidence:
        evidence = files.read_json(expanded(arguments.evidence))
        if not isinstance(evidence, dict) or "options" not in evidence:
            raise BiasError(
                f"--evidence {arguments.evidence}: no verdict of check --json"
            )
        judged.verify(evidence)


def _tell(arguments: argparse.Namespace, judged: Judged) -> None:
    """Print the verdict, and write it to the files that were asked for."""
    if arguments.json:
        print(judged.as_json(), end="")
    elif judged.is_complete:
        print(judged.as_text(), end="")
    if arguments.junit:
        _write(arguments.junit, judged.junit())
    if arguments.markdown:
        _write(arguments.markdown, judged.comment())


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
