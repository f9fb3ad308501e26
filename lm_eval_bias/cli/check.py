"""``lm-eval-bias check``: a gate for release pipelines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lm_eval_bias.errors import BiasError, Parser
from lm_eval_bias.files import expanded

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
    from lm_eval_bias.report import policy_findings
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
        print(policy_findings.as_json(found, problems, args.policy, holds), end="")
    else:
        print(policy_findings.as_text(found), end="")
    for problem in problems:
        print(f"violated: {problem}", file=sys.stderr)
    return 0 if holds else 1
