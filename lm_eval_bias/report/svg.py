"""matplotlib figures as inline SVG that takes its colours from the page and meets its Content-Security-Policy.

Figures are drawn in marker colours that stand for roles (ink, grid, first series, ...). Converting replaces them by
classes that the page's style sheet colours, for light and dark alike; ``style`` attributes, which the policy forbids,
become presentation attributes. The same figure always gives the same text.
"""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

from lm_eval_bias.core.page_parts import Figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure as Drawing


SERIES = tuple(f"series-{number}" for number in range(1, 7))
SEGMENTS = ("negative", "neutral", "positive", "other")
ROLES = ("ink", "muted", "line", "ground", "raised", *SERIES, *SEGMENTS, *(f"on-{name}" for name in SEGMENTS))
# colours that nobody draws in by chance; their classes are in page.css
COLOUR = {role: f"#0a{number:02x}fe" for number, role in enumerate(ROLES)}
_ROLE = {colour: role for role, colour in COLOUR.items()}
# told apart without colour too
MARKERS = ("o", "s", "D", "^", "v", "P")
WIDTH = 10.0
_MARK = "mark:"
_REFERENCE = re.compile(r"#([\w.-]+)")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}(?!\d*e)")

_RC: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "lm-eval-bias",
    "text.parse_math": False,  # a model's name is text, with or without dollar signs
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "hatch.linewidth": 0.6,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.grid.axis": "x",
    "axes.axisbelow": True,
    "grid.linewidth": 0.6,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), COLOUR["ink"]),
    **dict.fromkeys(("axes.titlecolor", "legend.labelcolor", "patch.edgecolor"), COLOUR["ink"]),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), COLOUR["muted"]),
    "grid.color": COLOUR["line"],
    "legend.frameon": False,
}


def series(number: int) -> tuple[str, int]:
    """The colour and the mark of a series, different for 36 of them.

    >>> series(0), series(5), series(6), series(7)
    (('series-1', 0), ('series-6', 5), ('series-1', 1), ('series-2', 2))
    """
    return SERIES[number % len(SERIES)], (number + number // len(SERIES)) % len(MARKERS)


@contextmanager
def drawing() -> Iterator[None]:
    """The style of all figures; everything of a figure must be made inside."""
    import matplotlib

    with matplotlib.rc_context(_RC), warnings.catch_warnings():
        # text is drawn by the reader's browser, so that it doesn't matter what glyphs are installed here
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        yield


def canvas(height: float) -> Drawing:
    """An empty figure of so many inches, without pyplot's global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawing
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Drawing(figsize=(WIDTH, height), layout=ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.06))
    FigureCanvasAgg(figure)
    return figure


def say(artist: Artist, text: str) -> None:
    """Let a mark say its values to those who point at it or reach it by keyboard."""
    artist.set_gid(f"{_MARK}{text}")


def short(text: str, length: int = 42) -> str:
    """A label that fits: long ones lose their middle, of a run and its task the run's.

    >>> short("a" * 30 + "b" * 30, 11), short("an-organisation/a-model: a_task", 20)
    ('aaaaa…bbbbb', 'an-or…model: a_task')
    """
    if len(text) <= length:
        return text
    first, colon, last = text.rpartition(": ")
    if colon and len(last) < length * 2 / 3:
        return f"{short(first, length - len(last) - 2)}: {last}"
    return shortened(text, length - 1 + length % 2)  # as much of both ends


def inline(plot: Drawing, ident: str, title: str, description: str, caption: str) -> Figure:
    """A drawn figure (inside :func:`drawing`) for the page.

    Args:
        plot: matplotlib's figure.
        ident: Prefix of all ids in it, unique in the page.
        title: Its name, also for those who don't see it.
        description: What it shows in words, with its numbers where they are few.
        caption: What stands below it.
    """
    out = io.BytesIO()
    plot.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ET.fromstring(out.getvalue())  # noqa: S314 (matplotlib has just written it)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    _clean(root, ident)
    _trim(root)
    size = root.get("viewBox", "").split()
    root.attrib.clear()
    label_ids = {"aria-labelledby": f"{ident}-title", "aria-describedby": f"{ident}-desc"}
    root.attrib.update({"class": "figure", "viewBox": " ".join(size), "role": "group", **label_ids})
    for tag, text in (("desc", description), ("title", title)):
        element = ET.Element(tag, {"id": f"{ident}-{tag}"})
        element.text = text
        root.insert(0, element)
    return Figure(title, caption, Markup(ET.tostring(root, encoding="unicode")))  # noqa: S704


def _clean(root: ET.Element, ident: str) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        for name in list(element.attrib):
            value = element.attrib.pop(name)
            local = name.rpartition("}")[2]
            if local == "style":
                for property_name, setting in _declarations(value):
                    _paint(element, property_name, setting, ident)
            elif local == "id" and value.startswith(_MARK):
                element.attrib.update({"class": "mark", "role": "img"})
                title = ET.Element("title")
                title.text = value.removeprefix(_MARK)
                element.insert(0, title)
            elif local == "id":
                element.set("id", f"{ident}-{value}")
            elif local == "href":
                element.set("href", f"#{ident}-{value.lstrip('#')}")
            else:
                _paint(element, local, value, ident)


def _trim(root: ET.Element) -> None:
    """Take out what only costs room: names that nothing refers to, and more digits than a screen has."""
    used = {name for element in root.iter() for value in element.attrib.values() for name in _REFERENCE.findall(value)}
    for element in root.iter():
        if element.get("id", "") not in used:
            element.attrib.pop("id", None)
        for name in ("d", "x", "y", "transform"):
            if value := element.get(name):
                rounded = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), value)
                element.set(name, " ".join(rounded.split()))
        for space in ("text", "tail"):
            if not (getattr(element, space) or "x").strip():
                setattr(element, space, None)


def _declarations(style: str) -> Iterator[tuple[str, str]]:
    for declaration in style.split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            yield name.strip(), value.strip()


def _paint(element: ET.Element, name: str, value: str, ident: str) -> None:
    """One property as an attribute; a role's colour as a class."""
    if name == "font":
        # the family is the page's
        if size := re.search(r"([\d.]+)px", value):
            element.set("font-size", size[1])
        if "bold" in value:
            element.set("font-weight", "bold")
        return
    if name in ("font-family", "mix-blend-mode"):
        return
    if name in ("fill", "stroke") and value in _ROLE:
        prefix = "f" if name == "fill" else "s"
        element.set("class", f"{element.get('class', '')} {prefix}-{_ROLE[value]}".strip())
        return
    element.set(name, re.sub(r"url\(#", f"url(#{ident}-", value))


def shortened(name: str, limit: int = 32) -> str:
    """A name of at most ``limit`` characters: a long one loses its middle.

    >>> shortened("organisation/a-model-of-7B-instruct", 19), shortened("gpt2")
    ('organisat…-instruct', 'gpt2')
    """
    if len(name) <= limit:
        return name
    tail = (limit - 1) // 2
    return f"{name[: limit - 1 - tail]}…{name[len(name) - tail :]}"


def shortened_apart(names: Iterable[str], limit: int = 32) -> dict[str, str]:
    """Short forms by name, all different: names that would look alike keep more of their middle.

    >>> list(shortened_apart(["an-organisation/base-7B-chat", "an-organisation/base-9B-chat"], 12).values())
    ['an-organ…7B-chat', 'an-organ…9B-chat']
    """
    limits = dict.fromkeys(names, limit)
    while True:
        forms = {name: shortened(name, own) for name, own in limits.items()}
        counts = Counter(forms.values())
        alike = [name for name, form in forms.items() if counts[form] > 1]
        if not alike:
            return forms
        limits |= {name: limits[name] + 4 for name in alike}
