"""StereoSet's table: stereotype and language modelling score by test and language."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.core.page_parts import Cell, Column, Part, ReportTask, Table
from lm_eval_bias.core.wording import score_column, value_cell
from lm_eval_bias.custom_metrics import stereoset
from lm_eval_bias.tasks.stereoset import LANGUAGES

_NAMES = ("intra/ss", "inter/ss", "intra/lms", "inter/lms")


def parts(tasks: Sequence[ReportTask]) -> list[Part]:
    """Set SS beside LMS by test, a row for each language; nothing without such scores."""
    rows = []
    for entry in tasks:
        scores, language = entry.task.scores, entry.task.language
        if entry.task.benchmark == "stereoset" and any(
            name in scores for name in _NAMES
        ):
            values = [value_cell(scores.get(name)) for name in _NAMES]
            rows.append(
                [Cell(f"{LANGUAGES.get(language, language)}: {entry.label}"), *values]
            )
    by_name = {score.name: score for score in stereoset.scores()}
    columns = [Column("Task"), *(score_column(by_name[name]) for name in _NAMES)]
    caption = "Stereotype score and language modelling score by test and language, 95% intervals in brackets"
    text = "Read each SS beside the LMS of the same language and test: near an LMS of 50 it says nothing."
    part = Part(
        "By language, within and between sentences",
        [text],
        [],
        [Table(caption, columns, rows)],
    )
    return [part] if rows else []
