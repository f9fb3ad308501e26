"""Dot plots: scores with their 95% intervals around the neutral line."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_eval_bias.report import numbers, svg
from lm_eval_bias.runs.run_data import Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACROSS = 3
# an axis shows at least this share of a score's range, so that noise doesn't look like a landslide
LEAST = 0.1
_LINE = 32  # characters of a panel's title
_MOST = 24  # numbers that are put into words


@dataclass(frozen=True)
class Row:
    """A line of a dot plot.

    Attributes:
        label: What stands at its left.
        values: One per panel; ``None`` where there is none.
        series: Number of its colour and mark, from 0.
    """

    label: str
    values: Sequence[Value | None]
    series: int = 0


def plottable(value: Value | None) -> bool:
    """Whether a score is a number within its range."""
    return value is not None and value.low <= value.value <= value.high


def limits(values: Sequence[Value]) -> tuple[float, float]:
    """What an axis shows: the values, their intervals and the neutral value, within the range.

    >>> limits([Value("x", 0.5, interval=(0.4, 0.6), low=0.0, high=1.0, neutral=0.5)])
    (0.37, 0.63)
    """
    ends = [end for v in values for end in (v.value, *(v.interval or ()))]
    ends += [v.neutral for v in values if v.neutral is not None]
    low, high = min(v.low for v in values), max(v.high for v in values)
    ends = [min(max(end, low), high) for end in ends]
    span = high - low if math.isfinite(high - low) else 0.0
    middle = (max(ends) + min(ends)) / 2
    wide = max(max(ends) - min(ends), LEAST * span, 1e-6 * max(abs(middle), 1.0))
    left, right = middle - 0.65 * wide, middle + 0.65 * wide
    # a little air at the ends of the range, where marks would be cut
    air = 0.03 * wide
    return round(max(left, low - air), 12), round(min(right, high + air), 12)


def mark(axis: Axes, x: float, y: float, series: int, text: str, **style: Any) -> None:
    """One point, told apart by colour and shape, that says a text to those who ask it."""
    colour, shape = svg.series(series)
    (point,) = axis.plot([x], [y], linestyle="none", marker=svg.MARKERS[shape], markersize=6,
                         color=svg.COLOUR[colour], markeredgewidth=0, **style)  # fmt: skip
    svg.say(point, text)


def _panel(axis: Axes, title: str, rows: Sequence[Row], column: int) -> None:
    values = [v for row in rows if (v := row.values[column]) is not None and plottable(v)]
    axis.set_title(textwrap.fill(svg.short(title, 80), _LINE))
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    if not values:
        axis.set_xticks([])
        axis.text(0.5, 0.5, "nothing to show", transform=axis.transAxes, ha="center", color=svg.COLOUR["muted"])
        return
    axis.set_xlim(*limits(values))
    axis.locator_params(axis="x", nbins=5)
    axis.grid(True, axis="x")
    neutral = values[0].neutral
    label = f"range {numbers.score_range(values[0])}"
    if neutral is not None:
        axis.axvline(neutral, color=svg.COLOUR["ink"], linewidth=1.2, linestyle=(0, (4, 2)))
        label += f", neutral {numbers.bound(neutral)} (dashed)"
    axis.set_xlabel(label, fontsize=8, color=svg.COLOUR["muted"])
    for place, row in enumerate(rows):
        value = row.values[column]
        if value is None or not plottable(value):
            continue
        if value.interval is not None:
            colour = svg.COLOUR[svg.series(row.series)[0]]
            axis.plot(value.interval, [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        mark(axis, value.value, place, row.series, f"{row.label}, {title}: {numbers.cell(value)}")


def describe(rows: Sequence[Row], titles: Sequence[str]) -> str:
    """The plotted numbers in words; of many the first ones, since a table has them all."""
    points = [
        f"{title}, {row.label}: {numbers.cell(value)}"
        for row in rows
        for title, value in zip(titles, row.values, strict=True)
        if value is not None
    ]
    remainder = f"; and {len(points) - _MOST} more, see the table" if len(points) > _MOST else ""
    return f"Dots with 95% intervals in brackets. {'; '.join(points[:_MOST])}{remainder}."


def plot(ident: str, title: str, caption: str, titles: Sequence[str], rows: Sequence[Row]) -> svg.Figure:
    """Panels beside each other, one a score, that share their rows.

    Args:
        ident: Prefix of the ids.
        title: The figure's name.
        caption: What stands below it.
        titles: One per panel.
        rows: Lines, each with a value per panel.
    """
    across = 2 if len(titles) == 4 else min(len(titles), ACROSS)
    lines = math.ceil(len(titles) / across)
    with svg.drawing():
        figure = svg.canvas(lines * (1.0 + 0.27 * len(rows)))
        axes = figure.subplots(lines, across, squeeze=False, sharey=True).ravel()
        for column, (axis, name) in enumerate(zip(axes, titles, strict=False)):
            _panel(axis, name, rows, column)
        for axis in axes[len(titles) :]:
            axis.set_visible(False)
        for axis in axes[::across]:
            axis.set_yticks(range(len(rows)), [svg.short(row.label) for row in rows])
        return svg.inline(figure, ident, title, describe(rows, titles), caption)
