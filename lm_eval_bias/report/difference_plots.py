"""Differences with their intervals around 0, and how small a difference their items could have shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lm_eval_bias.comparing.findings import Finding
from lm_eval_bias.core import numbers, pen
from lm_eval_bias.core.page_parts import Drawing
from lm_eval_bias.core.wording import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION = (
    "Marks are differences from {base}, lines their 95% intervals; right of 0 the score is higher than with {base}. "
    "Filled marks are significant differences, hollow marks are not. The band around 0 reaches to the smallest "
    "difference that this number of items would detect with 80% probability."
)
_ACROSS = 3
_NO_WIDTH = 1e-12  # nothing but rounding: an axis of that width would have unreadable numbers
_MOST = 24  # numbers that are put into words


@dataclass(frozen=True)
class Line:
    """A line of the plot.

    Attributes:
        label: What stands at its left.
        findings: By score; empty for a line that only heads others.
        series: Number of its colour and mark, from 0.
    """

    label: str
    findings: Mapping[str, Finding] = field(default_factory=dict)
    series: int = 0


def is_drawable(finding: Finding | None) -> bool:
    """Whether there is a difference that an axis can show."""
    return finding is not None and math.isfinite(finding.difference.value)


def _detectable(finding: Finding) -> float:
    reach = finding.difference.detectable(finding.level)
    return reach if math.isfinite(reach) else math.nan


def _ends(finding: Finding) -> list[float]:
    """How far a line reaches to both sides, its band included."""
    reach = _detectable(finding)
    ends = [0.0, finding.difference.value, *(finding.difference.interval or ())]
    return ends if math.isnan(reach) else [*ends, -reach, reach]


def _draw(axis: Axes, place: int, finding: Finding, series: int) -> None:
    reach, value = _detectable(finding), finding.difference.value
    if not math.isnan(reach):
        axis.barh(place, 2 * reach, left=-reach, height=0.66, color=pen.COLOUR["neutral"], linewidth=0, zorder=1)
        axis.vlines([-reach, reach], place - 0.33, place + 0.33, colors=pen.COLOUR["muted"], linewidth=0.9, zorder=2)
    # colours and marks start to repeat in other pairs after six
    colour = pen.COLOUR[pen.SERIES[(series + series // len(pen.MARKERS)) % len(pen.SERIES)]]
    if finding.difference.interval is not None:
        axis.plot(finding.difference.interval, [place, place], color=colour, linewidth=2, solid_capstyle="butt")
    axis.plot(
        [value],
        [place],
        linestyle="none",
        marker=pen.MARKERS[series % len(pen.MARKERS)],
        markersize=6.5,
        markerfacecolor=colour if finding.significant else pen.COLOUR["ground"],
        markeredgecolor=colour,
        markeredgewidth=1.4,
        zorder=4,
    )


def _panel(axis: Axes, title: str, score: str, lines: Sequence[Line]) -> None:
    shown = [(i, line, line.findings[score]) for i, line in enumerate(lines) if is_drawable(line.findings.get(score))]
    axis.set_title(short(title, 46))
    axis.set_ylim(len(lines) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    if not shown:
        axis.set_xticks([])
        axis.text(0.5, 0.5, "nothing to show", transform=axis.transAxes, ha="center", color=pen.COLOUR["muted"])
        return
    ends = [end for _, _, finding in shown for end in _ends(finding)]
    width = max(ends) - min(ends)
    air = 0.04 * width if width > _NO_WIDTH else 1.0
    axis.set_xlim(min(ends) - air, max(ends) + air)
    axis.locator_params(axis="x", nbins=5)
    axis.grid(True, axis="x")
    axis.axvline(0.0, color=pen.COLOUR["ink"], linewidth=1.2, linestyle=(0, (4, 2)), zorder=3)
    points = " in percentage points" if shown[0][2].score.unit.startswith("percent") else ""
    axis.set_xlabel(f"difference{points}", fontsize=8, color=pen.COLOUR["muted"])
    for place, line, finding in shown:
        _draw(axis, place, finding, line.series)


def _describe(lines: Sequence[Line], titles: Mapping[str, str]) -> str:
    """The plotted numbers in words; of many the first ones, since a table has them all."""
    points = []
    for score, title in titles.items():
        heading = ""
        for line in lines:
            heading = heading if line.findings else f"{line.label}, "
            if is_drawable(finding := line.findings.get(score)) and finding is not None:
                difference, unit = finding.difference, finding.score.unit
                ends = difference.interval
                between = "" if ends is None else f" [{', '.join(numbers.number(end, unit) for end in ends)}]"
                told = "significant" if finding.significant else "not significant"
                value = numbers.number(difference.value, unit)
                points.append(f"{title}, {heading}{line.label}: {value}{between}, {told}")
    remainder = f"; and {len(points) - _MOST} more, see the table" if len(points) > _MOST else ""
    return f"Differences with 95% intervals in brackets. {'; '.join(points[:_MOST])}{remainder}."


def plot(ident: str, title: str, caption: str, titles: Mapping[str, str], lines: Sequence[Line]) -> Drawing:
    """Panels beside each other, one a score, that share their lines.

    Args:
        ident: Prefix of the ids.
        title: The figure's name.
        caption: What stands below it.
        titles: What people call each score, by its technical name.
        lines: Lines from top to bottom.
    """
    across = 2 if len(titles) == 4 else min(len(titles), _ACROSS)
    down = math.ceil(len(titles) / across)

    def draw(figure: Figure) -> None:
        axes = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axis, (score, name) in zip(axes, titles.items(), strict=False):
            _panel(axis, name, score, lines)
        for axis in axes[len(titles) :]:
            axis.set_visible(False)
        for axis in axes[::across]:
            axis.set_yticks(range(len(lines)), [short(line.label) for line in lines])
            for tick, line in zip(axis.get_yticklabels(), lines, strict=True):
                tick.set_fontweight("normal" if line.findings else "bold")

    return Drawing(ident, title, _describe(lines, titles), caption, down * (1.0 + 0.27 * len(lines)), draw)
