"""The report as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.report import content, page
from lm_eval_bias.runs.run_data import Problem, Run


def as_html(runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """The page about some runs; the same runs always give the same text."""
    made = content.build(runs, problems)
    sections = [(section, content.breakdowns(section)) for section in made.sections]
    return page.render("report.html.j2", report=made, sections=sections)
