"""Comparisons as one page: what differs in words, and per benchmark a picture, its table, and what isn't compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lm_eval_bias.comparing.findings import Finding, Refusal
from lm_eval_bias.comparing.pairing import LANGUAGE, Pair
from lm_eval_bias.core import registry
from lm_eval_bias.core.numbers import NONE, bound, count, few, p_value
from lm_eval_bias.core.page_parts import Cell, Column, DotPlot, DotRow, Part, Table
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.core.score_cells import named
from lm_eval_bias.core.wording import shortened, shortened_apart
from lm_eval_bias.report import captions, comparison_reports, templates

_KINDS = {"run": "runs", LANGUAGE: "languages"}
_CAPTION = (
    "Marks are differences from {base}, lines their 95% intervals; right of 0 the score is higher than with {base}. "
    "Filled marks are significant differences, hollow marks are not. The band around 0 reaches to the smallest "
    "difference that this number of items would detect with 80% probability."
)
_MOST_PANELS = 12  # scores that a picture shows; the table has all
_NAME, _HEADING = 40, 24  # characters of a name in tables and sentences, and in a column's heading


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


def _words(members: Sequence[Member]) -> list[str]:
    """The differences that can be told, the clearest first."""
    told = sorted((m for m in members if m.finding.significant), key=lambda m: m.finding.adjusted)
    if not told:
        return [
            "No significant difference. That doesn’t mean that there is none: with so few items, differences within "
            "the bands of the figures are likely to go undetected."
        ]
    lines = []
    for member in told:
        finding, (label, _) = member.finding, named(member.benchmark, member.finding.score.name)
        _, _, difference, ends = comparison_reports.values(finding)
        numbers = f"{difference} {ends}".rstrip()
        lines.append(f"{finding.subject}, {label}: {_verdict(finding)} ({numbers}, p {p_value(finding.adjusted)}).")
    return lines


def _scores(members: Sequence[Member]) -> dict[str, str]:
    """What people call the scores, by technical name."""
    return {m.finding.score.name: named(m.benchmark, m.finding.score.name)[0] for m in members}


def _comparisons(members: Sequence[Member]) -> dict[tuple[str, str], dict[str, Finding]]:
    """Each subject's and other side's findings by score."""
    found: dict[tuple[str, str], dict[str, Finding]] = {}
    for member in members:
        finding = member.finding
        found.setdefault((finding.subject, finding.other), {})[finding.score.name] = finding
    return found


def _ordered(members: Sequence[Member]) -> list[tuple[str, str]]:
    """The comparisons from the largest difference of the first score down; several of one subject stay together."""
    comparisons = _comparisons(members)
    first = members[0].finding.score.name

    def size(key: tuple[str, str]) -> float:
        finding = comparisons[key].get(first)
        return -math.inf if finding is None or math.isnan(finding.difference.value) else finding.difference.value

    groups: dict[str, list[tuple[str, str]]] = {}
    for key in sorted(comparisons, key=size, reverse=True):
        groups.setdefault(key[0], []).append(key)
    return [key for group in groups.values() for key in group]


def _figures(ident: str, title: str, members: Sequence[Member], series: Mapping[str, int]) -> list[DotPlot]:
    """The differences that an axis can show, a row per comparison and a panel per score."""
    titles = dict(list(_scores(members).items())[:_MOST_PANELS])
    drawn = [m for m in members if m.finding.score.name in titles and math.isfinite(m.finding.difference.value)]
    if not drawn:
        return []
    names = [score for score in titles if any(m.finding.score.name == score for m in drawn)]
    bases = list(dict.fromkeys(m.finding.base for m in drawn))
    caption = _CAPTION.format(base=few(bases, 3))
    if left_out := len(members) - len(drawn):
        caption += f" {left_out:,} of {len(members):,} comparisons are only in the table."
    comparisons, shorts = _comparisons(drawn), shortened_apart(series, 42)
    subjects = [subject for subject, _ in comparisons]
    rows = []
    for subject, other in _ordered(drawn):
        findings = [comparisons[subject, other].get(name) for name in names]
        rows.append(
            DotRow(
                f"{subject}: {shorts[other]}" if subjects.count(subject) > 1 else subject,
                [_difference(finding) if finding else None for finding in findings],
                series[other],
                [finding is not None and finding.significant for finding in findings],
                [finding.difference.detectable(finding.level) if finding else math.nan for finding in findings],
            )
        )
    return [DotPlot(ident, f"Differences: {title}", caption, [titles[name] for name in names], rows)]


def _difference(finding: Finding) -> Value:
    difference, score = finding.difference, finding.score
    return Value(score.name, difference.value, interval=difference.interval, neutral=0.0, unit=score.unit)


def _value(text: str, value: float, note: str = "") -> Cell:
    return Cell(NONE if math.isnan(value) else text, value, note)


def _row(member: Member, several: bool) -> list[Cell]:
    finding, (label, name) = member.finding, named(member.benchmark, member.finding.score.name)
    base, other, difference, ends = comparison_reports.values(finding)
    detectable = finding.difference.detectable(finding.level)
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
        _value(f"{detectable:.4g}", detectable),
        Cell(bound(finding.score.neutral), finding.score.neutral),
        Cell(count(finding.items), finding.items, "" if finding.paired else "independent"),
    ]


def _table(title: str, members: Sequence[Member], correction: str) -> Table:
    sides = {(m.finding.base, m.finding.other) for m in members}
    first = members[0].finding
    names = ("Base", "Other") if len(sides) > 1 else shortened_apart((first.base, first.other), _HEADING).values()
    columns = [
        Column("Task"), Column("Score"), *(Column(name, True) for name in names), Column("Difference", True),
        Column("Finding"), Column("p", True), Column(f"p ({comparison_reports.CORRECTIONS[correction]})", True),
        Column("Detectable", True), Column("Neutral", True), Column("Items", True),
    ]  # fmt: skip
    places = {key: place for place, key in enumerate(_ordered(members))}
    scores = list(_scores(members))
    ordered = sorted(
        members, key=lambda m: (scores.index(m.finding.score.name), places[m.finding.subject, m.finding.other])
    )
    caption = f"{title}: differences with 95% intervals in brackets"
    return Table(caption, columns, [_row(member, len(sides) > 1) for member in ordered])


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
    members = [Member(benchmarks[f.subject, f.base, f.other], f) for f in findings]
    series = {label: i for i, label in enumerate(dict.fromkeys(m.finding.other for m in members))}
    sections = []
    for benchmark in registry.benchmarks():
        own = [member for member in members if registry.family(member.benchmark) is benchmark]
        if not own:
            continue
        title = benchmark.title or benchmark.name
        figures = _figures(f"differences-{benchmark.name}", title, own, series)
        sections.append(Part(title, _notes(own), figures, [_table(title, own, correction)]))
    runs = list({id(side.run): side.run for pair in pairs for side in (pair.base, pair.other)}.values())
    models = list(dict.fromkeys(run.name for run in runs))
    return templates.render(
        "comparison.html.j2",
        ("board.css",),
        title=_title([member.finding for member in members], by, models),
        bases=list(dict.fromkeys(member.finding.base for member in members)),
        others=list(series),
        words=_words(members),
        legend=comparison_reports.legend(findings, correction),
        refused=list(map(str, refused)),
        sections=sections,
        origins=captions.origins(runs),
    )
