"""Comparisons, in each format of ``lm-eval-bias compare``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lm_eval_bias.analysis.differences import LEVEL, Finding
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.report.escaping import backslashed
from lm_eval_bias.report.numbers import NONE, bound, p_value
from lm_eval_bias.report.tables import Column, csv_text, grid, json_text

_STYLES = {"text": "simple", "md": "github", "latex": "latex_booktabs"}
FORMATS = ("text", "md", "latex", "csv", "json")
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "not corrected"}


def _data(finding: Finding, correction: str) -> Mapping[str, object]:
    """Plain data; ``nan`` is ``None`` with a reason."""
    difference, meaning = finding.difference, finding.score.describe()
    return {
        "what": finding.subject,
        "base": finding.base,
        "other": finding.other,
        "score": finding.score.name,
        "base_value": finite(finding.base_value),
        "other_value": finite(finding.other_value),
        "difference": finite(difference.value),
        "stderr": finite(difference.stderr),
        "dof": finite(difference.dof),
        "interval": None if difference.interval is None else list(difference.interval),
        "p": finite(difference.p),
        "p_adjusted": finite(finding.adjusted),
        "correction": correction,
        "test": difference.test,
        "smallest_detectable": finite(difference.detectable),
        "paired": finding.paired,
        "items": finding.items,
        "finding": finding.verdict,
        "reason": difference.reason,
        "note": finding.note,
        **{key: meaning[key] for key in ("summary", "range", "neutral", "direction", "unit")},
    }


def _number(value: float, sign: str = "") -> str:
    """Four significant digits."""
    return "nan" if math.isnan(value) else f"{value:{sign}.4g}" if sign or abs(value) < 1000 else f"{value:,.0f}"


def _row(finding: Finding) -> list[str]:
    difference = finding.difference
    ends = difference.interval
    return [
        finding.score.name,
        _number(finding.base_value),
        _number(finding.other_value),
        _number(difference.value, "+"),
        "" if ends is None else f"[{_number(ends[0], '+')}, {_number(ends[1], '+')}]",
        p_value(difference.p),
        p_value(finding.adjusted),
        NONE if math.isnan(difference.detectable) else _number(difference.detectable),
        bound(finding.score.neutral),
        finding.verdict,
    ]


def _table(findings: Sequence[Finding], correction: str, style: str) -> str:
    """Two sides' scores under a title."""
    first = findings[0]
    pairing = "the same items" if first.paired else "independent"
    title = f"{first.subject}: {first.other} against {first.base} ({first.items:,} items, {pairing})"
    numeric = [first.base, first.other, "Difference", "95% interval", "p", f"p ({CORRECTIONS[correction]})",
               "Detectable", "Neutral"]  # fmt: skip
    rows = list(map(_row, findings))
    if style == "md":
        numeric, rows = [*map(backslashed, numeric)], [[*map(backslashed, row)] for row in rows]
        title = f"**{backslashed(title)}**\n"
    elif style == "latex":
        title = "% " + title.replace("\n", " ")
    columns: list[Column | str] = ["Score", *(Column(label, True) for label in numeric), "Finding"]
    return f"{title}\n{grid(columns, rows, _STYLES[style])}"


def _tables(findings: Sequence[Finding], correction: str, style: str) -> str:
    """A table per comparison, in ``text`` and ``md`` with how to read it."""
    pairs: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        pairs.setdefault((finding.subject, finding.base, finding.other), []).append(finding)
    lines = []
    for pair in pairs.values():
        notes = sorted({f"note: {finding.note}" for finding in pair if finding.note and style != "latex"})
        lines += [_table(pair, correction, style), *notes, ""]
    if style != "latex":
        lines.append(_legend(findings, correction))
    return "\n".join(lines).rstrip() + "\n"


def _legend(findings: Sequence[Finding], correction: str) -> str:
    tests = sum(not math.isnan(finding.adjusted) for finding in findings)
    methods = sorted({finding.difference.test for finding in findings if finding.difference.test})
    significant = sum(finding.significant for finding in findings)
    corrected = "" if correction == "none" else f", corrected for {tests} tests ({CORRECTIONS[correction]})"
    return (
        f"{significant} of {tests} differences can be told at {100 * LEVEL:.0f}%{corrected}. "
        f"p: {'; '.join(methods) or 'none'}. "
        "Detectable: the smallest true difference that so many items show with a probability of 80%."
    )


def render(findings: Sequence[Finding], correction: str, style: str) -> str:
    """Findings as ``text``, ``md``, ``latex``, ``csv`` (a row each) or ``json``."""
    if style in _STYLES:
        return _tables(findings, correction, style)
    data = [_data(finding, correction) for finding in findings]
    return json_text(data, indent=2) if style == "json" else csv_text(list(data[0]), [row.values() for row in data])
