"""The one picture of scores: a row each, a mark a model, around the neutral line."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from lm_eval_bias.core import numbers
from lm_eval_bias.core.files import packaged_text
from lm_eval_bias.core.page_parts import Cell, ReportTask
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.core.wording import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# shares of the range that the picture's half width can stand for
LIMITS = (0.1, 0.25, 0.5, 1.0)
SERIES = 6  # colours, in page.css
# told apart without colour, too; their paths are in macros.html.j2
MARKERS = ("o", "s", "D", "^", "v", "P")
_MARK = 0.13  # inches of a mark's lane in a file
_HEAD = 0.38  # of a panel's title and axis
_WIDTH = 6.7  # of a paper's text
_SETTINGS = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # fonts whole, and no bitmaps, as publishers want them
    "svg.hashsalt": "lm-eval-bias",
    "text.parse_math": False,  # a model's name is text, with or without dollar signs
    "font.size": 6.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "ytick.major.size": 0,
    "patch.linewidth": 0.5,
    "legend.frameon": False,
}
# nothing that changes from day to day
_METADATA: Mapping[str, Mapping[str, None]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
}


class Mark(NamedTuple):
    """A model's value in a picture.

    Attributes:
        row: What its row is called.
        model: Its run.
        series: The run's number.
        value: The score.
        cell: The value as tables write it, with the mark of its footnote.
    """

    row: str
    model: str
    series: int
    value: Value
    cell: Cell


@dataclass(frozen=True)
class Panel:
    """Marks of one score, by rows on one scale.

    Attributes:
        title: The score.
        marks: At least one, each :func:`in_picture`.
    """

    title: str
    marks: Sequence[Mark]

    @cached_property
    def rows(self) -> Mapping[str, Sequence[Mark]]:
        """The marks by what their row is called."""
        return numbers.grouped((mark.row, mark) for mark in self.marks)

    @cached_property
    def limit(self) -> float:
        """The share of the range that half the width stands for."""
        return limit_of(mark.value for mark in self.marks)

    @property
    def ends(self) -> tuple[str, ...]:
        """What stands at the left end, in the middle and at the right end."""
        score = self.marks[0].value
        neutral = score.neutral or 0.0
        low = neutral - self.limit * (neutral - score.low)
        high = neutral + self.limit * (score.high - neutral)
        return tuple(numbers.bound(end, score.unit) for end in (low, neutral, high))

    @property
    def height(self) -> float:
        """The height in inches."""
        return _HEAD + _MARK * (len(self.marks) + 0.5 * len(self.rows))

    def draw(self, axis: Axes) -> None:
        """Draw the marks, with their values beside them."""
        known = colours()
        labels = []
        lane = 0.0
        for row, marks in self.rows.items():
            labels.append((lane + (len(marks) - 1) / 2, short(row, 40)))
            for mark in marks:
                role, shape = series(mark.series)
                low, at, high = places(mark.value, self.limit)
                colour = known[role]
                axis.hlines(lane, low, high, colors=colour, lw=1.2)
                axis.plot(
                    at, lane, MARKERS[shape], c=colour, ms=3.5, mew=0, label=mark.model
                )
                axis.text(102, lane, mark.cell.whole, va="center", fontsize=5.5)
                lane += 1
            lane += 0.5
        place = ("figure fraction", "axes fraction")
        title = short(self.title, 60)
        axis.annotate(title, (0.01, 1), (0, 4), place, "offset points", weight="bold")
        axis.set(xlim=(0, 100), ylim=(lane - 0.4, -0.8))
        axis.set_yticks([at for at, _ in labels], [text for _, text in labels])
        axis.axvline(50, color=known["ink"], linestyle="--", lw=0.7, zorder=0)
        axis.set_xticks([0, 50, 100], self.ends)


class Shares(NamedTuple):
    """Stacked shares of a task's texts, in percent.

    Attributes:
        item: Whose scores they are.
        rows: Names of scores, by what a row is called.
    """

    item: ReportTask
    rows: Mapping[str, Sequence[str]]

    @property
    def height(self) -> float:
        """The height in inches."""
        return _HEAD + 0.16 * len(self.rows)

    def draw(self, axis: Axes) -> None:
        """Draw the shares, with their numbers."""
        known = colours()
        scores = self.item.task.scores
        for row, names in self.rows.items():
            end = 0.0
            for name in filter(scores.get, names):
                share = 100 * scores[name].value
                kind = name.rpartition("/")[2]
                is_regard = kind in known
                colour = known[kind] if is_regard else known["series-1"]
                bar = axis.barh(
                    row,
                    share,
                    left=end,
                    color=colour,
                    ec=known["ink"],
                    label=kind * is_regard,
                )
                axis.bar_label(
                    bar, [f"{share:.0f}"], label_type="center" if is_regard else "edge"
                )
                end += share
        axis.set(xlim=(0, 100), title=self.item.label, xlabel="percent")
        axis.invert_yaxis()


Panels = Sequence[Panel | Shares]


def series(number: int) -> tuple[str, int]:
    """Return the colour and the mark of a series, different for 36 of them.

    >>> series(0), series(5), series(6), series(7)
    (('series-1', 0), ('series-6', 5), ('series-1', 1), ('series-2', 2))
    """
    colour = f"series-{number % SERIES + 1}"
    return colour, (number + number // SERIES) % len(MARKERS)


def position(value: Value, number: float) -> float:
    """Scale a value to -1..1, with 0 at neutral and ±1 at the ends of the range.

    >>> score = Value("x", 60.0, low=0.0, high=100.0, neutral=20.0)
    >>> position(score, 60.0), position(score, 15.0), position(score, 120.0)
    (0.5, -0.25, 1.0)
    """
    neutral = value.neutral or 0.0
    length = value.high - neutral if number > neutral else neutral - value.low
    if number == neutral or length <= 0:
        return 0.0
    return max(-1.0, min(1.0, (number - neutral) / length))


def in_picture(value: Value) -> bool:
    """Return whether a score can be drawn: it has a value, a bounded range and a neutral value, and no ability."""
    return (
        value.higher_is_better is None
        and value.neutral is not None
        and value.low <= value.neutral <= value.high
        and -math.inf < value.low <= value.value <= value.high < math.inf
    )


def limit_of(values: Iterable[Value]) -> float:
    """Return the share of the range, to each side of neutral, in which all intervals lie; all of it without any."""
    ends = chain.from_iterable(places(value, 1.0) for value in values)
    furthest = max((abs(end - 50) for end in ends), default=50)
    return next(limit for limit in LIMITS if furthest <= 50 * limit)


def places(value: Value, limit: float) -> list[float]:
    """Return where a value's interval begins, the value and the interval's end are, in percent of the width."""
    low, high = value.interval or (value.value, value.value)
    shares = (position(value, number) / limit for number in (low, value.value, high))
    return [round(50 + 50 * share, 2) for share in shares]


# ---------------------------------------------------------------------- files


@cache
def colours() -> dict[str, str]:
    """Return the page's colours by day."""
    css = packaged_text("lm_eval_bias.report", "page.css")
    return dict(re.findall(r"--([\w-]+): (#\w{6})", css[: css.index("}")]))


def files(panels: Panels, notes: Sequence[str] = ()) -> dict[str, bytes]:
    """Draw panels below each other, with a legend; return the figure's bytes by format.

    Args:
        panels: At least one.
        notes: Footnotes.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = {}
    note = "\n".join(textwrap.wrap(" · ".join(notes), int(_WIDTH * 23)))
    heights = [one.height for one in panels]
    height = sum(heights) + 0.3 + 0.1 * (note.count("\n") + 1)
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0]
        legend: dict[str, Any] = {}
        for axis, one in zip(axes, panels, strict=True):
            one.draw(axis)
            handles, labels = axis.get_legend_handles_labels()
            legend |= dict(zip(labels, handles, strict=True))
        if len(legend) > 1:
            figure.legend(legend.values(), legend, loc="outside upper center", ncols=4)
        if note:
            figure.supxlabel(note, x=0.01, ha="left", fontsize=5.5)
        for style, metadata in _METADATA.items():
            out = io.BytesIO()
            figure.savefig(out, format=style, metadata=metadata)
            made[style] = out.getvalue()
    return made
