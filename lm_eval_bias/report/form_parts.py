"""Forms of asking side by side, where runs in a report have several of one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lm_eval_bias.analysis import comparisons, differences, form_associations
from lm_eval_bias.analysis.differences import Finding
from lm_eval_bias.analysis.form_associations import Association
from lm_eval_bias.errors import BiasError
from lm_eval_bias.report import comparison_reports, numbers
from lm_eval_bias.report.parts import Part, ReportTask, score_cell
from lm_eval_bias.report.tables import Cell, Column, Table
from lm_eval_bias.runs import printable_runs

TITLE = "Forms of asking side by side"


def side_by_side(tasks: Sequence[ReportTask]) -> Part | None:
    """What the forms of a section's tasks have in common and in what they differ; ``None`` where each has one alone."""
    runs = {item.run.name: item.run for item in tasks}
    own = [
        replace(run, tasks={item.task.task: item.task for item in tasks if item.run.name == name})
        for name, run in runs.items()
    ]
    if not comparisons.forms(own):
        return None
    pairs = comparisons.pairs(own, comparisons.FORM)
    with_logs = [pair for pair in pairs if pair.base.task.samples and pair.other.task.samples]
    text = [
        f"{pair.subject}: {pair.other.label} and {pair.base.label} can't be put side by side without the sample logs "
        "of both (--log_samples)."
        for pair in pairs
        if pair not in with_logs
    ]
    if not with_logs:
        return Part(TITLE, text)
    try:
        findings = differences.find(with_logs, by=comparisons.FORM)
        associations = form_associations.find(with_logs, findings)
    except BiasError as error:
        return Part(TITLE, [*text, f"Not compared: {printable_runs.one_line(error)}."])
    benchmarks = {pair.subject: pair.base.task.benchmark for pair in with_logs}
    notes = dict.fromkeys(f"{f.subject}, {f.other} and {f.base}: {f.note}." for f in findings if f.note)
    text += [*notes, comparison_reports.legend(findings, "holm"), comparison_reports.READING]
    return Part(TITLE, text, [], [_differences(findings, benchmarks), _associations(associations)])


def _forms(row: Finding | Association) -> Cell:
    return Cell(row.subject, note=f"{row.base}, then {row.other}")


def _differences(findings: Sequence[Finding], benchmarks: Mapping[str, str]) -> Table:
    columns = [
        Column("Task"), Column("Score"), Column("First form", True), Column("Second form", True),
        Column("Difference", True), Column("p (Holm)", True), Column("Finding"),
    ]  # fmt: skip
    rows = []
    for finding in findings:
        base, other, difference, ends = comparison_reports.values(finding)
        rows.append(
            [
                _forms(finding),
                score_cell(benchmarks[finding.subject], finding.score.name),
                Cell(base, finding.base_value),
                Cell(other, finding.other_value),
                Cell(difference, finding.difference.value, ends),
                Cell(numbers.p_value(finding.adjusted), finding.adjusted),
                Cell(finding.verdict),
            ]
        )
    return Table("Scores by form of asking, differences with 95% intervals in brackets", columns, rows)


def _associations(associations: Sequence[Association]) -> Table:
    columns = [Column("Task"), *comparison_reports.ASSOCIATION_COLUMNS]
    rows = [[_forms(one), *(Cell(text) for text in comparison_reports.association_row(one))] for one in associations]
    return Table("What the forms have in common, with 95% intervals in brackets", columns, rows)
