"""Comparisons as one page: a picture of all differences, what each benchmark says, one table, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lm_eval_bias.comparing.findings import Finding, Refusal
from lm_eval_bias.comparing.pairing import LANGUAGE, Pair
from lm_eval_bias.core import registry
from lm_eval_bias.core.numbers import NONE, aim, count, few, p_value
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.core.score_cells import named
from lm_eval_bias.core.wording import shortened, shortened_apart
from lm_eval_bias.report import board_pages, comparison_reports, dots, overview, templates
from lm_eval_bias.report.overview import Strip, TaskStrips

_KINDS = {"run": "runs", LANGUAGE: "languages"}
_MOST = 60  # rows of the picture; the table has all
_NAME, _HEADING = 40, 24  # characters of a name in tables and sentences, and in a column's heading


@dataclass(frozen=True)
class Member:
    """A finding and the benchmark or variant that its score belongs to."""

    benchmark: str
    finding: Finding


@dataclass(frozen=True)
class BenchmarkDifferences:
    """A benchmark in the page.

    Attributes:
        title: Its name.
        sentences: What differs.
        rows: Of the picture.
    """

    title: str
    sentences: Sequence[str]
    rows: Sequence[TaskStrips]


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


def _row(label: str, name: str, findings: Sequence[Finding], series: dict[str, int], reach: float) -> Strip:
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


def _rows(members: Sequence[Member], series: dict[str, int]) -> list[TaskStrips]:
    """The differences that an axis can show, by task and score: 0 in the middle, the range on either side."""
    drawn = [m for m in members if math.isfinite(m.finding.difference.value)][: _MOST * len(series)]
    tasks: dict[str, dict[str, list[Member]]] = {}
    for member in drawn:
        tasks.setdefault(member.finding.subject, {}).setdefault(member.finding.score.name, []).append(member)
    reaches: dict[str, float] = {}
    for name, findings in ((m.finding.score.name, m.finding) for m in drawn):
        ends = [abs(end) for end in (findings.difference.value, *(findings.difference.interval or ()))]
        span = findings.score.high - findings.score.low
        share = max(ends) / span if math.isfinite(span) else 1.0
        reaches[name] = max(reaches.get(name, 0.0), share)
    widest = next((one for one in overview.REACHES if max(reaches.values(), default=0.0) <= one), 1.0)
    rows = []
    for task, scores in tasks.items():
        strips = []
        for name, own in scores.items():
            span = own[0].finding.score.high - own[0].finding.score.low
            ends = [abs(m.finding.difference.value) for m in own]
            reach = widest * span if math.isfinite(span) else max(*ends, 1e-12) * 2
            strips.append(_row(named(own[0].benchmark, name)[0], name, [m.finding for m in own], series, reach))
        rows.append(TaskStrips(task, f"{own[0].finding.items:,} items", strips))
    return rows


def _value(text: str, value: float, note: str = "") -> Cell:
    return Cell(NONE if math.isnan(value) else text, value, note)


def _cells(member: Member, several: bool) -> list[Cell]:
    finding, (label, name) = member.finding, named(member.benchmark, member.finding.score.name)
    base, other, difference, ends = comparison_reports.values(finding)
    shorts = shortened_apart((finding.base, finding.other), _NAME)
    sides = f"{shorts[finding.other]}, against {shorts[finding.base]}" if several else ""
    return [
        Cell(finding.subject, note=sides),
        Cell(label, note=name),
        _value(base, finding.base_value),
        _value(other, finding.other_value),
        _value(difference, finding.difference.value, ends),
        Cell(_verdict(finding)),
        Cell(p_value(finding.difference.p), finding.difference.p),
        Cell(p_value(finding.adjusted), finding.adjusted),
        _value(f"{finding.detectable:.4g}", finding.detectable),
        Cell(aim(finding.score), finding.score.neutral),
        Cell(count(finding.items), finding.items, "" if finding.paired else "independent"),
    ]


def _table(members: Sequence[Member], correction: str) -> Table:
    sides = {(m.finding.base, m.finding.other) for m in members}
    first = members[0].finding
    names = ("Base", "Other") if len(sides) > 1 else shortened_apart((first.base, first.other), _HEADING).values()
    columns = [
        Column("Task"), Column("Score"), *(Column(name, True) for name in names), Column("Difference", True),
        Column("Finding"), Column("p", True), Column(f"p ({comparison_reports.CORRECTIONS[correction]})", True),
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


def render(
    findings: Sequence[Finding],
    pairs: Sequence[Pair],
    by: str,
    correction: str,
    refused: Sequence[Refusal] = (),
) -> str:
    """The page.

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
            title = benchmark.title or benchmark.name
            groups.append(BenchmarkDifferences(title, _sentences(own), _rows(own, series)))
    runs = list({id(side.run): side.run for pair in pairs for side in (pair.base, pair.other)}.values())
    return templates.render(
        "comparison.html.j2",
        title=_title([member.finding for member in members], by, list(dict.fromkeys(run.name for run in runs))),
        bases=list(dict.fromkeys(member.finding.base for member in members)),
        others=list(series),
        groups=groups,
        legend=comparison_reports.legend(findings, correction),
        refused=list(map(str, refused)),
        table_of_all=_table(members, correction),
        notes=_notes(members),
        origins=board_pages.origins(runs),
    )
