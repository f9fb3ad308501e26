"""Scores by language, where runs in a report asked the same in several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lm_eval_bias.analysis import comparisons, differences
from lm_eval_bias.analysis.differences import Finding
from lm_eval_bias.errors import BiasError
from lm_eval_bias.report import comparison_reports, numbers
from lm_eval_bias.report.parts import Part, ReportTask, score_cell
from lm_eval_bias.report.tables import Cell, Column, Table
from lm_eval_bias.runs.run_data import Run

_TITLE = "Scores by language"


def _runs(tasks: Sequence[ReportTask]) -> list[Run]:
    """The runs of some tasks, with these alone."""
    runs = {item.run.name: item.run for item in tasks}
    return [
        replace(run, tasks={item.task.task: item.task for item in tasks if item.run.name == name})
        for name, run in runs.items()
    ]


def languages(tasks: Sequence[ReportTask]) -> Part | None:
    """Compare a model's answers in several languages.

    Args:
        tasks: Of all benchmarks.

    Returns:
        Pairs that have sample logs as a table, those that have none in words; ``None`` where nothing was asked in two.
    """
    try:
        pairs = comparisons.pairs(_runs(tasks), comparisons.LANGUAGE)
    except BiasError:  # there are none
        return None
    with_logs = [pair for pair in pairs if pair.base.task.samples and pair.other.task.samples]
    text = [
        f"{pair.subject}: {pair.other.label} and {pair.base.label} can't be compared without the sample logs of both "
        "(--log_samples)."
        for pair in pairs
        if pair not in with_logs
    ]
    if not with_logs:
        return Part(_TITLE, text)
    try:
        findings = differences.find(with_logs, by=comparisons.LANGUAGE)
    except BiasError as error:
        return Part(_TITLE, [*text, f"Not compared: {error}."])
    notes = dict.fromkeys(f"{f.subject}, {f.other} and {f.base}: {f.note}." for f in findings if f.note)
    text += [*notes, comparison_reports.legend(findings, "holm")]
    return Part(_TITLE, text, [], [_differences(findings, with_logs)])


def _differences(findings: Sequence[Finding], pairs: Sequence[comparisons.Pair]) -> Table:
    benchmarks = {(pair.subject, pair.other.label): pair.base.task.benchmark for pair in pairs}
    columns = [
        Column("Task"), Column("Score"), Column("First language", True), Column("Second language", True),
        Column("Difference", True), Column("p (Holm)", True), Column("Finding"),
    ]  # fmt: skip
    rows = []
    for finding in findings:
        base, other, difference, ends = comparison_reports.values(finding)
        rows.append(
            [
                Cell(finding.subject, note=f"{finding.base}, then {finding.other}"),
                score_cell(benchmarks[finding.subject, finding.other], finding.score.name),
                Cell(base, finding.base_value),
                Cell(other, finding.other_value),
                Cell(difference, finding.difference.value, ends),
                Cell(numbers.p_value(finding.adjusted), finding.adjusted),
                Cell(finding.verdict),
            ]
        )
    return Table(f"{_TITLE}, differences with 95% intervals in brackets", columns, rows)
