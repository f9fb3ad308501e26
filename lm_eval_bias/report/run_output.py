"""What is printed after a run, beside the scores in words: a table of them."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.core import numbers
from lm_eval_bias.core.page_parts import Footnotes, Table, numeric
from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.report import parts
from lm_eval_bias.report.tables import text_table

TABLES = ("main", "all", "none")  # what --table takes


def scores(tasks: Sequence[TaskRun], which: str) -> str:
    """Make the table of scores: one line per task and score, with interval and reference.

    Args:
        tasks: Of one run.
        which: One of :data:`TABLES`.
    """
    if which == "none":
        return ""
    footnotes = Footnotes()
    rows = []
    named = [("", task) for task in tasks]
    chosen = parts.all_scores if which == "all" else TaskRun.shown
    for name, value, cells in parts.score_rows(named, footnotes, chosen):
        cell = cells[""].whole
        has_goal = value.neutral is not None or value.higher_is_better is not None
        goal = numbers.target_text(value) if has_goal else numbers.NONE
        rows.append([name, value.name, cell, goal])
    columns = ["Task", "Score", *numeric("Value"), "Neutral, best"]
    return text_table(Table("", columns, rows, footnotes.lines))
