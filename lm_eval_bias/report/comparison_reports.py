"""Comparisons, in each format of ``lm-eval-bias compare``; as a page, a picture and sentences first, then one table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lm_eval_bias.comparing.findings import LEVEL, Finding, Refusal
from lm_eval_bias.comparing.pairing import LANGUAGE, Pair
from lm_eval_bias.core import registry
from lm_eval_bias.core.numbers import NONE, aim, count, few, p_value
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.core.wording import named, shortened, shortened_apart
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.report import board_reports, dots, overview, templates
from lm_eval_bias.report.overview import Strip, TaskStrips
from lm_eval_bias.report.tables import csv_text, json_text, titled

FORMATS = ("text", "md", "latex", "csv", "json")  # beside the page
_KINDS = {"run": "runs", LANGUAGE: "languages"}
_MOST = 60  # rows of the picture; the table has all
_NAME, _HEADING = 40, 24  # characters of a name in tables and sentences, and in a column's heading
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


def _values(finding: Finding) -> tuple[str, str, str, str]:
    """Both sides' values, the difference, and its interval in brackets."""
    difference = finding.difference
    ends = difference.interval
    return (
        _number(finding.base_value),
        _number(finding.other_value),
        _number(difference.value, "+"),
        "" if ends is None else f"[{_number(ends[0], '+')}, {_number(ends[1], '+')}]",
    )


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
    rows = [
        [
            one.score.name, *_values(one), p_value(one.difference.p), p_value(one.adjusted),
            NONE if math.isnan(one.detectable) else _number(one.detectable), aim(one.score), one.verdict,
        ]
        for one in findings
    ]  # fmt: skip
    return Table(title, columns, [list(map(Cell, texts)) for texts in rows])


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


@dataclass(frozen=True)
class Member:
    """A finding and the benchmark or variant that its score belongs to."""

    benchmark: str
    finding: Finding


def _title(findings: Sequence[Finding], by: str, models: Sequence[str]) -> str:
    """What is compared with what, and where it was compared within one model's runs, in which."""
    bases = shortened_apart((finding.base for finding in findings), _NAME)
    others = shortened_apart((finding.other for finding in findings), _NAME)
    kind = _KINDS.get(by, f"{by}s")
    if len(bases) > 1:
        return f"Comparison of {kind}"
    within = shortened(models[0], _NAME) if by != "run" and len(models) == 1 else "Comparison"
    sides = " and ".join(others.values()) if len(others) < 3 else f"{len(others)} {kind}"
    return f"{within}: {sides} against {', '.join(bases.values())}"


def _verdict(finding: Finding) -> str:
    """What a difference says, with names shortened: the page's head has them whole."""
    shorts = shortened_apart((finding.base, finding.other), _NAME)
    return replace(finding, base=shorts[finding.base], other=shorts[finding.other]).verdict


def _sentences(members: Sequence[Member]) -> list[str]:
    """What of a benchmark differs, alike verdicts together, the clearest first."""
    tests = sum(not math.isnan(member.finding.adjusted) for member in members)
    if not tests:
        return ["nothing could be tested: the table says why"]
    places: dict[str, list[str]] = {}
    for member in sorted((m for m in members if m.finding.significant), key=lambda m: m.finding.adjusted):
        label, _ = named(member.benchmark, member.finding.score.name)
        places.setdefault(_verdict(member.finding), []).append(f"{label} ({member.finding.subject})")
    if not places:
        return [f"no significant difference in {tests:,} tests, which doesn’t mean that there is none"]
    told = sum(map(len, places.values()))
    lines = [f"{verdict}: {few(where, 4)}" for verdict, where in places.items()]
    return [f"{told:,} of {tests:,} differences are significant", *lines]


def _strip(label: str, name: str, findings: Sequence[Finding], series: Mapping[str, int], reach: float) -> Strip:
    """The differences of one score of a task, a lane for each side that is compared."""
    lane = overview.LANE
    points, values = [], []
    for number, finding in enumerate(findings):
        value, ends = finding.difference.value, finding.difference.interval
        text = " ".join([f"{value:+.3g}", *([f"[{ends[0]:+.3g}, {ends[1]:+.3g}]"] if ends else [])])
        told = "significant" if finding.significant else "not significant"
        shares = [0.5 + 0.5 * one / reach for one in (value, *(ends or ()))]
        said = f"{finding.subject}, {label}, {finding.other}: {text}, {told}"
        y, hollow = (number + 0.5) * lane + 4, not finding.significant
        points.append(dots.place(said, series[finding.other], shares, y, hollow=hollow))
        values.append((text, ""))
    return Strip(label, name, points, values, len(findings) * lane + 8)


def _rows(members: Sequence[Member], series: Mapping[str, int]) -> list[TaskStrips]:
    """The differences that an axis can show, by task and score: 0 in the middle, the range on either side."""
    drawn = [m for m in members if math.isfinite(m.finding.difference.value)][: _MOST * len(series)]
    tasks: dict[str, dict[str, list[Member]]] = {}
    for member in drawn:
        tasks.setdefault(member.finding.subject, {}).setdefault(member.finding.score.name, []).append(member)
    furthest = 0.0
    for finding in (m.finding for m in drawn):
        ends = [abs(end) for end in (finding.difference.value, *(finding.difference.interval or ()))]
        span = finding.score.high - finding.score.low
        furthest = max(furthest, max(ends) / span if math.isfinite(span) else 1.0)
    widest = next((one for one in overview.REACHES if furthest <= one), 1.0)
    rows = []
    for task, scores in tasks.items():
        strips = []
        for name, own in scores.items():
            span = own[0].finding.score.high - own[0].finding.score.low
            ends = [abs(m.finding.difference.value) for m in own]
            reach = widest * span if math.isfinite(span) else max(*ends, 1e-12) * 2
            strips.append(_strip(named(own[0].benchmark, name)[0], name, [m.finding for m in own], series, reach))
        rows.append(TaskStrips(task, f"{own[0].finding.items:,} items", strips))
    return rows


def _cells(member: Member, several: bool) -> list[Cell]:
    finding, (label, name) = member.finding, named(member.benchmark, member.finding.score.name)
    base, other, difference, ends = _values(finding)
    shorts = shortened_apart((finding.base, finding.other), _NAME)
    sides = f"{shorts[finding.other]}, against {shorts[finding.base]}" if several else ""
    return [
        Cell(finding.subject, note=sides),
        Cell(label, note=name),
        *(
            Cell(NONE if math.isnan(value) else text, value, note)
            for text, value, note in (
                (base, finding.base_value, ""),
                (other, finding.other_value, ""),
                (difference, finding.difference.value, ends),
            )
        ),
        Cell(_verdict(finding)),
        Cell(p_value(finding.difference.p), finding.difference.p),
        Cell(p_value(finding.adjusted), finding.adjusted),
        Cell(NONE if math.isnan(finding.detectable) else f"{finding.detectable:.4g}", finding.detectable),
        Cell(aim(finding.score), finding.score.neutral),
        Cell(count(finding.items), finding.items, "" if finding.paired else "independent"),
    ]


def _page_table(members: Sequence[Member], correction: str) -> Table:
    sides = {(m.finding.base, m.finding.other) for m in members}
    first = members[0].finding
    names = ("Base", "Other") if len(sides) > 1 else shortened_apart((first.base, first.other), _HEADING).values()
    columns = [
        Column("Task"), Column("Score"), *(Column(name, True) for name in names), Column("Difference", True),
        Column("Finding"), Column("p", True), Column(f"p ({CORRECTIONS[correction]})", True),
        Column("Detectable", True), Column("Neutral or best"), Column("Items", True),
    ]  # fmt: skip
    rows = [_cells(member, len(sides) > 1) for member in members]
    return Table("Differences with 95% intervals in brackets", columns, rows)


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
            groups.append((benchmark.title or benchmark.name, _sentences(own), _rows(own, series)))
    runs = list({id(side.run): side.run for pair in pairs for side in (pair.base, pair.other)}.values())
    return templates.render(
        "comparison.html.j2",
        title=_title([member.finding for member in members], by, list(dict.fromkeys(run.name for run in runs))),
        bases=list(dict.fromkeys(member.finding.base for member in members)),
        others=list(series),
        groups=groups,
        legend=legend(findings, correction),
        refused=list(map(str, refused)),
        table_of_all=_page_table(members, correction),
        notes=_notes(members),
        origins=board_reports.origins(runs),
    )
