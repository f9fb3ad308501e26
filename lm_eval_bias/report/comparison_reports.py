"""Comparisons, in each format of ``lm-eval-bias compare``; as a page, a picture and sentences first, then one table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lm_eval_bias.comparing.findings import LEVEL, Finding, Refusal
from lm_eval_bias.comparing.pairing import Pair
from lm_eval_bias.core import registry
from lm_eval_bias.core.numbers import aim, bracketed_ends, difference, few, number, p_value
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.core.wording import named
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.report import board_reports, overview, templates
from lm_eval_bias.report.overview import Strip, TaskStrips
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


@dataclass(frozen=True)
class Member:
    """A finding and the benchmark or variant that its score belongs to; empty where scores go by technical names."""

    benchmark: str
    finding: Finding


def _cells(member: Member, several: bool) -> list[Cell]:
    finding, (label, name) = member.finding, named(member.benchmark, member.finding.score.name)
    moved, unit = finding.difference, finding.score.unit
    sides = f"{finding.other}, against {finding.base}" if several else ""
    pairing = "" if finding.paired else ", independent"
    return [
        Cell(finding.subject, note="; ".join(filter(None, (sides, f"{finding.items:,} items{pairing}")))),
        Cell(label, note=name),
        Cell(number(finding.base_value, unit), finding.base_value),
        Cell(number(finding.other_value, unit), finding.other_value),
        Cell(difference(moved.value, unit), moved.value, bracketed_ends(moved.interval, unit, "+")),
        Cell(finding.verdict),
        Cell(p_value(moved.p), moved.p),
        Cell(p_value(finding.adjusted), finding.adjusted),
        Cell(difference(finding.detectable, unit, ""), finding.detectable),
        Cell(aim(finding.score), finding.score.neutral),
    ]


def _table(members: Sequence[Member], correction: str) -> Table:
    sides = {(m.finding.base, m.finding.other) for m in members}
    first = members[0].finding
    names = ("Base", "Other") if len(sides) > 1 else (first.base, first.other)
    columns = [
        Column("Task"), Column("Score"), *(Column(name, True) for name in names), Column("Difference", True),
        Column("Finding"), Column("p", True), Column(f"p ({CORRECTIONS[correction]})", True),
        Column("Detectable", True), Column("Neutral or best"),
    ]  # fmt: skip
    rows = [_cells(member, len(sides) > 1) for member in members]
    return Table("Differences with 95% intervals in brackets", columns, rows)


def _tables(findings: Sequence[Finding], correction: str, style: str) -> str:
    """A table per comparison, in ``text`` and ``md`` with how to read it."""
    pairs: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        pairs.setdefault((finding.subject, finding.base, finding.other), []).append(finding)
    lines = []
    for (subject, base, other), pair in pairs.items():
        notes = sorted({f"note: {finding.note}" for finding in pair if finding.note and style != "latex"})
        pairing = "the same items" if pair[0].paired else "independent"
        whole = _table([Member("", finding) for finding in pair], correction)
        title = f"{subject}: {other} against {base} ({pair[0].items:,} items, {pairing}), 95% intervals in brackets"
        # the title says the task
        lines += [titled(style, Table(title, whole.columns[1:], [row[1:] for row in whole.rows])), *notes, ""]
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
    corrected = "" if correction == "none" else f", corrected for the number of tests ({CORRECTIONS[correction]})"
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
    rows = [{key: _plain(value) for key, value in record(one, correction).items()} for one in findings]
    if style == "csv":
        return csv_text(list(rows[0]), [list(row.values()) for row in rows])
    return json_text(rows, indent=2)


def _title(findings: Sequence[Finding], by: str, models: Sequence[str]) -> str:
    """What is compared with what, and in which model's runs where it is one's."""
    bases, others = (list(dict.fromkeys(getattr(one, side) for one in findings)) for side in ("base", "other"))
    within = models[0] if by != "run" and len(models) == 1 else "Comparison"
    if len(bases) > 1 or len(others) > 2:
        return f"{within} of {by}s"
    return f"{within}: {' and '.join(others)} against {', '.join(bases)}"


def _sentences(members: Sequence[Member], several: bool) -> list[str]:
    """What of a benchmark differs, alike verdicts together, the clearest first."""
    tests = sum(not math.isnan(member.finding.adjusted) for member in members)
    if not tests:
        return ["nothing could be tested: the table says why"]
    places: dict[str, list[str]] = {}
    for member in sorted((m for m in members if m.finding.significant), key=lambda m: m.finding.adjusted):
        label, _ = named(member.benchmark, member.finding.score.name)
        about = f"{member.finding.subject}, {member.finding.other}" if several else member.finding.subject
        places.setdefault(member.finding.verdict, []).append(f"{label} ({about})")
    if not places:
        return [f"no significant difference in {tests:,} tests, which doesn’t mean that there is none"]
    told = sum(map(len, places.values()))
    lines = [f"{verdict}: {few(where, 4)}" for verdict, where in places.items()]
    return [f"{told:,} of {tests:,} differences are significant", *lines]


def _rows(members: Sequence[Member], series: Mapping[str, int]) -> list[TaskStrips]:
    """The differences by task and score, a lane for each side: no difference in the middle, the range around it."""
    scores: dict[str, dict[str, list[Member]]] = {}
    furthest = 0.0
    for member in members:
        finding = member.finding
        span = finding.score.high - finding.score.low
        if math.isfinite(finding.difference.value) and math.isfinite(span):
            scores.setdefault(finding.subject, {}).setdefault(finding.score.name, []).append(member)
            reached = (finding.difference.value, *(finding.difference.interval or ()))
            furthest = max(furthest, *(abs(end) / span for end in reached))
    widest = next((one for one in overview.REACHES if furthest <= one), 1.0)
    rows = []
    for task, by_name in scores.items():
        strips = []
        for name, own in by_name.items():
            label, score = named(own[0].benchmark, name)[0], own[0].finding.score
            reach, points, values = widest * (score.high - score.low), [], []
            for place, finding in enumerate(member.finding for member in own):
                moved, ends = finding.difference.value, finding.difference.interval
                text = f"{difference(moved, score.unit)} {bracketed_ends(ends, score.unit, '+')}".rstrip()
                told = "significant" if finding.significant else "not significant"
                shares = [0.5 + 0.5 * one / reach for one in (moved, *(ends or ()))]
                said = f"{task}, {label}, {finding.other}: {text}, {told}"
                y, hollow = (place + 0.5) * overview.LANE + 4, not finding.significant
                points.append(overview.place(said, series[finding.other], shares, y, hollow=hollow))
                values.append(text)
            strips.append(Strip(label, name, points, values, len(own) * overview.LANE + 8))
        rows.append(TaskStrips(task, f"{own[0].finding.items:,} items", strips))
    return rows


def _notes(members: Sequence[Member]) -> list[str]:
    """What to beware of, each with the comparisons that it is about."""
    about: dict[str, dict[str, None]] = {}
    for finding in (m.finding for m in members if m.finding.note):
        about.setdefault(finding.note, {})[f"{finding.subject} ({finding.other} and {finding.base})"] = None
    return [f"{few(list(which), 4)}: {note}" for note, which in about.items()]


def page(
    findings: Sequence[Finding], pairs: Sequence[Pair], by: str, correction: str, refused: Sequence[Refusal]
) -> str:
    """Findings as a page.

    Args:
        findings: At least one.
        pairs: What was compared with what.
        by: How the pairs were made.
        correction: What their p-values are corrected by.
        refused: Pairs that can't be compared.
    """
    benchmarks = {(p.subject, p.base.label, p.other.label): p.base.task.benchmark for p in pairs}
    found = [Member(benchmarks[f.subject, f.base, f.other], f) for f in findings]
    order = {name: place for place, name in enumerate(registry.by_name())}
    members = sorted(found, key=lambda member: order.get(member.benchmark, len(order)))
    series = {label: i for i, label in enumerate(dict.fromkeys(m.finding.other for m in members))}
    groups = []
    for benchmark in registry.benchmarks():
        if own := [member for member in members if registry.family(member.benchmark) is benchmark]:
            groups.append((benchmark.title or benchmark.name, _sentences(own, len(series) > 1), _rows(own, series)))
    runs = list({id(side.run): side.run for pair in pairs for side in (pair.base, pair.other)}.values())
    return templates.render(
        "comparison.html.j2",
        title=_title([member.finding for member in members], by, list(dict.fromkeys(run.name for run in runs))),
        bases=list(dict.fromkeys(member.finding.base for member in members)),
        others=list(series),
        groups=groups,
        legend=legend(findings, correction),
        refused=list(map(str, refused)),
        table_of_all=_table(members, correction),
        notes=_notes(members),
        origins=board_reports.origins(runs),
    )
