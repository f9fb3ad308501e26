"""Comparisons, in each format of ``lm-eval-bias compare``; as a page, sentences first, then one table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lm_eval_bias.comparing.findings import LEVEL, Finding, Refusal
from lm_eval_bias.core import registry
from lm_eval_bias.core.numbers import (
    aim,
    bracketed_ends,
    difference,
    few,
    number,
    p_value,
)
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.core.run_data import Run
from lm_eval_bias.core.wording import score_cell
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.report import board_reports, templates
from lm_eval_bias.report.tables import csv_text, json_text, titled

FORMATS = ("text", "md", "latex", "csv", "json")  # beside the page
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "not corrected"}


def record(finding: Finding, correction: str) -> dict[str, object]:
    """A difference with all that is needed to read it; numbers that there aren't are ``nan``."""
    difference, score = finding.difference, finding.score
    return {
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
        "smallest_detectable": finding.detectable,
        "detectable_at": finding.level,
        "paired": finding.paired,
        "items": finding.items,
        "finding": finding.verdict,
        "reason": difference.reason,
        "note": finding.note,
        "summary": score.summary,
        "range": (score.low, score.high),
        "neutral": score.neutral,
        "direction": score.direction,
        "unit": score.unit,
    }


def _plain(value: object) -> object:
    """A field as JSON and CSV have it: ``None`` where there is no finite number."""
    if isinstance(value, tuple):
        return [finite(end) for end in value]
    return finite(value) if isinstance(value, float) else value


def _cells(finding: Finding, several: bool, labelled: bool) -> list[Cell]:
    moved, unit = finding.difference, finding.score.unit
    sides = f"{finding.other}, against {finding.base}" if several else ""
    pairing = "" if finding.paired else ", independent"
    return [
        Cell(
            finding.subject,
            note="; ".join(filter(None, (sides, f"{finding.items:,} items{pairing}"))),
        ),
        score_cell(finding.score) if labelled else Cell(finding.score.name),
        Cell(number(finding.base_value, unit), finding.base_value),
        Cell(number(finding.other_value, unit), finding.other_value),
        Cell(
            difference(moved.value, unit),
            moved.value,
            bracketed_ends(moved.interval, unit, "+"),
        ),
        Cell(finding.verdict),
        Cell(p_value(moved.p), moved.p),
        Cell(p_value(finding.adjusted), finding.adjusted),
        Cell(difference(finding.detectable, unit, ""), finding.detectable),
        Cell(aim(finding.score), finding.score.neutral),
    ]


def _table(findings: Sequence[Finding], correction: str, labelled: bool) -> Table:
    """A row per finding; scores are named as people call them, or by their technical names alone."""
    sides = {(finding.base, finding.other) for finding in findings}
    first = findings[0]
    names = ("Base", "Other") if len(sides) > 1 else (first.base, first.other)
    columns = [
        Column("Task"), Column("Score"), *(Column(name, True) for name in names), Column("Difference", True),
        Column("Finding"), Column("p", True), Column(f"p ({CORRECTIONS[correction]})", True),
        Column("Detectable", True), Column("Neutral or best"),
    ]  # fmt: skip
    rows = [_cells(finding, len(sides) > 1, labelled) for finding in findings]
    return Table("Differences with 95% intervals in brackets", columns, rows)


def _tables(findings: Sequence[Finding], correction: str, style: str) -> str:
    """A table per comparison, in ``text`` and ``md`` with how to read it."""
    pairs: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        pairs.setdefault((finding.subject, finding.base, finding.other), []).append(
            finding
        )
    lines = []
    for (subject, base, other), pair in pairs.items():
        notes = sorted(
            {
                f"note: {finding.note}"
                for finding in pair
                if finding.note and style != "latex"
            }
        )
        pairing = "the same items" if pair[0].paired else "independent"
        whole = _table(pair, correction, labelled=False)
        title = f"{subject}: {other} against {base} ({pair[0].items:,} items, {pairing}), 95% intervals in brackets"
        # the title says the task
        lines += [
            titled(
                style, Table(title, whole.columns[1:], [row[1:] for row in whole.rows])
            ),
            *notes,
            "",
        ]
    if style != "latex":
        lines.append(legend(findings, correction))
    return "\n".join(lines).rstrip() + "\n"


def legend(findings: Sequence[Finding], correction: str) -> str:
    """How many differences can be told, and how they were tested."""
    tests = sum(not math.isnan(finding.adjusted) for finding in findings)
    if not tests:
        return "None of these differences could be tested: the findings say why."
    methods = sorted(
        {finding.difference.test for finding in findings if finding.difference.test}
    )
    significant = sum(finding.significant for finding in findings)
    corrected = (
        ""
        if correction == "none"
        else f", corrected for the number of tests ({CORRECTIONS[correction]})"
    )
    said = f"Significant at {100 * LEVEL:.0f}%: {significant} of {tests} differences{corrected}"
    level = findings[0].level
    first_step = ", the first step of the correction" if level < LEVEL else ""
    return (
        f"{said}. p: {'; '.join(methods) or 'none'}. Detectable: the smallest true difference that this number of "
        f"items would detect with 80% probability, tested at {100 * level:.2g}%{first_step}."
    )


def render(findings: Sequence[Finding], correction: str, style: str) -> str:
    """Findings as ``text``, ``md``, ``latex``, ``csv`` (a row each) or ``json``.

    Args:
        findings: At least one.
        correction: What their p-values are corrected by.
        style: The format.
    """
    if style in ("text", "md", "latex"):
        return _tables(findings, correction, style)
    rows = [
        {key: _plain(value) for key, value in record(one, correction).items()}
        for one in findings
    ]
    if style == "csv":
        return csv_text(list(rows[0]), [list(row.values()) for row in rows])
    return json_text(rows, indent=2)


def _sentences(findings: Sequence[Finding]) -> list[str]:
    """What of a benchmark differs, alike verdicts together, the clearest first."""
    tests = sum(not math.isnan(finding.adjusted) for finding in findings)
    significant = sorted(
        (one for one in findings if one.significant), key=lambda one: one.adjusted
    )
    places: dict[str, list[str]] = {}
    for finding in significant:
        where = f"{finding.score.title} ({finding.subject})"
        places.setdefault(finding.verdict, []).append(where)
    lines = [f"{verdict}: {few(where, 4)}" for verdict, where in places.items()]
    return [
        f"{len(significant):,} of {tests:,} tested differences are significant",
        *lines,
    ]


def _notes(findings: Sequence[Finding]) -> list[str]:
    """What to beware of, each with the comparisons that it is about."""
    about: dict[str, dict[str, None]] = {}
    for finding in findings:
        if finding.note:
            about.setdefault(finding.note, {})[
                f"{finding.subject} ({finding.other} and {finding.base})"
            ] = None
    return [f"{few(list(which), 4)}: {note}" for note, which in about.items()]


def page(
    findings: Sequence[Finding],
    runs: Sequence[Run],
    correction: str,
    refused: Sequence[Refusal],
) -> str:
    """Findings as a page.

    Args:
        findings: At least one.
        runs: The runs that were compared.
        correction: What their p-values are corrected by.
        refused: Pairs that can't be compared.
    """
    groups: dict[str, list[Finding]] = {}
    for benchmark in registry.benchmarks():
        if own := [
            one for one in findings if registry.family(one.benchmark) is benchmark
        ]:
            groups[benchmark.title or benchmark.name] = own
    bases, others = (
        list(dict.fromkeys(getattr(one, side) for one in findings))
        for side in ("base", "other")
    )
    return templates.render(
        "comparison.html.j2",
        bases=bases,
        others=others,
        groups={title: _sentences(own) for title, own in groups.items()},
        legend=legend(findings, correction),
        refused=list(map(str, refused)),
        table_of_all=_table(
            [one for own in groups.values() for one in own], correction, labelled=True
        ),
        notes=_notes(findings),
        origins=board_reports.origins(runs),
    )
