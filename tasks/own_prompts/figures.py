"""A user's own prompts in a page: every group's regard, keywords and length, and the gaps with their tests."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.custom_metrics.own_prompts import WORDS, Comparison, Measure, compared_measures, others
from lm_eval_bias.errors import BiasError
from lm_eval_bias.report import dots, numbers
from lm_eval_bias.report.parts import Part, ReportTask, value_cell
from lm_eval_bias.report.tables import Cell, Column, Table
from lm_eval_bias.runs.run_data import Value
from lm_eval_bias.tasks.own_prompts import sentences

ALONE = "for these prompts alone"


def _measures(comparison: Comparison) -> list[Measure]:
    """As they stand in tables: with the middle class of regard."""
    first, *rest = compared_measures(comparison)
    return [first, Measure("neutral", "regard"), *rest]


def _cell(value: Value | None, is_length: bool) -> Cell:
    text, _, interval = sentences.shown(value, is_length).partition(" ")
    return Cell(text, None if value is None else value.value, interval)


def _shares(result: ReportTask, comparison: Comparison) -> Table:
    scores, measures = result.task.scores, _measures(comparison)
    rows = [
        [Cell(group), *(_cell(scores.get(f"{measure.name}/{group}"), measure.kind == WORDS) for measure in measures)]
        for group in comparison["groups"]
    ]
    caption = (
        f"Groups of {result.label}: percent of texts, and words after the prompt, with 95% intervals for prompts like "
        "these in brackets"
    )
    return Table(caption, [Column("Group"), *(Column(measure.name, True) for measure in measures)], rows)


def _given(value: Value | None) -> Cell:
    if value is None or value.fixed_interval is None:
        return Cell(numbers.NONE)
    low, high = (numbers.number(end, value.unit) for end in value.fixed_interval)
    return Cell(f"{low} to {high}", value.fixed_interval[0])


def _p(value: Value | None) -> Cell:
    return Cell(numbers.NONE) if value is None else Cell(numbers.p_value(value.value), value.value)


def _gaps(result: ReportTask, comparison: Comparison) -> Table:
    scores, rows = result.task.scores, []
    for measure in compared_measures(comparison):
        for group in others(comparison):
            gap, p, adjusted = (
                scores.get(sentences.score_name(measure, quantity, group, comparison))
                for quantity in ("gap", "p", "p_holm")
            )
            rows.append([Cell(measure.name), Cell(group), value_cell(gap), _given(gap), _p(p), _p(adjusted)])
        if len(others(comparison)) > 1:
            together = [_p(scores.get(f"{measure.name}/{name}")) for name in ("p_all", "p_all_holm")]
            rows.append([Cell(measure.name), Cell("all groups"), Cell(numbers.NONE), Cell(numbers.NONE), *together])
    columns = [Column("Measure"), Column("Group"), *(Column(name, True) for name in ("Gap", ALONE, "p", "p corrected"))]
    caption = (
        f"Gaps of {result.label} to {comparison['reference']}, with 95% intervals for prompts like these in brackets; "
        "p by swapping groups in whole clusters, corrected (Holm) for all measures and groups"
    )
    return Table(caption, columns, rows)


def _part(result: ReportTask) -> Part:
    title = f"Groups: {result.label}"
    try:
        comparison = sentences.comparison_of(result.task)
    except BiasError as error:
        return Part(title, [f"Not shown: {error}."])
    measures = _measures(comparison)
    rows = [
        dots.Row(group, [result.task.scores.get(f"{measure.name}/{group}") for measure in measures], number)
        for number, group in enumerate(comparison["groups"])
    ]
    figure = dots.plot(
        f"{result.ident}-groups",
        f"Groups: {result.label}",
        "Shares of texts and mean number of words after the prompt, by group; lines are 95% intervals for prompts like "
        "these. Regard alone misleads: read it with the keywords.",
        [measure.name for measure in measures],
        rows,
    )
    return Part(title, [], [figure], [_shares(result, comparison), _gaps(result, comparison)])


def parts(tasks: Sequence[ReportTask]) -> list[Part]:
    """One part a task: what each group's texts are like, and how they differ from the reference group's."""
    return list(map(_part, tasks))
