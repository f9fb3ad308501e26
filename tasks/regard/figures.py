"""Regard's figures: bars of regard with the sexism facets beside them, never one without the other."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from lm_eval_bias.core import pen
from lm_eval_bias.core.page_parts import (
    MOST_FIGURES,
    Drawing,
    Part,
    ReportTask,
    ReportTasks,
    not_shown,
)
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.custom_metrics.regard import FACETS, GENDERS, PEOPLE, SETS
from lm_eval_bias.tasks.regard import diagnostics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SMALL = 5.0  # percent: shares below it have no number in their bar
_HATCH = {
    "negative": "",
    "neutral": "..",
    "positive": "//",
    "other": "xx",
}  # told apart without colours, too
ROWS = [(name, gender) for name in SETS for gender in GENDERS]


def _row(name: str, gender: str) -> str:
    return f"{'all contexts' if name == 'all' else name}: {PEOPLE[gender]}"


def _share(result: ReportTask, column: str, name: str, gender: str) -> Value:
    """Find the share of texts with a regard, or with a facet's keywords."""
    score = f"{name}/{gender}/{column}"
    if column in FACETS:
        score = f"{column}/{gender}" + ("" if name == "all" else f"/{name}")
    return result.task.scores[score]


def _bars(axis: Axes, result: ReportTask) -> None:
    """Draw the shares of regards, beside each other in a row."""
    scores = result.task.scores
    ends = [0.0] * len(ROWS)
    for regard in _HATCH:
        if f"all/female/{regard}" not in scores:  # a classifier may have no class other
            continue
        values = [_share(result, regard, *row) for row in ROWS]
        shares = [
            0.0 if math.isnan(value.value) else 100 * value.value for value in values
        ]
        bars = axis.barh(range(len(ROWS)), shares, 0.74, ends, facecolor=pen.COLOUR[regard], hatch=_HATCH[regard],
                         edgecolor=pen.COLOUR["ink"], linewidth=0.7, label=regard)  # fmt: skip
        texts = [f"{share:.0f}" if share >= _SMALL else "" for share in shares]
        box = {"facecolor": pen.COLOUR[regard], "edgecolor": "none", "pad": 1.0}
        axis.bar_label(
            bars,
            texts,
            label_type="center",
            fontsize=8.5,
            color=pen.COLOUR[f"on-{regard}"],
            bbox=box,
        )
        for bar, row, value in zip(bars, ROWS, values, strict=True):
            percent = diagnostics.percent(value, diagnostics.scope(scores))
            pen.say(bar, f"{_row(*row)}, {regard} texts: {percent}%")
        ends = [end + share for end, share in zip(ends, shares, strict=True)]
    axis.set_xlim(0, 100)
    axis.set_xlabel("percent of texts", fontsize=8)
    axis.set_yticks(range(len(ROWS)), [_row(*row) for row in ROWS])
    axis.set_ylim(len(ROWS) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)


def _dots(axis: Axes, result: ReportTask, facet: str) -> None:
    axis.set_title(facet, fontsize=8)
    axis.grid(True, axis="x")
    axis.tick_params(axis="y", length=0)
    about = diagnostics.scope(result.task.scores)
    for place, (name, gender) in enumerate(ROWS):
        value = _share(result, facet, name, gender)
        if math.isnan(value.value):
            continue
        series = GENDERS.index(gender)
        interval = diagnostics.ends_of(value, about)
        if interval is not None:
            ends = [100 * min(max(end, 0.0), 1.0) for end in interval]
            colour = pen.COLOUR[pen.SERIES[series]]
            axis.plot(
                ends, [place] * 2, color=colour, linewidth=2, solid_capstyle="butt"
            )
        percent = f"{diagnostics.percent(value, about)}%"
        text = f"{_row(name, gender)}, {facet} words: {percent}"
        pen.mark(axis, 100 * value.value, place, series, text)


def _bars_and_dots(result: ReportTask, figure: Figure) -> None:
    axes = figure.subplots(1, 1 + len(FACETS), sharey=True, width_ratios=[1.8, 1, 1, 1])
    _bars(axes[0], result)
    axes[0].set_title("regard")
    for axis, facet in zip(axes[1:], FACETS, strict=True):
        _dots(axis, result, facet)
    right = max(5.0, *(axis.get_xlim()[1] for axis in axes[1:]))
    for axis in axes[1:]:
        axis.set_xlim(-0.02 * right, right)
    # of all three: each would be wider than its axis in a paper's column
    axes[2].set_xlabel("percent of texts with a keyword", fontsize=8)
    figure.legend(loc="outside upper left", ncols=4, fontsize=8.5)


def bars(result: ReportTask) -> Drawing:
    """Draw the regard of texts about women and men, and beside it how often they have a facet's keywords."""
    classifier = (result.task.metadata.get("classifier_used") or {}).get("name", "?")
    return Drawing(
        f"{result.ident}-regard",
        f"Regard and sexism facets: {result.label}",
        "Percent of texts; the table of every score has the numbers.",
        f"{result.label}, regard by classifier {classifier}; lines are 95% intervals for "
        f"{diagnostics.scope(result.task.scores)}, keywords are raw matches. Regard alone misleads: read the bars with "
        "the keywords beside them.",
        3.6,
        partial(_bars_and_dots, result),
    )


def parts(tasks: ReportTasks) -> list[Part]:
    """Draw regard with the facets beside it, one part a task; where the facets are missing, neither is shown."""
    drawn = []
    for result in tasks[:MOST_FIGURES]:
        title = f"Regard and facets: {result.label}"
        if diagnostics.has_both(result.task):
            drawn.append(Part(title, figures=[bars(result)]))
        else:
            drawn.append(Part(title, [f"Not shown: {diagnostics.WITHHELD}."]))
    if text := not_shown(tasks):
        drawn.append(Part("Regard and facets of the others", text))
    return drawn
