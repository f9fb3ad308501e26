"""What ``lm-eval-bias check`` says: to people, as JSON, and to machines that build (JUnit XML, Markdown)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter

from lm_eval_bias.core.numbers import significant
from lm_eval_bias.core.page_parts import Table
from lm_eval_bias.core.run_data import Problem, Run
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.gate.policy_file import Bound
from lm_eval_bias.gate.verdict import GateFinding
from lm_eval_bias.report import tables, templates
from lm_eval_bias.runs import remarks

Checked = Sequence[tuple[Run, Sequence[GateFinding]]]
_REQUIRED = {"interval": "the whole interval", "point": "the value"}
_MISSED = {"interval": "reaches", "point": "is", "evidence": "lies entirely"}


def required(finding: GateFinding) -> str:
    """Say what a bound asks for."""
    bound = finding.required
    if isinstance(bound, str):
        return bound
    # as written: rounded, what violates it could seem to meet it
    low, high = f"{bound.low:.15g}", f"{bound.high:.15g}"
    if bound.on == "evidence":  # met unless the whole interval lies outside
        ends = []
        if math.isfinite(bound.low):
            ends.append(f"below {low}")
        if math.isfinite(bound.high):
            ends.append(f"above {high}")
        return f"not shown to be {' or '.join(ends)}"
    if math.isinf(bound.low):
        return f"{_REQUIRED[bound.on]} at most {high}"
    if math.isinf(bound.high):
        return f"{_REQUIRED[bound.on]} at least {low}"
    return f"{_REQUIRED[bound.on]} within {low} and {high}"


def says(finding: GateFinding) -> str:
    """Say how a bound is missed; "" where it is met."""
    if isinstance(finding.required, Bound) and finding.side:
        return f"{_MISSED[finding.required.on]} {significant(finding.excess)} {finding.side}"
    return finding.problem


def as_json(
    checked: Checked, problems: Sequence[Problem], policy: str, holds: bool
) -> str:
    """Write all findings as JSON; ``null`` for what isn't there."""
    runs = []
    for run, findings in checked:
        entries = [
            {
                "task": finding.task or None,
                "score": finding.score,
                "holds": finding.holds,
                "says": says(finding),
                "bound": required(finding),
                "value": finding.value,
                "interval": finding.interval,
                "excess": finding.excess,
                "why": finding.why,
            }
            for finding in findings
        ]
        passed = all(finding.holds for finding in findings)
        about = {"run": run.name, "path": str(run.path), "holds": passed}
        runs.append({**about, "findings": entries})
    unreadable = [problem.as_data() for problem in problems]
    data = {"holds": holds, "policy": policy, "runs": runs, "unreadable": unreadable}
    return tables.json_text(data, indent=2)


def _value(finding: GateFinding) -> str:
    """Write the score and its interval; "" without a value."""
    if math.isnan(finding.value):
        return ""
    ends = ""
    if finding.interval is not None:
        low, high = finding.interval
        ends = f"[{significant(low)}, {significant(high)}]"
    return f"{significant(finding.value)} {ends}"


def _table(findings: Sequence[GateFinding], status: bool = False) -> Table:
    """Make a row per bound; ``status`` puts in front whether it holds."""
    labels = ["", "Task", "Score", "Value [95%]", "Required", "Found", "Why"]
    first = 0 if status else 1
    rows = []
    for finding in findings:
        texts = [
            "holds" if finding.holds else "VIOLATED",
            finding.task,
            finding.score,
            _value(finding),
            required(finding),
            says(finding),
            finding.why,
        ]
        rows.append(texts[first:])
    return Table("", labels[first:], rows)


def as_text(checked: Checked) -> str:
    """Write a table per run, what is violated first."""
    blocks = []
    for run, findings in checked:
        violated = sum(not finding.holds for finding in findings)
        verdict = f"all {len(findings)} hold"
        if violated:
            verdict = f"{violated} of {len(findings)} violated"
        table = _table(sorted(findings, key=attrgetter("holds")), status=True)
        blocks.append(
            f"{run.name} ({run.path}): {verdict}\n{tables.text_table(table)}\n"
        )
    return "\n".join(blocks)


_LONGEST = 60_000  # a comment on GitHub may have 65,536 characters


def _whole(finding: GateFinding) -> str:
    """Put a violated bound into a sentence."""
    parts = [f"required: {required(finding)}", f"but {says(finding)}"]
    if finding.why:
        parts.append(f"why: {finding.why}")
    text = joined(_value(finding), *parts)
    return f"{finding.task or 'the run'}, {finding.score}: {text}"


def junit(checked: Checked, problems: Sequence[Problem]) -> str:
    """Write a suite per run and a case per bound: a failure where it is violated, an error for an unreadable run."""
    context = {"required": required, "says": says, "whole": _whole}
    text = templates.render(
        "gate.xml.j2", checked=checked, problems=problems, **context
    )
    return f"{text}\n"


def comment(checked: Checked, problems: Sequence[Problem], policy: str) -> str:
    """Write a comment for a pull request: the verdict, what is violated, and what holds behind a click."""
    context = {
        "policy": policy,
        "table_of": _table,
        "before_scores": remarks.before_scores,
    }
    text = templates.render("gate.md.j2", checked=checked, problems=problems, **context)
    if len(text) > _LONGEST:
        kept = text[: text.rindex("\n", 0, _LONGEST)]
        return f"{kept}\n\nCut here: the rest is in the log.\n"
    return text
