"""matplotlib figures as inline SVG that takes its colours from the page and meets its Content-Security-Policy.

Figures are drawn in marker colours that stand for roles (ink, grid, first series, ...). Converting replaces them by
the page's own colours, for light and dark alike; ``style`` attributes, which the policy forbids, become presentation
attributes. The same figure always gives the same text.
"""

from __future__ import annotations

import io
import re
import warnings

from markupsafe import Markup

from lm_eval_bias.core.errors import fault, kind_of
from lm_eval_bias.core.page_parts import Drawing
from lm_eval_bias.core.pen import COLOUR, MARK

_WIDTH = 10.0  # inches
_RC = {
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
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"),
        COLOUR["ink"],
    ),
    **dict.fromkeys(
        ("axes.titlecolor", "legend.labelcolor", "patch.edgecolor"), COLOUR["ink"]
    ),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), COLOUR["muted"]),
    "grid.color": COLOUR["line"],
    "legend.frameon": False,
}


def inline(drawing: Drawing, benchmark: str) -> Markup:
    """Draw a figure for the page. If the plugin's code raises, record a fault and return no markup."""
    try:
        return _converted(drawing, _drawn(drawing))
    except Exception as error:
        fault(
            f"the benchmark {benchmark}: the figure {drawing.title!r} failed ({kind_of(error)})"
        )
        return Markup("")


def _drawn(drawing: Drawing) -> str:
    """Draw with matplotlib and return its SVG."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    out = io.StringIO()
    # by the salt, no two figures of a page share an id
    with (
        matplotlib.rc_context({**_RC, "svg.hashsalt": drawing.ident}),
        warnings.catch_warnings(),
    ):
        # text is drawn by the reader's browser, so that it doesn't matter what glyphs are installed here
        warnings.filterwarnings(
            "ignore", message=r"Glyph .* missing from", category=UserWarning
        )
        figure = Figure(
            figsize=(_WIDTH, drawing.height),
            layout=ConstrainedLayoutEngine(h_pad=0.06, w_pad=0.06),
        )
        FigureCanvasAgg(figure)
        drawing.draw(figure)
        figure.savefig(
            out,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
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
