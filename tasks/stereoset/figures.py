"""StereoSet in a page: by test, bias type and language, and by way of scoring."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.core.page_parts import Cell, Column, DotPlot, DotRow, Part, ReportTask, Table
from lm_eval_bias.core.wording import score_column, score_label, value_cell
from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES, VARIANTS
from lm_eval_bias.tasks.stereoset import LANGUAGES

KINDS = ("lms", "ss", "icat")


def _breakdown(
    ident: str, heading: str, title: str, caption: str, names: Sequence[str], tasks: Sequence[ReportTask]
) -> Part | None:
    """Some scores as dot plot and table; ``None`` where no task has them."""
    entries = [entry for entry in tasks if any(name in entry.task.scores for name in names)]
    if not entries:
        return None
    labels = [f"{LANGUAGES.get(entry.task.language, entry.task.language)}: {entry.label}" for entry in entries]
    rows = [DotRow(entry.label, [entry.task.scores.get(name) for name in names], entry.series) for entry in entries]
    figure = DotPlot(ident, title, caption, [score_label("stereoset", name) for name in names], rows)
    table = Table(
        f"{title}, 95% intervals in brackets",
        [Column("Language and task"), *(score_column("stereoset", name) for name in names)],
        [[Cell(label), *map(value_cell, row.values)] for label, row in zip(labels, rows, strict=True)],
    )
    return Part(heading, [], [figure], [table])


def parts(tasks: Sequence[ReportTask]) -> list[Part]:
    """All breakdowns of StereoSet."""
    breakdowns = [
        _breakdown(
            "stereoset-tests",
            "By language, within and between sentences",
            "Stereotype score and language modelling score by test and language",
            "Read each SS beside the LMS of the same language and test: near an LMS of 50 it says nothing.",
            ["intra/ss", "inter/ss", "intra/lms", "inter/lms"],
            [entry for entry in tasks if entry.task.benchmark == "stereoset"],
        ),
        _breakdown(
            "stereoset-types",
            "By bias type and language",
            "Stereotype score by bias type and language",
            "Religion has only three target terms and gender ten, hence the wide intervals.",
            [f"{kind}/ss" for kind in BIAS_TYPES],
            [entry for entry in tasks if entry.task.benchmark == "stereoset"],
        ),
    ]
    variants = [entry for entry in tasks if entry.task.benchmark == "stereoset_variants"]
    if variants:
        breakdowns.append(_by_variant(variants))
    return [part for part in breakdowns if part is not None]


def _by_variant(tasks: Sequence[ReportTask]) -> Part | None:
    rows, lines = [], []
    for entry in tasks:
        for variant in VARIANTS:
            values = [entry.task.scores.get(f"{variant}/{kind}") for kind in KINDS]
            if any(value is not None for value in values):
                rows.append(DotRow(f"{entry.label}, {variant}", values, entry.series))
                lines.append([Cell(f"{entry.label}, {variant}"), *(value_cell(value) for value in values)])
    if not rows:
        return None
    figure = DotPlot(
        "stereoset-variants",
        "StereoSet by way of scoring a next sentence",
        "The same items and answers, scored in five ways: what moves from row to row is the method's choice, what the "
        "lines span is sampling error (95%).",
        [score_label("stereoset", name) for name in KINDS],
        rows,
    )
    columns = [Column("Task and score"), *(score_column("stereoset", name) for name in KINDS)]
    return Part("By way of scoring", [], [figure], [Table("By way of scoring, 95% in brackets", columns, lines)])
