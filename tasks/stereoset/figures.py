"""StereoSet's table: stereotype and language modelling score by test and language."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.core.page_parts import Column, Part, ReportTask, Row, Table
from lm_eval_bias.core.wording import value_cell
from lm_eval_bias.custom_metrics import stereoset
from lm_eval_bias.tasks.stereoset import LANGUAGES

_NAMES = ("intra/ss", "inter/ss", "intra/lms", "inter/lms")


def parts(tasks: Sequence[ReportTask]) -> list[Part]:
    """Set SS beside LMS by test, a row for each language; nothing without such scores."""
    rows: list[Row] = []
    for entry in tasks:
        scores, language = entry.task.scores, entry.task.language
        if entry.task.benchmark == "stereoset" and not scores.keys().isdisjoint(_NAMES):
            label = f"{LANGUAGES.get(language, language)}: {entry.label}"
            rows.append([label, *map(value_cell, map(scores.get, _NAMES))])
    titles = {score.name: score.title for score in stereoset.scores()}
    columns = [Column("Task"), *(Column(titles[name], True, name) for name in _NAMES)]
    caption = "Stereotype score and language modelling score by test and language, 95% intervals in brackets"
    text = "Read each SS beside the LMS of the same language and test: near an LMS of 50 it says nothing."
    heading = "By language, within and between sentences"
    return [Part(heading, [text], [], [Table(caption, columns, rows)])] if rows else []
