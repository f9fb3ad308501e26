"""Forms of asking and languages side by side, where runs in a report have several of one task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lm_eval_bias.analysis import comparisons, differences, form_associations
from lm_eval_bias.analysis.differences import Finding
from lm_eval_bias.analysis.form_associations import Association
from lm_eval_bias.errors import BiasError
from lm_eval_bias.report import comparison_reports, numbers
from lm_eval_bias.report.parts import Part, ReportTask, score_cell
from lm_eval_bias.report.tables import Cell, Column, Table
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import Run

TITLE = "Forms of asking side by side"


def _runs(tasks: Sequence[ReportTask]) -> list[Run]:
    """The runs of some tasks, with these alone."""
    runs = {item.run.name: item.run for item in tasks}
    return [
        replace(run, tasks={item.task.task: item.task for item in tasks if item.run.name == name})
        for name, run in runs.items()
    ]


def side_by_side(tasks: Sequence[ReportTask]) -> Part | None:
    """What the forms of a section's tasks have in common and in what they differ; ``None`` where each has one alone."""
    own = _runs(tasks)
    if not comparisons.forms(own):
        return None
    return _compared(comparisons.pairs(own, comparisons.FORM), comparisons.FORM, TITLE)


def languages(tasks: Sequence[ReportTask]) -> Part | None:
    """In what a model's answers in several languages differ; ``None`` where nothing was asked in two.

    Args:
        tasks: Of all benchmarks, some of which may ask the same in different languages.
    """
    try:
        pairs = comparisons.pairs(_runs(tasks), comparisons.LANGUAGE)
    except BiasError:  # there are none
        return None
    return _compared(pairs, comparisons.LANGUAGE, "Scores by language")


def _compared(pairs: Sequence[comparisons.Pair], by: str, title: str) -> Part:
    """Pairs that have sample logs as tables, and which have none in words."""
    with_logs = [pair for pair in pairs if pair.base.task.samples and pair.other.task.samples]
    text = [
        f"{pair.subject}: {pair.other.label} and {pair.base.label} can't be compared without the sample logs of both "
        "(--log_samples)."
        for pair in pairs
        if pair not in with_logs
    ]
    if not with_logs:
        return Part(title, text)
    try:
        findings = differences.find(with_logs, by=by)
        associations = form_associations.find(with_logs, findings) if by == comparisons.FORM else []
    except BiasError as error:
        return Part(title, [*text, f"Not compared: {printable_runs.one_line(error)}."])
    notes = dict.fromkeys(f"{f.subject}, {f.other} and {f.base}: {f.note}." for f in findings if f.note)
    text += [*notes, comparison_reports.legend(findings, "holm")]
    table = _differences(findings, with_logs, by)
    if not associations:
        return Part(title, text, [], [table])
    return Part(title, [*text, comparison_reports.READING], [], [table, _associations(associations)])


def _forms(row: Finding | Association) -> Cell:
    return Cell(row.subject, note=f"{row.base}, then {row.other}")


def _named_by(pair: comparisons.Pair) -> str:
    """The benchmark whose names compared scores have: where two are compared, the one that lends its own."""
    lender = pair.other if pair.base.renames and pair.base.benchmark.counterparts else pair.base
    return lender.task.benchmark


def _differences(findings: Sequence[Finding], pairs: Sequence[comparisons.Pair], by: str) -> Table:
    benchmarks = {(pair.subject, pair.other.label): _named_by(pair) for pair in pairs}
    columns = [
        Column("Task"), Column("Score"), Column(f"First {by}", True), Column(f"Second {by}", True),
        Column("Difference", True), Column("p (Holm)", True), Column("Finding"),
    ]  # fmt: skip
    rows = []
    for finding in findings:
        base, other, difference, ends = comparison_reports.values(finding)
        rows.append(
            [
                _forms(finding),
                score_cell(benchmarks[finding.subject, finding.other], finding.score.name),
                Cell(base, finding.base_value),
                Cell(other, finding.other_value),
                Cell(difference, finding.difference.value, ends),
                Cell(numbers.p_value(finding.adjusted), finding.adjusted),
                Cell(finding.verdict),
            ]
        )
    return Table(f"Scores by {by}, differences with 95% intervals in brackets", columns, rows)


def _associations(associations: Sequence[Association]) -> Table:
    columns = [Column("Task"), *comparison_reports.ASSOCIATION_COLUMNS]
    rows = [[_forms(one), *(Cell(text) for text in comparison_reports.association_row(one))] for one in associations]
    return Table("What the forms have in common, with 95% intervals in brackets", columns, rows)
