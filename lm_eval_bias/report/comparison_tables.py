"""Findings as tables for people, papers and programs."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import Any

from lm_eval_bias import catalog
from lm_eval_bias.analysis.differences import LEVEL, Finding
from lm_eval_bias.custom_metrics.score import finite

FORMATS = ("text", "md", "latex", "csv", "json")
_CORRECTED = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "not corrected"}


def _number(value: float) -> str:
    return "nan" if math.isnan(value) else f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def p_text(p: float) -> str:
    """A p-value for people.

    >>> p_text(0.00004), p_text(0.0312), p_text(float("nan"))
    ('<0.001', '0.031', '–')
    """
    return "–" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def _interval(found: Finding) -> str:
    ends = found.difference.interval
    return "" if ends is None else f"[{ends[0]:+.4g}, {ends[1]:+.4g}]"


def as_data(found: Sequence[Finding], correction: str) -> list[dict[str, Any]]:
    """Plain data; ``nan`` is ``None`` with a reason."""
    return [
        {
            "what": f.what,
            "base": f.base,
            "other": f.other,
            "score": f.score.name,
            "base_value": finite(f.base_value),
            "other_value": finite(f.other_value),
            "difference": finite(f.difference.value),
            "stderr": finite(f.difference.stderr),
            "dof": finite(f.difference.dof),
            "interval": None if f.difference.interval is None else list(f.difference.interval),
            "p": finite(f.difference.p),
            "p_adjusted": finite(f.adjusted),
            "correction": correction,
            "test": f.difference.test,
            "smallest_detectable": finite(f.difference.detectable),
            "paired": f.paired,
            "items": f.items,
            "finding": f.verdict,
            "reason": f.difference.reason,
            "note": f.note,
            **{key: f.score.describe()[key] for key in ("summary", "range", "neutral", "direction", "unit")},
        }
        for f in found
    ]


def as_json(found: Sequence[Finding], correction: str) -> str:
    """:func:`as_data` as JSON without NaN."""
    return json.dumps(as_data(found, correction), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(found: Sequence[Finding], correction: str) -> str:
    """One row a finding; cells that a spreadsheet would run as a formula are quoted with an apostrophe."""
    from lm_eval_bias.report.exports import guarded

    out = io.StringIO()
    rows = as_data(found, correction)
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        row = {key: json.dumps(value) if isinstance(value, list) else value for key, value in row.items()}
        writer.writerow({key: guarded(value) if isinstance(value, str) else value for key, value in row.items()})
    return out.getvalue()


def _rows(found: Sequence[Finding]) -> list[list[str]]:
    return [
        [
            f.score.name,
            _number(f.base_value),
            _number(f.other_value),
            f"{f.difference.value:+.4g}" if not math.isnan(f.difference.value) else "nan",
            _interval(f),
            p_text(f.difference.p),
            p_text(f.adjusted),
            _number(f.difference.detectable) if not math.isnan(f.difference.detectable) else "–",
            catalog.format_number(f.score.neutral),
            f.verdict,
        ]
        for f in found
    ]


def _blocks(found: Sequence[Finding]) -> list[list[Finding]]:
    blocks: dict[tuple[str, str, str], list[Finding]] = {}
    for f in found:
        blocks.setdefault((f.what, f.base, f.other), []).append(f)
    return list(blocks.values())


def _escape(text: str) -> str:
    """Text that Markdown shows as it is."""
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")


def _title(block: Sequence[Finding]) -> str:
    first = block[0]
    how = "the same items" if first.paired else "independent"
    return f"{first.what}: {first.other} against {first.base} ({first.items:,} items, {how})"


def as_table(found: Sequence[Finding], correction: str, style: str = "text") -> str:
    """A table per comparison, with how to read it.

    Args:
        found: The findings.
        correction: How p-values were corrected.
        style: ``text``, ``md`` or ``latex``.
    """
    from tabulate import tabulate

    tables = {"text": "simple", "md": "github", "latex": "latex_booktabs"}
    lines = []
    for block in _blocks(found):
        first = block[0]
        headers = ["Score", first.base, first.other, "Difference", "95% interval", "p", f"p ({_CORRECTED[correction]})",
                   "Detectable", "Neutral", "Finding"]  # fmt: skip
        rows = _rows(block)
        title = _title(block)
        if style == "md":
            headers, rows = list(map(_escape, headers)), [list(map(_escape, row)) for row in rows]
            title = f"**{_escape(title)}**\n"
        align = ("left", *["right"] * 8, "left")
        table = tabulate(rows, headers=headers, tablefmt=tables[style], colalign=align, disable_numparse=True)
        if style == "latex":
            title = "% " + title.replace("\n", " ")
        lines += [title, table, *sorted({f"note: {f.note}" for f in block if f.note and style != "latex"}), ""]
    if style != "latex":
        lines.append(_legend(found, correction))
    return "\n".join(lines).rstrip() + "\n"


def _legend(found: Sequence[Finding], correction: str) -> str:
    tests = sum(not math.isnan(f.adjusted) for f in found)
    how = sorted({f.difference.test for f in found if f.difference.test})
    told = sum(f.told for f in found)
    corrected = "" if correction == "none" else f", corrected for {tests} tests ({_CORRECTED[correction]})"
    return (
        f"{told} of {tests} differences can be told at {100 * LEVEL:.0f}%{corrected}. p: {'; '.join(how) or 'none'}. "
        "Detectable: the smallest true difference that so many items show with a probability of 80%."
    )


def render(found: Sequence[Finding], correction: str, style: str) -> str:
    """Findings in one of :data:`FORMATS`."""
    if style == "json":
        return as_json(found, correction)
    if style == "csv":
        return as_csv(found, correction)
    return as_table(found, correction, style)
