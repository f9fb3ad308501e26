"""What ``lm-eval-bias check`` says of runs held against a policy."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lm_eval_bias.analysis.policy_file import Bound
from lm_eval_bias.analysis.policy_verdict import Finding
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.report.numbers import significant
from lm_eval_bias.report.tables import grid, json_text
from lm_eval_bias.runs.run_data import Problem, Run

_REQUIRED = {"interval": "the whole interval", "point": "the value", "evidence": "a part of the interval"}
_MISSED = {"interval": "reaches", "point": "is", "evidence": "lies entirely"}


def required(finding: Finding) -> str:
    """What is asked for."""
    bound = finding.required
    if isinstance(bound, str):
        return bound
    low, high = f"{bound.low:.15g}", f"{bound.high:.15g}"  # as written: rounded, what violates it could seem to meet it
    if math.isinf(bound.low):
        return f"{_REQUIRED[bound.on]} at most {high}"
    if math.isinf(bound.high):
        return f"{_REQUIRED[bound.on]} at least {low}"
    return f"{_REQUIRED[bound.on]} within {low} and {high}"


def says(finding: Finding) -> str:
    """What is the matter; empty where the bound is met."""
    if isinstance(finding.required, Bound) and finding.side:
        return f"{_MISSED[finding.required.on]} {significant(finding.excess)} {finding.side}"
    return finding.problem


def as_json(
    checked: Sequence[tuple[Run, Sequence[Finding]]], problems: Sequence[Problem], policy: str, holds: bool
) -> str:
    """All findings; ``null`` for what isn't there."""
    runs = [
        {
            "run": run.name,
            "path": str(run.path),
            "holds": all(finding.holds for finding in findings),
            "findings": [
                {
                    "task": finding.task or None,
                    "score": finding.score,
                    "holds": finding.holds,
                    "says": says(finding),
                    "bound": required(finding),
                    "value": finite(finding.value),
                    "interval": finding.interval and [finite(end) for end in finding.interval],
                    "excess": finite(finding.excess),
                    "why": finding.why,
                }
                for finding in findings
            ],
        }
        for run, findings in checked
    ]
    unreadable = [{"path": str(problem.path), "reason": problem.reason} for problem in problems]
    return json_text({"holds": holds, "policy": policy, "runs": runs, "unreadable": unreadable}, indent=2)


def value_text(finding: Finding) -> str:
    """The score and its interval; empty where there is none."""
    ends = "" if finding.interval is None else "[{}, {}]".format(*map(significant, finding.interval))
    return "" if math.isnan(finding.value) else f"{significant(finding.value)} {ends}"


def _row(finding: Finding) -> list[str]:
    value = value_text(finding)
    status = "holds" if finding.holds else "VIOLATED"
    return [status, finding.task, finding.score, value, required(finding), says(finding), finding.why]


def as_text(checked: Sequence[tuple[Run, Sequence[Finding]]]) -> str:
    """A table per run, what is violated first."""
    blocks = []
    for run, findings in checked:
        violated = sum(not finding.holds for finding in findings)
        verdict = f"{violated} of {len(findings)} violated" if violated else f"all {len(findings)} hold"
        rows = map(_row, sorted(findings, key=lambda finding: finding.holds))
        table = grid(["", "Task", "Score", "Value [95%]", "Required", "Found", "Why"], rows)
        blocks.append(f"{run.name} ({run.path}): {verdict}\n{table}\n")
    return "\n".join(blocks)
