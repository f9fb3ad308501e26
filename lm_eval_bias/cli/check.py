"""``lm-eval-bias check``: a gate for release pipelines."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lm_eval_bias.cli.output import Which, share
from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError, kind_of
from lm_eval_bias.core.files import expanded

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import Run
    from lm_eval_bias.gate.verdict import GateFinding
    from lm_eval_bias.report.policy_outputs import GateVerdict

_COMMAND = Path("lm-eval-bias check")  # in the place of a run where none is named
# flags on which a verdict depends, beside its files
_DECIDING = (
    "margin", "require_shown", "strict", "weights", "tasks", "language",
)  # fmt: skip


@dataclass(kw_only=True)
class CheckOptions(Which):
    """Options for the base of the comparison and the output of the verdict.

    Attributes:
        policy (FILE): YAML file with the bounds
        base (RUN): an earlier run: fail if a primary score or an ability is shown to be worse than in it (the paired
            test of compare, corrected for the number of scores), or if only one of the runs has a task
        margin (SHARE): with --base: by how much a score may be worse (default 0; 0.05 or 5% is five points of a score
            in percent); margins in the policy take precedence
        require_shown: with --base: fail also if a score isn't shown to be within its margin
        weights (MODEL): fail if the run used other weights, by its recorded hashes: a checkpoint's folder
            or file, by content, or a model of the Hub in the cache, by commit; or --model_args that name them:
            pretrained=NAME,revision=REVISION,peft=FOLDER
        strict: recompute every score from the saved answers and check the SHA-256 of the files; fail where
            anything differs
        json: print the findings as JSON
        junit (FILE): also write the findings to FILE as JUnit XML
        markdown (FILE): also write the findings to FILE as Markdown, such as for a comment
    """

    policy: str | None = None
    base: str | None = None
    margin: str | None = None
    require_shown: bool = False
    weights: str | None = None
    strict: bool = False
    json: bool = False
    junit: str | None = None
    markdown: str | None = None
    once = ("policy", "base")


def check(
    runs: Sequence[str] = (), *, options: CheckOptions, example: bool = False
) -> int:
    """Check scores against the bounds of a policy.

    Those that are violated are listed. A run with other options, data or prompts
    than the task's own, or on only part of its items, is a violation unless the
    policy allows it by name.

    Args:
        runs (RUN): run folders or results_*.json, or NAME=PATH with a name for the model
        example: print a sample policy to start from

    exit status: 0 all bounds pass; 1 a bound is violated, or one of several runs
    can't be read; 2 bad usage or input, or nothing could be read: there is no
    verdict; the files of --junit and --markdown are written in each case, but for
    unknown flags

    Example:
      lm-eval-bias check --example > policy.yaml
      lm-eval-bias run --suite quick --model hf --model_args pretrained=... --output_path OUT --log_samples
      lm-eval-bias check OUT --policy policy.yaml --strict --weights ./model
      lm-eval-bias check OUT --base LASTWEEK --margin 0.05
    """
    from lm_eval_bias.core.run_data import Problem
    from lm_eval_bias.gate import policy_file
    from lm_eval_bias.report.policy_outputs import GateVerdict

    if example:
        print(policy_file.example(), end="")
        return 0
    deciding = {name: getattr(options, name) for name in _DECIDING}
    outcome = GateVerdict(options.policy or "", options=deciding)
    _check_places(runs, options)
    try:
        _check_usage(runs, options)
        if options.margin:
            outcome.options["margin"] = share(options.margin)
        _judge(runs, options, outcome)
    except Exception as error:  # yesterday's verdict must not stay
        place = Path(runs[0]) if runs else _COMMAND
        outcome.problems.append(Problem(place, kind_of(error)))
        outcome.is_complete = False
        _report(options, outcome)
        raise
    _report(options, outcome)
    for problem in outcome.problems:
        print(f"violated: {problem}", file=sys.stderr)
    return 0 if outcome.passes else 1


def _check_places(runs: Sequence[str], options: CheckOptions) -> None:
    if options.junit and options.junit == options.markdown:
        raise BiasError(
            f"--junit and --markdown name the same file, {options.junit}: name two different files"
        )
    inputs = [
        *runs,
        *filter(None, (options.policy, options.base)),
    ]
    files.check_place(options.junit, inputs, "--junit")
    files.check_place(options.markdown, inputs, "--markdown")


def _check_usage(runs: Sequence[str], options: CheckOptions) -> None:
    needed = ("policy", "base", "strict", "weights")
    if not runs or not any(getattr(options, name) for name in needed):
        raise BiasError(
            "check needs RUN, and --policy FILE, --base RUN or --strict "
            "('lm-eval-bias check --example' prints a sample policy)"
        )
    for name in ("margin", "require_shown"):
        if getattr(options, name) not in (None, False) and not options.base:
            raise BiasError(f"--{name.replace('_', '-')} goes with --base")


def _judge(paths: Sequence[str], options: CheckOptions, outcome: GateVerdict) -> None:
    """Read the policy and the runs, and judge them."""
    from lm_eval_bias.gate import policy_file, regression, verdict
    from lm_eval_bias.report.policy_outputs import RunVerdict
    from lm_eval_bias.runs import diagnostics
    from lm_eval_bias.runs.choosing import choose
    from lm_eval_bias.runs.run_discovery import read as read_runs

    policy = policy_file.Policy(())
    if options.policy:
        policy = policy_file.read(expanded(options.policy))
    runs, outcome.problems = read_runs(paths)
    bases: list[Run] = []
    if options.base:
        bases, problems = read_runs([options.base])
        outcome.problems += problems
        if len(bases) != 1:
            raise BiasError(f"--base {options.base}: holds {len(bases)} runs: name one")
    runs, left_out = choose(runs, options.tasks, options.language)
    if bases:
        bases, _ = choose(bases, options.tasks, options.language)
    runs, bases = (
        [diagnostics.without(run, policy.allow) for run in some]
        for some in (runs, bases)
    )
    of_base: list[GateFinding] = []
    for base in bases if options.strict else ():
        for finding in verdict.recomputed(base, policy):
            of_base.append(replace(finding, score=f"base: {finding.score}"))
    for run in runs:
        compared = {name for base in bases for name in base.tasks}
        findings = verdict.check(run, policy, compared)
        for problem in left_out:
            if problem.path == run.path:
                findings.append(verdict.information("", "choice", problem.reason))
        for base in bases:
            allowed = outcome.options["margin"] or 0.0
            findings += regression.regressions(
                run, base, allowed, policy.margins, options.require_shown
            )
        if options.weights:
            findings.append(verdict.of_weights(run, options.weights))
        if options.strict:
            findings += verdict.recomputed(run, policy)
        if not policy.refuse and not any(one.is_checked for one in findings):
            raise BiasError(
                f"{run.name}: nothing to check: give a policy with bounds, --base RUN or --strict"
            )
        earlier = bases[0] if bases else None
        outcome.runs.append(RunVerdict(run, findings + of_base, earlier))


def _report(options: CheckOptions, outcome: GateVerdict) -> None:
    """Print the verdict, and write it to the requested files."""
    if options.json:
        print(outcome.json(), end="")
    elif outcome.is_complete:
        print(outcome.text(), end="")
    if options.junit:
        files.write(outcome.junit(), options.junit)
    if options.markdown:
        files.write(outcome.markdown(), options.markdown)
