"""matplotlib figures as inline SVG that takes its colours from the page and meets its Content-Security-Policy.

Figures are drawn in marker colours that stand for roles (ink, grid, first series, ...). Converting replaces them by
classes that the page's style sheet colours, for light and dark alike; ``style`` attributes, which the policy forbids,
become presentation attributes. The same figure always gives the same text.
"""

from __future__ import annotations

import io
import re
import warnings
from typing import Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

from lm_eval_bias.core.page_parts import Drawing
from lm_eval_bias.core.pen import COLOUR, MARK

_ROLE = {colour: role for role, colour in COLOUR.items()}
_WIDTH = 10.0  # inches
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


def inline(drawing: Drawing) -> Markup:
    """A drawing as the page shows it."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    out = io.BytesIO()
    with matplotlib.rc_context(_RC), warnings.catch_warnings():
        # text is drawn by the reader's browser, so that it doesn't matter what glyphs are installed here
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        figure = Figure(figsize=(_WIDTH, drawing.height), layout=ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.06))
        FigureCanvasAgg(figure)
        drawing.draw(figure)
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ET.fromstring(out.getvalue())  # noqa: S314 (matplotlib has just written it)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    _clean(root, drawing.ident)
    _trim(root)
    size = root.get("viewBox", "").split()
    root.attrib.clear()
    label_ids = {"aria-labelledby": f"{drawing.ident}-title", "aria-describedby": f"{drawing.ident}-desc"}
    root.attrib.update({"class": "figure", "viewBox": " ".join(size), "role": "group", **label_ids})
    for tag, text in (("desc", drawing.description), ("title", drawing.title)):
        element = ET.Element(tag, {"id": f"{drawing.ident}-{tag}"})
        element.text = text
        root.insert(0, element)
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704


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
                for property_name, colon, setting in (part.partition(":") for part in value.split(";")):
                    if colon:
                        _paint(element, property_name.strip(), setting.strip(), ident)
            elif local == "id" and value.startswith(MARK):
                element.attrib.update({"class": "mark", "role": "img"})
                title = ET.Element("title")
                title.text = value.removeprefix(MARK)
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
