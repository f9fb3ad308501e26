"""matplotlib figures as files, and as inline SVG that takes its colours from the page and meets its policy.

Figures are drawn in marker colours that stand for roles (ink, grid, first series, ...). Converting replaces them by
the page's own colours, for light and dark alike; ``style`` attributes, which the policy forbids, become presentation
attributes. The same figure always gives the same text.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Mapping
from dataclasses import replace

from markupsafe import Markup

from lm_eval_bias.core.errors import fault, kind_of
from lm_eval_bias.core.files import packaged_text
from lm_eval_bias.core.page_parts import Drawing
from lm_eval_bias.core.pen import COLOUR, MARK, coloured

_WIDTH = 10.0  # inches, on a page of the report
_LINE = 15  # characters of a note, an inch at its size there
# inches, and how much smaller texts and marks are, across a paper's text and in one of its two columns
_PAPER = {False: (6.9, 0.8), True: (3.3, 0.65)}
_HIGHEST = 9.0  # inches of a paper's page
_ROOM = 2.2  # how often a text fits between two rows
_METADATA: Mapping[str, Mapping[str, None]] = {
    # nothing that changes from day to day
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
}
_ROLE = re.compile(r"--([\w-]+): (#\w{6})")


def _settings(drawing: Drawing) -> dict[str, object]:
    """Return matplotlib's settings; by the salt, no two figures of a page share an id."""
    ink = COLOUR["ink"]
    muted = COLOUR["muted"]
    return {
        "svg.fonttype": "none",
        "pdf.fonttype": 42,  # fonts whole, and no bitmaps, as publishers want them
        "svg.hashsalt": drawing.ident,
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
        "text.color": ink,
        "axes.labelcolor": ink,
        "xtick.labelcolor": ink,
        "ytick.labelcolor": ink,
        "axes.titlecolor": ink,
        "legend.labelcolor": ink,
        "patch.edgecolor": ink,
        "axes.edgecolor": muted,
        "xtick.color": muted,
        "ytick.color": muted,
        "grid.color": COLOUR["line"],
        "legend.frameon": False,
    }


def inline(drawing: Drawing, benchmark: str) -> Markup:
    """Draw a figure for the page. If the plugin's code raises, record a fault and return no markup."""
    try:
        alone = replace(drawing, note="")  # which stands below it on the page
        return _converted(drawing, _drawn(alone, "svg").decode())
    except Exception as error:
        fault(
            f"the benchmark {benchmark}: the figure {drawing.title!r} failed ({kind_of(error)})"
        )
        return Markup("")


def files(drawing: Drawing, column: bool = False) -> dict[str, bytes]:
    """Draw a figure for a paper, in the page's colours by day; return its bytes by format.

    It is as wide as the text, or as one of two columns, and at most as high as a page.
    """
    width, scale = _PAPER[column]
    height = drawing.height * scale
    scale *= min(1.0, _ROOM * _HIGHEST / height)
    size = width, min(height, _HIGHEST)
    css = packaged_text("lm_eval_bias.report", "page.css")
    colours = dict(_ROLE.findall(css[: css.index("}")]))
    with coloured({role: colours[role] for role in COLOUR}):
        return {style: _drawn(drawing, style, size, scale) for style in _METADATA}


def _drawn(
    drawing: Drawing,
    style: str,
    size: tuple[float, float] | None = None,
    scale: float = 1.0,
) -> bytes:
    """Draw with matplotlib, as ``svg`` or ``pdf``, of a size in inches, with texts and marks of another scale."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

    out = io.BytesIO()
    with matplotlib.rc_context(_settings(drawing)), warnings.catch_warnings():
        # text is drawn by the reader's program, so that it doesn't matter what glyphs are installed here
        warnings.filterwarnings(
            "ignore", message=r"Glyph .* missing from", category=UserWarning
        )
        figure = Figure(
            figsize=size or (_WIDTH, drawing.height),
            layout=ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.06),
        )
        FigureCanvasAgg(figure)
        drawing.draw(figure)
        if drawing.note:
            line = int(_LINE * figure.get_figwidth() / scale)
            note = "\n".join(textwrap.wrap(drawing.note, line))
            figure.supxlabel(note, x=0.01, ha="left", fontsize=7)
        for text in figure.findobj(Text):
            text.set_fontsize(scale * float(text.get_fontsize()))
        for mark in figure.findobj(Line2D):
            mark.set_markersize(scale * mark.get_markersize())
        figure.savefig(out, format=style, metadata=_METADATA[style])
    return out.getvalue()


def _converted(drawing: Drawing, svg: str) -> Markup:
    """Give matplotlib's SVG the page's colours, text alternatives and marks with titles."""
    view_box = re.findall('viewBox="([^"]*)"', svg)[0]
    referenced = "|".join(map(re.escape, sorted(set(re.findall(r"#([\w.-]+)", svg)))))
    content = svg[svg.index(">", svg.index("<svg")) + 1 :]
    content = re.sub(r"<(metadata|style)\b.*?</\1>|<!--.*?-->", "", content, flags=re.S)
    content = re.sub(r"font-family: [^;\"]*;?", "", content)
    content = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", content)
    content = re.sub(' style="([^"]*)"', _attributes, content)
    content = re.sub(
        f' id="{MARK}([^"]*)">', r' class="mark" role="img"><title>\1</title>', content
    )
    content = re.sub(f' id="(?!(?:{referenced})")[^"]*"', "", content).replace(
        "xlink:href", "href"
    )
    for role, colour in COLOUR.items():
        content = content.replace(colour, f"var(--{role})")
    root = Markup(
        '<svg class="figure" viewBox="{view_box}" role="group" aria-labelledby="{drawing.ident}-title" '
        'aria-describedby="{drawing.ident}-desc"><title id="{drawing.ident}-title">{drawing.title}</title>'
        '<desc id="{drawing.ident}-desc">{drawing.description}</desc>'
    )
    return root.format(view_box=view_box, drawing=drawing) + Markup(  # noqa: S704
        re.sub(r">\s+<", "><", content)
    )


def _attributes(style: re.Match[str]) -> str:
    """Turn a style, which the page's policy forbids, into attributes."""
    return re.sub(r" ?([\w-]+): ?([^;]*);?", r' \1="\2"', style[1])
