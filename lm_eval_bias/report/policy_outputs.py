"""What ``lm-eval-bias check`` says: to people, as JSON, and to machines that build (JUnit XML, Markdown)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lm_eval_bias.core.numbers import significant
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.core.run_data import Problem, Run
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.gate.policy_file import Bound
from lm_eval_bias.gate.verdict import GateFinding
from lm_eval_bias.report import tables, templates
from lm_eval_bias.report.tables import json_text
from lm_eval_bias.runs import remarks

Checked = Sequence[tuple[Run, Sequence[GateFinding]]]
_REQUIRED = {"interval": "the whole interval", "point": "the value"}
_MISSED = {"interval": "reaches", "point": "is", "evidence": "lies entirely"}


def required(finding: GateFinding) -> str:
    """What is asked for."""
    bound = finding.required
    if isinstance(bound, str):
        return bound
    low, high = (
        f"{bound.low:.15g}",
        f"{bound.high:.15g}",
    )  # as written: rounded, what violates it could seem to meet it
    if bound.on == "evidence":  # met unless the whole interval lies outside
        ends = [f"below {low}"] * math.isfinite(bound.low) + [
            f"above {high}"
        ] * math.isfinite(bound.high)
        return f"not shown to be {' or '.join(ends)}"
    if math.isinf(bound.low):
        return f"{_REQUIRED[bound.on]} at most {high}"
    if math.isinf(bound.high):
        return f"{_REQUIRED[bound.on]} at least {low}"
    return f"{_REQUIRED[bound.on]} within {low} and {high}"


def says(finding: GateFinding) -> str:
    """What is the matter; empty where the bound is met."""
    if isinstance(finding.required, Bound) and finding.side:
        return f"{_MISSED[finding.required.on]} {significant(finding.excess)} {finding.side}"
    return finding.problem


def as_json(
    checked: Checked, problems: Sequence[Problem], policy: str, holds: bool
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
                    "interval": finding.interval
                    and [finite(end) for end in finding.interval],
                    "excess": finite(finding.excess),
                    "why": finding.why,
                }
                for finding in findings
            ],
        }
        for run, findings in checked
    ]
    unreadable = [
        {"path": str(problem.path), "reason": problem.reason} for problem in problems
    ]
    return json_text(
        {"holds": holds, "policy": policy, "runs": runs, "unreadable": unreadable},
        indent=2,
    )


def _value(finding: GateFinding) -> str:
    """The score and its interval; empty where there is none."""
    ends = (
        ""
        if finding.interval is None
        else "[{}, {}]".format(*map(significant, finding.interval))
    )
    return "" if math.isnan(finding.value) else f"{significant(finding.value)} {ends}"


def _table(findings: Sequence[GateFinding], status: bool = False) -> Table:
    """A row per bound, with whether it holds in front where that isn't said elsewhere."""
    labels = ["", "Task", "Score", "Value [95%]", "Required", "Found", "Why"]
    rows = [
        [
            "holds" if one.holds else "VIOLATED",
            one.task,
            one.score,
            _value(one),
            required(one),
            says(one),
            one.why,
        ]
        for one in findings
    ]
    first = 0 if status else 1
    return Table(
        "",
        [Column(label) for label in labels[first:]],
        [list(map(Cell, row[first:])) for row in rows],
    )


def as_text(checked: Checked) -> str:
    """A table per run, what is violated first."""
    blocks = []
    for run, findings in checked:
        violated = sum(not finding.holds for finding in findings)
        verdict = (
            f"{violated} of {len(findings)} violated"
            if violated
            else f"all {len(findings)} hold"
        )
        table = _table(sorted(findings, key=lambda finding: finding.holds), status=True)
        blocks.append(
            f"{run.name} ({run.path}): {verdict}\n{tables.text_table(table)}\n"
        )
    return "\n".join(blocks)


_LONGEST = 60_000  # a comment on GitHub may have 65,536 characters


def _whole(finding: GateFinding) -> str:
    """A violated bound in a sentence."""
    why = f"why: {finding.why}" if finding.why else ""
    parts = filter(
        None,
        (
            _value(finding),
            f"required: {required(finding)}",
            f"but {says(finding)}",
            why,
        ),
    )
    return f"{finding.task or 'the run'}, {finding.score}: {'; '.join(parts)}"


def junit(checked: Checked, problems: Sequence[Problem]) -> str:
    """A suite per run, a case per bound, a failure where it is violated, an error where a run couldn't be read."""
    context = {"required": required, "says": says, "whole": _whole}
    return (
        templates.render("gate.xml.j2", checked=checked, problems=problems, **context)
        + "\n"
    )


def comment(checked: Checked, problems: Sequence[Problem], policy: str) -> str:
    """A comment for a pull request: the verdict, what is violated, and what holds behind a click."""
    context = {
        "policy": policy,
        "table_of": _table,
        "before_scores": remarks.before_scores,
    }
    text = templates.render("gate.md.j2", checked=checked, problems=problems, **context)
    if len(text) > _LONGEST:
        text = (
            text[: text.rindex("\n", 0, _LONGEST)]
            + "\n\nCut here: the rest is in the log.\n"
        )
    return text
