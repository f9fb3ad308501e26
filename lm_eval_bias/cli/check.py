"""``lm-eval-bias check``: a gate for release pipelines."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded

if TYPE_CHECKING:
    from lm_eval_bias.analysis.policy_verdict import Finding
    from lm_eval_bias.runs.run_data import Run

_EPILOG = """exit status: 0 all bounds hold, 1 one is violated (or a run under RUN can't be read), 2 bad usage or input

example:
  lm-eval-bias check --example > policy.yaml
  lm-eval-bias run --suite quick --model hf --model_args pretrained=... --output_path OUT --log_samples
  lm-eval-bias check OUT --policy policy.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.description = "Hold the scores of runs against the bounds of a policy, and say which are violated."
    parser.epilog = _EPILOG
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run folders, results_*.json or run files")
    parser.add_argument("--policy", metavar="FILE", help="the bounds, a YAML file")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--example", action="store_true", help="print a policy to start from")


def run(arguments: argparse.Namespace) -> int:
    """Check runs; returns the exit status.

    Raises:
        BiasError: Bad usage or input.
    """
    from lm_eval_bias.analysis import policy_file, policy_targets, policy_verdict
    from lm_eval_bias.runs.run_discovery import read as read_runs

    if arguments.example:
        print(policy_file.example(), end="")
        return 0
    if not arguments.runs or not arguments.policy:
        raise BiasError("check needs RUN and --policy FILE ('lm-eval-bias check --example' prints a policy)")
    policy = policy_file.read(expanded(arguments.policy))
    runs, problems = read_runs(arguments.runs)
    policy_targets.refuse_unknown(policy, runs)
    checked = [(run, policy_verdict.check(run, policy)) for run in runs]
    # a run that can't be read is one that nothing is known about: it must not make the others' pass look like its own
    holds = all(finding.holds for _, findings in checked for finding in findings) and not problems
    if arguments.json:
        data = {
            "holds": holds,
            "policy": arguments.policy,
            "runs": [
                {
                    "run": run.name,
                    "path": str(run.path),
                    "holds": all(finding.holds for finding in findings),
                    "findings": [policy_verdict.as_data(finding) for finding in findings],
                }
                for run, findings in checked
            ],
            "unreadable": [{"path": str(problem.path), "reason": problem.reason} for problem in problems],
        }
        print(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(_text(run, findings) for run, findings in checked))
    for problem in problems:
        print(f"violated: {problem}", file=sys.stderr)
    return 0 if holds else 1


def _text(run: Run, findings: Sequence[Finding]) -> str:
    """A run's findings for people, what is violated first."""
    from tabulate import tabulate

    from lm_eval_bias.analysis.policy_verdict import number

    rows = []
    for finding in sorted(findings, key=lambda finding: finding.holds):
        ends = "" if finding.interval is None else "[{}, {}]".format(*map(number, finding.interval))
        value = "" if math.isnan(finding.value) else f"{number(finding.value)} {ends}"
        status = "holds" if finding.holds else "VIOLATED"
        rows.append([status, finding.task, finding.score, value, finding.bound, finding.says, finding.why])
    violated = sum(not finding.holds for finding in findings)
    said = f"{violated} of {len(findings)} violated" if violated else f"all {len(findings)} hold"
    headers = ["", "Task", "Score", "Value [95%]", "Asked for", "But", "Why"]
    return (
        f"{run.name} ({run.path}): {said}\n{tabulate(rows, headers=headers, tablefmt='simple', disable_numparse=True)}"
    )
