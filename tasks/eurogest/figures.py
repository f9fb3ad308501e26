"""EuroGEST's map of stereotypes and languages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lm_eval_bias.core import pen
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.page_parts import (
    BEWARE,
    Cell,
    Drawing,
    Part,
    ReportTask,
    ReportTasks,
    Row,
    Table,
    numeric,
    plottable,
    to_beware_of,
)
from lm_eval_bias.custom_metrics.eurogest import NAMES, OF_WOMEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

LARGEST = 0.9  # of a square's side, in rows


def _shares(task: ReportTask) -> list[float]:
    """Return each stereotype's masculine share less their mean; nan where there is none."""
    scores = task.task.scores
    values = [scores.get(f"{name}/masculine_share") for name in NAMES]
    known = [value.value for value in values if value and plottable(value)]
    mean = sum(known) / max(len(known), 1)
    return [
        value.value - mean if value and plottable(value) else math.nan
        for value in values
    ]


def _draw(
    languages: Sequence[str], shares: NDArray[np.float64], figure: Figure
) -> None:
    """Draw a square for each stereotype and language: filled above the language's mean, open below it."""
    from matplotlib.patches import Rectangle

    axis = figure.subplots()
    most = np.nanmax(np.abs(shares)) or 1.0
    for (row, column), share in np.ndenumerate(shares):
        if np.isnan(share):
            continue
        side = LARGEST * float(np.sqrt(abs(share) / most))
        corner = (column - side / 2, row - side / 2)
        colour = pen.COLOUR["series-1" if share > 0 else "series-2"]
        square = Rectangle(
            corner,
            side,
            side,
            facecolor=colour if share > 0 else "none",
            edgecolor=colour,
        )
        pen.say(
            axis.add_patch(square), f"{NAMES[row]}, {languages[column]}: {share:+.3f}"
        )
    axis.axhline(OF_WOMEN - 0.5, color=pen.COLOUR["muted"], linewidth=1)
    axis.set_xlim(-0.6, max(len(languages), len(NAMES)) - 0.4)
    axis.set_ylim(len(NAMES) - 0.4, -0.6)
    axis.set_xticks(range(len(languages)), languages, fontsize=8)
    axis.set_yticks(range(len(NAMES)), NAMES, fontsize=8)
    axis.xaxis.tick_top()


def parts(tasks: ReportTasks) -> list[Part]:
    """Set each run's stereotypes and languages side by side, drawn and as numbers."""
    shown: list[Part] = []
    for label, of_run in grouped((task.run.name, task) for task in tasks).items():
        found = [(task, _shares(task)) for task in of_run]
        known = [pair for pair in found if any(map(np.isfinite, pair[1]))]
        if not known:
            continue
        by_language = {task.task.language: task.task for task, _ in known}
        languages = [
            f"{code}{BEWARE * bool(task.diagnostics)}"
            for code, task in by_language.items()
        ]
        note = to_beware_of(by_language)
        shares = np.array([values for _, values in known]).T
        rows: list[Row] = []
        for name, values in zip(NAMES, shares, strict=True):
            rows.append(
                [name, *(Cell(f"{value:+.3f}", float(value)) for value in values)]
            )
        what = "Masculine share of each stereotype minus the language's mean over stereotypes"
        drawing = Drawing(
            f"{known[0][0].ident}-stereotypes",
            f"Stereotypes by language: {label}",
            f"{what}; the table has the values.",
            f"{label}: {what[0].lower()}{what[1:]}. Filled: masculine texts are likelier than the mean; open: feminine "
            "ones. The area is the difference. Above the line stereotypes of women, below it those of men.",
            5.0,
            partial(_draw, languages, shares),
            note,
        )
        heads = ["Stereotype", *numeric(*languages)]
        table = Table(f"{what}: {label}", heads, rows, [note] if note else [])
        shown.append(Part("Stereotypes by language", (), [drawing], [], [table]))
    return shown
