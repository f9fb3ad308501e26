"""StereoSet's tables: scores by test, bias type and language, and by way of scoring."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.core.page_parts import Cell, Column, Part, ReportTask, Table
from lm_eval_bias.core.wording import score_column, value_cell
from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES, VARIANTS
from lm_eval_bias.tasks.stereoset import LANGUAGES

KINDS = ("lms", "ss", "icat")


def _part(heading: str, text: str, caption: str, names: Sequence[str], rows: Sequence[tuple[Cell, ...]]) -> list[Part]:
    """A table of scores with what to know of it; nothing without rows."""
    columns = [Column("Task"), *(score_column("stereoset", name) for name in names)]
    return [Part(heading, [text], [], [Table(caption, columns, rows)])] if rows else []


def parts(tasks: Sequence[ReportTask]) -> list[Part]:
    """Lay out all breakdowns of StereoSet."""
    shown = []
    for heading, caption, text, names in (
        (
            "By language, within and between sentences",
            "Stereotype score and language modelling score by test and language",
            "Read each SS beside the LMS of the same language and test: near an LMS of 50 it says nothing.",
            ["intra/ss", "inter/ss", "intra/lms", "inter/lms"],
        ),
        (
            "By bias type and language",
            "Stereotype score by bias type and language",
            "Religion has only three target terms and gender ten, hence the wide intervals.",
            [f"{kind}/ss" for kind in BIAS_TYPES],
        ),
    ):
        rows = [
            (
                Cell(f"{LANGUAGES.get(entry.task.language, entry.task.language)}: {entry.label}"),
                *(value_cell(entry.task.scores.get(name)) for name in names),
            )
            for entry in tasks
            if entry.task.benchmark == "stereoset" and any(name in entry.task.scores for name in names)
        ]
        shown += _part(heading, text, f"{caption}, 95% intervals in brackets", names, rows)
    by_variant = [
        (
            Cell(f"{entry.label}, {variant}"),
            *(value_cell(entry.task.scores.get(f"{variant}/{kind}")) for kind in KINDS),
        )
        for entry in tasks
        if entry.task.benchmark == "stereoset_variants"
        for variant in VARIANTS
        if any(f"{variant}/{kind}" in entry.task.scores for kind in KINDS)
    ]
    text = (
        "The same items and answers, scored in five ways: what moves from row to row is the method's choice, what the "
        "intervals span is sampling error."
    )
    return [*shown, *_part("By way of scoring", text, "By way of scoring, 95% in brackets", KINDS, by_variant)]
