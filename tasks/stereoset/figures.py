"""StereoSet's figures: scores by test, bias type and language, and by way of scoring."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.core.page_parts import Cell, Column, DotPlot, DotRow, Part, ReportTask, Table
from lm_eval_bias.core.wording import score_column, score_label, value_cell
from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES, VARIANTS
from lm_eval_bias.tasks.stereoset import LANGUAGES

KINDS = ("lms", "ss", "icat")


def _part(
    heading: str,
    plot: tuple[str, str, str],
    table: tuple[str, str],
    names: Sequence[str],
    rows: Sequence[tuple[str, DotRow]],
) -> list[Part]:
    """Draw scores as dot plot (identifier, title, caption) and table (title, first column); nothing without rows."""
    if not rows:
        return []
    figure = DotPlot(*plot, [score_label("stereoset", name) for name in names], [row for _, row in rows])
    columns = [Column(table[1]), *(score_column("stereoset", name) for name in names)]
    lines = [[Cell(label), *map(value_cell, row.values)] for label, row in rows]
    return [Part(heading, [], [figure], [Table(table[0], columns, lines)])]


def parts(tasks: Sequence[ReportTask]) -> list[Part]:
    """Draw all breakdowns of StereoSet."""
    drawn = []
    for ident, heading, title, caption, names in (
        (
            "stereoset-tests",
            "By language, within and between sentences",
            "Stereotype score and language modelling score by test and language",
            "Read each SS beside the LMS of the same language and test: near an LMS of 50 it says nothing.",
            ["intra/ss", "inter/ss", "intra/lms", "inter/lms"],
        ),
        (
            "stereoset-types",
            "By bias type and language",
            "Stereotype score by bias type and language",
            "Religion has only three target terms and gender ten, hence the wide intervals.",
            [f"{kind}/ss" for kind in BIAS_TYPES],
        ),
    ):
        rows = [
            (
                f"{LANGUAGES.get(entry.task.language, entry.task.language)}: {entry.label}",
                DotRow(entry.label, [entry.task.scores.get(name) for name in names], entry.series),
            )
            for entry in tasks
            if entry.task.benchmark == "stereoset" and any(name in entry.task.scores for name in names)
        ]
        table = (f"{title}, 95% intervals in brackets", "Language and task")
        drawn += _part(heading, (ident, title, caption), table, names, rows)
    by_variant = [
        (label, DotRow(label, [entry.task.scores.get(f"{variant}/{kind}") for kind in KINDS], entry.series))
        for entry in tasks
        if entry.task.benchmark == "stereoset_variants"
        for variant in VARIANTS
        if any(f"{variant}/{kind}" in entry.task.scores for kind in KINDS)
        for label in [f"{entry.label}, {variant}"]
    ]
    plot = (
        "stereoset-variants",
        "StereoSet by way of scoring a next sentence",
        "The same items and answers, scored in five ways: what moves from row to row is the method's choice, what the "
        "lines span is sampling error (95%).",
    )
    table = ("By way of scoring, 95% in brackets", "Task and score")
    return [*drawn, *_part("By way of scoring", plot, table, KINDS, by_variant)]
