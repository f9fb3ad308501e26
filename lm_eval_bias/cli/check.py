"""``lm-eval-bias check``: a gate for release pipelines."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lm_eval_bias.errors import BiasError, Parser
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


def parser() -> argparse.ArgumentParser:
    """The parser of the command's arguments."""
    made = Parser(
        prog="lm-eval-bias check",
        description="Hold the scores of runs against the bounds of a policy, and say which are violated.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("runs", nargs="*", metavar="RUN", help="run folders, results_*.json or run files")
    made.add_argument("--policy", metavar="FILE", help="the bounds, a YAML file")
    made.add_argument("--json", action="store_true", help="machine-readable")
    made.add_argument("--example", action="store_true", help="print a policy to start from")
    return made


def main(argv: Sequence[str]) -> int:
    """Check runs; returns the exit status.

    Raises:
        BiasError: Bad usage or input.
    """
    from lm_eval_bias.analysis import policy_file, policy_targets, policy_verdict
    from lm_eval_bias.runs.run_discovery import read as read_runs

    args = parser().parse_args(list(argv))
    if args.example:
        print(policy_file.example(), end="")
        return 0
    if not args.runs or not args.policy:
        raise BiasError("check needs RUN and --policy FILE ('lm-eval-bias check --example' prints a policy)")
    policy = policy_file.read(expanded(args.policy))
    runs, problems = read_runs(args.runs)
    policy_targets.refuse_unknown(policy, runs)
    found = [(run, policy_verdict.check(run, policy)) for run in runs]
    # a run that can't be read is one that nothing is known about: it must not make the others' pass look like its own
    holds = all(finding.holds for _, findings in found for finding in findings) and not problems
    if args.json:
        data = {
            "holds": holds,
            "policy": args.policy,
            "runs": [
                {
                    "run": run.name,
                    "path": str(run.path),
                    "holds": all(finding.holds for finding in findings),
                    "findings": [policy_verdict.as_data(finding) for finding in findings],
                }
                for run, findings in found
            ],
            "unreadable": [{"path": str(problem.path), "reason": problem.reason} for problem in problems],
        }
        print(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(_text(run, findings) for run, findings in found))
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
