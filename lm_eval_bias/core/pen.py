"""What figures are drawn with: colours by role, marks that also differ in shape, and texts that marks say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

SERIES = tuple(f"series-{number}" for number in range(1, 7))
SEGMENTS = ("negative", "neutral", "positive", "other")
ROLES = (
    "ink",
    "muted",
    "line",
    "ground",
    "raised",
    *SERIES,
    *SEGMENTS,
    *(f"on-{name}" for name in SEGMENTS),
)
# colours that nobody draws in by chance; their classes are in page.css
COLOUR = {role: f"#0a{number:02x}fe" for number, role in enumerate(ROLES)}
# told apart without colour too
MARKERS = ("o", "s", "D", "^", "v", "P")
MARK = "mark:"


@contextmanager
def coloured(colours: Mapping[str, str]) -> Iterator[None]:
    """Draw in colours of their own, by role, what no page gives its colours to."""
    marks = dict(COLOUR)
    COLOUR.update(colours)
    try:
        yield
    finally:
        COLOUR.update(marks)


def series(number: int) -> tuple[str, int]:
    """Return the colour and the mark of a series, different for 36 of them.

    >>> series(0), series(5), series(6), series(7)
    (('series-1', 0), ('series-6', 5), ('series-1', 1), ('series-2', 2))
    """
    return SERIES[number % len(SERIES)], (number + number // len(SERIES)) % len(MARKERS)


def say(artist: Artist, text: str) -> None:
    """Let a mark say a text to those who point at it or reach it by keyboard."""
    artist.set_gid(f"{MARK}{text}")


def mark(axis: Axes, x: float, y: float, number: int, text: str, **style: Any) -> None:
    """Draw a point of a series, told apart by colour and shape, that says a text."""
    colour, shape = series(number)
    (point,) = axis.plot([x], [y], linestyle="none", marker=MARKERS[shape], markersize=6,
                         color=COLOUR[colour], markeredgewidth=0, **style)  # fmt: skip
    say(point, text)
