"""Comparisons, in each format of ``lm-eval-bias compare``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lm_eval_bias.comparing.findings import LEVEL, Finding
from lm_eval_bias.core.numbers import NONE, aim, p_value
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.report.tables import csv_text, json_text, titled

FORMATS = ("text", "md", "latex", "csv", "json")
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


def _number(value: float, sign: str = "") -> str:
    """Four significant digits."""
    return "nan" if math.isnan(value) else f"{value:{sign}.4g}" if sign or abs(value) < 1000 else f"{value:,.0f}"


def values(finding: Finding) -> tuple[str, str, str, str]:
    """Both sides' values, the difference, and its interval in brackets."""
    difference = finding.difference
    ends = difference.interval
    return (
        _number(finding.base_value),
        _number(finding.other_value),
        _number(difference.value, "+"),
        "" if ends is None else f"[{_number(ends[0], '+')}, {_number(ends[1], '+')}]",
    )


def _row(finding: Finding) -> list[Cell]:
    difference = finding.difference
    texts = [
        finding.score.name,
        *values(finding),
        p_value(difference.p),
        p_value(finding.adjusted),
        NONE if math.isnan(finding.detectable) else _number(finding.detectable),
        aim(finding.score),
        finding.verdict,
    ]
    return list(map(Cell, texts))


def _table(findings: Sequence[Finding], correction: str) -> Table:
    """Two sides' scores."""
    first = findings[0]
    pairing = "the same items" if first.paired else "independent"
    title = f"{first.subject}: {first.other} against {first.base} ({first.items:,} items, {pairing})"
    numeric = [first.base, first.other, "Difference", "95% interval", "p", f"p ({CORRECTIONS[correction]})",
               "Detectable"]  # fmt: skip
    columns = [
        Column("Score"),
        *(Column(label, True) for label in numeric),
        Column("Neutral or best"),
        Column("Finding"),
    ]
    return Table(title, columns, list(map(_row, findings)))


def _tables(findings: Sequence[Finding], correction: str, style: str) -> str:
    """A table per comparison, in ``text`` and ``md`` with how to read it."""
    pairs: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        pairs.setdefault((finding.subject, finding.base, finding.other), []).append(finding)
    lines = []
    for pair in pairs.values():
        notes = sorted({f"note: {finding.note}" for finding in pair if finding.note and style != "latex"})
        lines += [titled(style, _table(pair, correction)), *notes, ""]
    if style != "latex":
        lines.append(legend(findings, correction))
    return "\n".join(lines).rstrip() + "\n"


def legend(findings: Sequence[Finding], correction: str) -> str:
    """How many differences can be told, and how they were tested."""
    tests = sum(not math.isnan(finding.adjusted) for finding in findings)
    if not tests:
        return "None of these differences could be tested: the findings say why."
    methods = sorted({finding.difference.test for finding in findings if finding.difference.test})
    significant = sum(finding.significant for finding in findings)
    corrected = "" if correction == "none" else f", corrected for {tests} tests ({CORRECTIONS[correction]})"
    verb = "is" if significant == 1 else "are"
    said = f"{significant} of {tests} differences {verb} significant at {100 * LEVEL:.0f}%{corrected}"
    if tests == 1:
        one = "The difference" if len(findings) == 1 else "The only difference that could be tested"
        said = f"{one} is {'' if significant else 'not '}significant at {100 * LEVEL:.0f}%"
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
    rows = [{key: _plain(value) for key, value in record(one, correction).items()} for one in findings]
    if style == "csv":
        return csv_text(list(rows[0]), [list(row.values()) for row in rows])
    return json_text(rows, indent=2)
