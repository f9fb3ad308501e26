"""Comparisons, in each format of ``lm-eval-bias compare``; as a page, sentences first, then one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter

from lm_eval_bias.comparing.findings import LEVEL, NOT_SHOWN, Finding, NotCompared
from lm_eval_bias.core import registry
from lm_eval_bias.core.numbers import (
    aim,
    bracketed_ends,
    count,
    difference,
    few,
    grouped,
    p_value,
)
from lm_eval_bias.core.page_parts import Cell, Table, numeric
from lm_eval_bias.core.run_data import Run
from lm_eval_bias.core.wording import number_cell, score_cell
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.report import board_reports, templates
from lm_eval_bias.report.tables import csv_text, json_text, titled

FORMATS = ("text", "md", "latex", "csv", "json")  # beside the page
BRACKETS = "95% intervals in brackets, each for itself: only p is corrected"
DETECTABLE = (
    "Detectable: the smallest true difference that this number of items would detect with 80% probability, by the "
    "first step of that correction."
)
PLAN = (
    "The true difference from a like model that is found with 80% probability, where the two models' errors are "
    "independent; on the same items models rather err together, so that smaller ones are found"
)
FAMILIES = {
    True: "primary scores (first family, chosen before looking)",
    False: "other scores (second family)",
}
NOT_COMPARED = "not compared"
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "not corrected"}


def record(finding: Finding, correction: str) -> dict[str, object]:
    """Turn a finding into a flat record with all that is needed to read it; missing numbers are ``nan``."""
    difference, score = finding.difference, finding.score
    return {
        "family": "primary" if finding.primary else "other",
        "what": finding.subject,
        "base": finding.base,
        "other": finding.other,
        "score": score.name,
        "base_value": finding.base_value,
        "other_value": finding.other_value,
        "difference": difference.value,
        "stderr": difference.stderr,
        "dof": difference.dof,
        "interval": difference.interval,
        "p": difference.p,
        "p_adjusted": finding.adjusted,
        "correction": correction,
        "test": difference.test,
        "detectable_alone": difference.detectable(),
        "smallest_detectable": finding.detectable,
        "detectable_at": finding.level,
        "paired": finding.paired,
        "items": finding.items,
        "outcome": finding.outcome,
        "finding": finding.verdict,
        "reason": difference.reason,
        "note": finding.note,
        "summary": score.summary,
        "range": (score.low, score.high),
        "neutral": score.neutral,
        "direction": score.direction,
        "unit": score.unit,
    }


def _cells(finding: Finding, several: bool, labelled: bool) -> list[Cell | str]:
    moved, unit = finding.difference, finding.score.unit
    sides = f"{finding.other}, against {finding.base}" if several else ""
    pairing = "" if finding.paired else "independent"
    first = "primary" if finding.primary else ""
    return [
        Cell(finding.subject, note=joined(sides, pairing)),
        score_cell(finding.score, first)
        if labelled
        else Cell(finding.score.name, note=first),
        number_cell(finding.base_value, unit),
        number_cell(finding.other_value, unit),
        Cell(
            difference(moved.value, unit),
            moved.value,
            bracketed_ends(moved.interval, unit, "+"),
        ),
        finding.verdict,
        Cell(p_value(moved.p), moved.p),
        Cell(p_value(finding.adjusted), finding.adjusted),
        Cell(difference(finding.detectable, unit, ""), finding.detectable),
        Cell(count(finding.items), finding.items),
        Cell(aim(finding.score), finding.score.neutral),
    ]


def _table(findings: Sequence[Finding], correction: str, labelled: bool) -> Table:
    """Make a row per finding; ``labelled`` names scores as people call them, else by technical names alone."""
    sides = {(finding.base, finding.other) for finding in findings}
    first = findings[0]
    names = ("Base", "Other") if len(sides) > 1 else (first.base, first.other)
    columns = [
        "Task",
        "Score",
        *numeric(*names, "Difference"),
        "Finding",
        *numeric("p", f"p ({CORRECTIONS[correction]})", "Detectable", "n"),
        "Neutral or best",
    ]
    rows = [_cells(finding, len(sides) > 1, labelled) for finding in findings]
    return Table(f"Differences with {BRACKETS}", columns, rows)


def _tables(
    findings: Sequence[Finding],
    correction: str,
    style: str,
    left_out: Sequence[NotCompared],
) -> str:
    """Write a table per comparison, in ``text`` and ``md`` with how to read it, and one of what was not compared."""
    pairs = grouped(((f.subject, f.base, f.other), f) for f in findings)
    lines = [legend(findings, correction), ""] if style != "latex" else []
    for (subject, base, other), pair in pairs.items():
        pairing = "the same items" if pair[0].paired else "independent"
        whole = _table(pair, correction, labelled=False)
        title = f"{subject}: {other} against {base} ({pairing}), {BRACKETS}"
        # the title says the task
        table = Table(title, whole.columns[1:], [row[1:] for row in whole.rows])
        lines.append(titled(style, table))
        if style != "latex":
            notes = {finding.note for finding in pair if finding.note}
            lines += [f"note: {note}" for note in sorted(notes)]
        lines.append("")
    if left_out:
        columns = ["Task", "Base", "Other", "Why"]
        rows = [[one.subject, one.base, one.other, one.reason] for one in left_out]
        lines.append(titled(style, Table("Not compared", columns, rows)))
    return "\n".join(lines).rstrip() + "\n"


def legend(findings: Sequence[Finding], correction: str) -> str:
    """Say how many differences of each family are significant, and how they were tested."""
    counts = []
    named = any(finding.primary for finding in findings)
    for primary, of in FAMILIES.items():
        adjusted = [f.adjusted for f in findings if f.primary == primary]
        tests = [p for p in adjusted if not math.isnan(p)]
        if tests:
            significant = sum(p <= LEVEL for p in tests)
            counts.append(
                f"{significant} of {len(tests)} {of if named else 'differences'}"
            )
    if not counts:
        return "None of these differences could be tested: the findings say why."
    methods = sorted({finding.difference.test for finding in findings})
    said = f"Significant at {100 * LEVEL:.0f}% by p ({CORRECTIONS[correction]}): {', '.join(counts)}"
    return f"{said}. p: {'; '.join(methods)}. {DETECTABLE}"


def plan(findings: Sequence[Finding], target: float, style: str) -> str:
    """Write what differences a run's primary scores could tell with 80% probability, as :func:`render` writes findings.

    Args:
        findings: Of :func:`~lm_eval_bias.comparing.findings.plan`.
        target: The difference to be told, as a share of half the range.
        style: The format.
    """
    if style in ("csv", "json"):
        return render(findings, "holm", style)
    rows = []
    for finding in findings:
        score, alone = finding.score, finding.difference.detectable()
        wanted = target * (score.high - score.low) / 2
        # errors fall with the root of the number of clusters
        times = (finding.difference.detectable(finding.level) / wanted) ** 2
        told = [
            difference(number, score.unit, "")
            for number in (alone, finding.detectable, wanted)
        ]
        told[-1] = f"{times:.2g} for {told[-1]}"
        rows.append([finding.subject, score.name, count(finding.items), *told])
    corrected = f"among {len(rows)} (Holm)"
    columns = ["Task", "Score", *numeric("n", "Alone", corrected, "Times the items")]
    return titled(style, Table(PLAN, columns, rows)) + "\n"


def render(
    findings: Sequence[Finding],
    correction: str,
    style: str,
    left_out: Sequence[NotCompared] = (),
) -> str:
    """Write findings as ``text``, ``md``, ``latex``, ``csv`` (a row each) or ``json``.

    Args:
        findings: At least one.
        correction: What their p-values are corrected by.
        style: The format.
        left_out: What was not compared; in ``csv`` and ``json`` a row each, without numbers.
    """
    if style in ("text", "md", "latex"):
        return _tables(findings, correction, style, left_out)
    rows = [record(finding, correction) for finding in findings]
    for one in left_out:
        row: dict[str, object] = dict.fromkeys(rows[0])
        row |= {
            "family": NOT_COMPARED,
            "what": one.subject,
            "base": one.base,
            "other": one.other,
            "outcome": NOT_SHOWN,
            "finding": NOT_COMPARED,
            "reason": one.reason,
        }
        rows.append(row)
    if style == "csv":
        return csv_text(list(rows[0]), (row.values() for row in rows))
    return json_text(rows, indent=2)


def _sentences(findings: Sequence[Finding]) -> list[str]:
    """Say what differs in a benchmark, alike verdicts together, the clearest first."""
    significant = [finding for finding in findings if finding.significant]
    significant.sort(key=attrgetter("adjusted"))
    places = grouped(
        (finding.verdict, f"{finding.score.title} ({finding.subject})")
        for finding in significant
    )
    said = [f"{verdict}: {few(where, 4)}" for verdict, where in places.items()]
    return said or ["no significant difference"]


def _notes(findings: Sequence[Finding]) -> list[str]:
    """Collect the notes, each with the comparisons that it is about."""
    about = grouped(
        (finding.note, f"{finding.subject} ({finding.other} and {finding.base})")
        for finding in findings
        if finding.note
    )
    return [f"{few(compared, 4)}: {note}" for note, compared in about.items()]


def page(
    findings: Sequence[Finding],
    runs: Sequence[Run],
    correction: str,
    left_out: Sequence[NotCompared],
) -> str:
    """Write findings as a page.

    Args:
        findings: At least one.
        runs: The runs that were compared.
        correction: What their p-values are corrected by.
        left_out: What was not compared.
    """
    groups = {}
    listed = []
    for benchmark in registry.benchmarks():
        members = [f for f in findings if f.definition.family is benchmark]
        if members:
            groups[benchmark.title or benchmark.name] = _sentences(members)
            listed += members
    return templates.render(
        "comparison.html.j2",
        bases=list(dict.fromkeys(finding.base for finding in findings)),
        others=list(dict.fromkeys(finding.other for finding in findings)),
        groups=groups,
        legend=legend(findings, correction),
        left_out=list(map(str, left_out)),
        table_of_all=_table(listed, correction, labelled=True),
        notes=_notes(findings),
        origins=board_reports.origins(runs),
    )
