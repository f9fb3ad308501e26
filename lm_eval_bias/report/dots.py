"""Marks with their 95% intervals, placed; and dot plots, which show scores around the neutral line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lm_eval_bias.core import numbers, pen
from lm_eval_bias.core.page_parts import DotPlot, DotRow, plottable
from lm_eval_bias.core.run_data import Value

ROW = 20  # pixels
ROWS = 40  # what a reader can take in; of more, the first are drawn
_TICKS = 4  # gaps between numbers on an axis, at most
# an axis shows at least this share of a score's range, so that noise doesn't look like a landslide
LEAST = 0.1
_NO_WIDTH = 1e-12  # nothing but rounding: an axis of that width would have unreadable numbers
_MOST = 24  # numbers that are put into words


@dataclass(frozen=True)
class PlacedMark:
    """A score in a drawing of the page's own; places are percents of its width, ``y`` is in pixels.

    Attributes:
        text: What it says, for those who point at it or reach it by keyboard.
        colour: Of :data:`lm_eval_bias.core.pen.SERIES`.
        shape: Number of its mark.
        at: Where the value is.
        bar: Where the interval begins and ends; ``None`` where there is none.
        y: Its lane.
        link: To its items; empty where there are none.
        hollow: Whether the mark isn't filled.
    """

    text: str
    colour: str
    shape: int
    at: float
    bar: tuple[float, float] | None
    y: float
    link: str = ""
    hollow: bool = False


def place(
    text: str, series: int, shares: Iterable[float], y: float, link: str = "", hollow: bool = False, small: bool = False
) -> PlacedMark:
    """A mark of a series where a value and its interval's ends are, as shares of the width; it stays within."""
    at, *ends = (round(min(max(100 * share, 0.0), 100.0), 2) for share in shares)
    colour, shape = pen.series(series)
    bar = (min(ends), max(ends)) if ends else None
    return PlacedMark(text, colour, len(pen.MARKERS) if small else shape, at, bar, y, link, hollow)


@dataclass(frozen=True)
class Panel:
    """One score of a dot plot.

    Attributes:
        title: The score.
        ticks: Places of numbers on the axis, with the numbers.
        neutral: Where the neutral value is; ``None`` where there is none.
        points: The values.
        note: How to read the axis.
    """

    title: str
    ticks: Sequence[tuple[float, str]]
    neutral: float | None
    points: Sequence[PlacedMark]
    note: str


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
    wide = max(max(ends) - min(ends), LEAST * span)
    wide = wide if wide > _NO_WIDTH else 1.0
    left, right = middle - 0.65 * wide, middle + 0.65 * wide
    # a little air at the ends of the range, where marks would be cut
    air = 0.03 * wide
    return round(max(left, low - air), 12), round(min(right, high + air), 12)


def ticks(low: float, high: float) -> list[float]:
    """A few round numbers between two ends.

    >>> ticks(0.37, 0.63), ticks(-1.0, 1.0), ticks(3.0, 3.0)
    ([0.4, 0.5, 0.6], [-1.0, -0.5, 0.0, 0.5, 1.0], [3.0])
    """
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / _TICKS))
    step = next(power * size for size in (1.0, 2.0, 2.5, 5.0, 10.0) if power * size >= (high - low) / _TICKS)
    return [
        round(number * step, 12) for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    ]


def _panel(title: str, rows: Sequence[DotRow], column: int) -> Panel:
    shown = [(y, row, value) for y, row in enumerate(rows) if (value := row.values[column]) and plottable(value)]
    if not shown:
        return Panel(title, [], None, [], "nothing to show")
    first = shown[0][2]
    low, high = limits([value for _, _, value in shown])

    def share(number: float) -> float:
        return (number - low) / (high - low)

    points = [
        place(f"{row.label}, {title}: {numbers.cell(value)}", row.series,
              map(share, (value.value, *(value.interval or ()))), (y + 0.5) * ROW)
        for y, row, value in shown
    ]  # fmt: skip
    marked = [(round(100 * share(number), 2), f"{number:g}") for number in ticks(low, high)]
    note = f"range {numbers.score_range(first)}"
    if first.neutral is None:
        return Panel(title, marked, None, points, note)
    neutral = round(100 * share(first.neutral), 2)
    return Panel(title, marked, neutral, points, f"{note}, {numbers.aim(first)} (dashed)")


def describe(plot: DotPlot) -> str:
    """The plotted numbers in words; of many the first ones, since a table has them all."""
    points = [
        f"{title}, {row.label}: {numbers.cell(value)}"
        for row in plot.rows
        for title, value in zip(plot.panels, row.values, strict=True)
        if value is not None
    ]
    remainder = f"; and {len(points) - _MOST} more, see the table" if len(points) > _MOST else ""
    return f"Dots with 95% intervals in brackets. {'; '.join(points[:_MOST])}{remainder}."


def caption(plot: DotPlot) -> str:
    """What stands below a plot, which draws the first of many rows only."""
    more = f" Drawn are the first {ROWS} of {len(plot.rows):,} rows; the table has all of them."
    return plot.caption + (more if len(plot.rows) > ROWS else "")


def panels(plot: DotPlot) -> list[Panel]:
    """The scores of a plot, laid out."""
    return [_panel(name, plot.rows[:ROWS], column) for column, name in enumerate(plot.panels)]
