"""A user's own prompts in a page: every group's regard, keywords and length."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.custom_metrics.own_prompts import measures
from lm_eval_bias.report import dots
from lm_eval_bias.report.parts import Part, ReportTask


def _part(result: ReportTask) -> Part:
    comparison, title = result.task.metadata["comparison"], f"Groups: {result.label}"
    names = [measure.name for measure in measures(comparison)]
    rows = [
        dots.Row(group, [result.task.scores.get(f"{name}/{group}") for name in names], number)
        for number, group in enumerate(comparison["groups"])
    ]
    explained = (
        "Shares of texts and mean number of words after the prompt, by group; lines are 95% intervals for prompts like "
        "these. Regard alone misleads: read it with the keywords."
    )
    return Part(title, [], [dots.plot(f"{result.ident}-groups", title, explained, names, rows)])


def parts(tasks: Sequence[ReportTask]) -> list[Part]:
    """One part a task: what each group's texts are like."""
    return list(map(_part, tasks))
