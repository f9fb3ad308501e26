"""matplotlib figures as inline SVG that takes its colours from the page and meets its Content-Security-Policy.

Figures are drawn in marker colours that stand for roles (ink, grid, first series, ...). Converting replaces them by
the page's own colours, for light and dark alike; ``style`` attributes, which the policy forbids, become presentation
attributes. The same figure always gives the same text.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

from lm_eval_bias.core.errors import fault, kind_of
from lm_eval_bias.core.page_parts import Drawing
from lm_eval_bias.core.pen import COLOUR, MARK

_PAINT = {colour: f"var(--{role})" for role, colour in COLOUR.items()}
_WIDTH = 10.0  # inches
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


def inline(drawing: Drawing, benchmark: str) -> Markup:
    """A drawing as the page shows it; one that fails, other people's code, is a fault and gives nothing."""
    try:
        return _converted(drawing, _drawn(drawing))
    except Exception as error:
        fault(f"the benchmark {benchmark}: the figure {drawing.title!r} failed ({kind_of(error)})")
        return Markup("")


def _drawn(drawing: Drawing) -> str:
    """The SVG that matplotlib writes."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    out = io.StringIO()
    # by the salt, no two figures of a page share an id
    with matplotlib.rc_context({**_RC, "svg.hashsalt": drawing.ident}), warnings.catch_warnings():
        # text is drawn by the reader's browser, so that it doesn't matter what glyphs are installed here
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        figure = Figure(figsize=(_WIDTH, drawing.height), layout=ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.06))
        FigureCanvasAgg(figure)
        drawing.draw(figure)
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return out.getvalue()


def _converted(drawing: Drawing, svg: str) -> Markup:
    """A drawing's SVG with the page's colours, text alternatives and marks that say their texts."""
    referenced = set(re.findall(r"#([\w.-]+)", svg))
    root = ET.fromstring(re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.S))  # noqa: S314 (matplotlib's own)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        given, element.attrib = dict(_attributes(element)), {}
        for name, value in given.items():
            if name == "id" and value.startswith(MARK):
                element.attrib.update({"class": "mark", "role": "img"})
                title = ET.Element("title")
                title.text = value.removeprefix(MARK)
                element.insert(0, title)
            elif name != "id" or value in referenced:
                element.set(name, _PAINT.get(value, value))
    label_ids = {"aria-labelledby": f"{drawing.ident}-title", "aria-describedby": f"{drawing.ident}-desc"}
    root.attrib = {"class": "figure", "viewBox": root.attrib["viewBox"], "role": "group", **label_ids}
    for tag, text in (("desc", drawing.description), ("title", drawing.title)):
        element = ET.Element(tag, {"id": f"{drawing.ident}-{tag}"})
        element.text = text
        root.insert(0, element)
    return Markup(re.sub(r">\s+<", "><", ET.tostring(root, encoding="unicode")))  # noqa: S704


def _attributes(element: ET.Element) -> Iterator[tuple[str, str]]:
    """An element's attributes and style properties, but for the font's name, which is the page's."""
    for name, value in element.attrib.items():
        local = name.rpartition("}")[2]
        parts = [part.partition(":") for part in value.split(";")] if local == "style" else [(local, ":", value)]
        for key, setting in ((part.strip(), text.strip()) for part, _, text in parts):
            if key == "font":
                yield "font-size", setting.partition("px")[0].rpartition(" ")[2]
                if "bold" in setting:
                    yield "font-weight", "bold"
            elif key not in ("", "font-family", "mix-blend-mode"):
                yield key, setting
