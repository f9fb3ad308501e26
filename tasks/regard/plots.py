"""Regard and sexism facets as figures, after Figs. 1 and 2 of Kraft et al. (2022)."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from lm_eval_bias.custom_metrics.regard import FACETS, GENDERS, PEOPLE, REGARDS, SETS, context_title
from lm_eval_bias.custom_metrics.score import Estimate
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import why, write_whole
from lm_eval_bias.runs.rescoring import Rescored
from lm_eval_bias.tasks.regard import sentences

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


class Style(TypedDict):
    """How a patch is filled."""

    facecolor: str
    hatch: str


# told apart by lightness (dark, light, middle, white) and hatch, so that they survive grey and colour-blind eyes
STYLE: dict[str, Style] = {
    "negative": {"facecolor": "#8c3b00", "hatch": ""},
    "neutral": {"facecolor": "#e8e8e8", "hatch": ".."},
    "positive": {"facecolor": "#6aaed6", "hatch": "//"},
    "other": {"facecolor": "#ffffff", "hatch": "xx"},
}
PEOPLE_STYLE: dict[str, Style] = {
    "female": {"facecolor": "#4b2e83", "hatch": ""},
    "male": {"facecolor": "#f0b429", "hatch": "//"},
}
SMALL = 0.05
DPI = 200


def _values(result: Rescored) -> dict[str, Estimate]:
    return {score.name: estimate for score, estimate in result.scores}


def _test(values: Mapping[str, Estimate], name: str) -> str:
    chi2 = values[f"{name}/chi2"]
    if math.isnan(chi2.value):
        return "no test"
    return f"χ² = {chi2.value:.2f}, {sentences.p_value(values[f'{name}/p_holm'].value)} (Holm)\nN = {chi2.n:,}"


def _footer(figure: Figure, result: Rescored, text: str) -> None:
    classifier = result.provenance["classifier_used"]
    paragraphs = [f"{result.part.task}. {text} Regard by classifier {classifier['name']}."]
    paragraphs += [f"WARNING: {classifier['warning']}."] if classifier["warning"] else []
    figure.text(0.01, 0.005, "\n".join(textwrap.fill(p, 150) for p in paragraphs), fontsize=7, va="bottom")


def _figure(rows: int, height: float) -> tuple[Figure, NDArray[np.object_]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(9, height), layout=ConstrainedLayoutEngine(rect=(0, 0.07, 1, 0.93)))
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, 3, sharey=True, squeeze=False)


def regard_bars(result: Rescored) -> Figure:
    """Stacked bars: regard of texts about women and men, per context set, each segment with its percentage."""
    from matplotlib.patches import Patch

    values = _values(result)
    figure, axes = _figure(1, 4.2)
    regards = sentences.shown_regards(values)
    for axis, name in zip(axes[0], SETS, strict=True):
        for place, gender in enumerate(GENDERS):
            bottom = 0.0
            for regard in regards:
                share = values[f"{name}/{gender}/{regard}"].value
                if math.isnan(share):
                    axis.text(place, 50, "no texts", ha="center", va="center", rotation=90)
                    break
                style = STYLE[regard]
                axis.bar(place, 100 * share, bottom=bottom, width=0.7, edgecolor="black", linewidth=0.8, **style)
                if share >= SMALL:
                    box = {"facecolor": style["facecolor"], "edgecolor": "none", "pad": 1.0}
                    axis.text(place, bottom + 50 * share, f"{100 * share:.0f}", ha="center", va="center", fontsize=9,
                              color="white" if regard == "negative" else "black", bbox=box)  # fmt: skip
                bottom += 100 * share
        names = [f"{PEOPLE[gender]}\n({values[f'{name}/{gender}/{REGARDS[0]}'].n:,})" for gender in GENDERS]
        axis.set_xticks(range(2), names)
        axis.set_xlim(-0.6, 1.6)
        axis.set_ylim(0, 100)
        axis.set_title(f"{context_title(name).capitalize()}\n{_test(values, name)}", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("percent of texts")
    handles = [Patch(edgecolor="black", **STYLE[name]) for name in regards]
    figure.legend(handles[::-1], regards[::-1], loc="outside right upper", frameon=False, title="regard")
    _footer(figure, result, "Regard alone misleads: read it with the sexism keywords.")
    return figure


def facet_bars(result: Rescored) -> Figure:
    """Bars with 95% intervals: share of texts with a facet's keywords, per context set and per regard."""
    from matplotlib.patches import Patch

    values = _values(result)
    about = sentences.scope(values)
    figure, axes = _figure(2, 6.4)
    top = 0.0
    panels = [[("" if name == "all" else f"/{name}", context_title(name).capitalize()) for name in SETS]]
    panels.append([(f"/{regard}", f"{regard.title()} texts") for regard in REGARDS])
    for row, cells in zip(axes, panels, strict=True):
        for axis, (suffix, title) in zip(row, cells, strict=True):
            for shift, gender in ((-0.2, "female"), (0.2, "male")):
                for place, facet in enumerate(FACETS):
                    estimate, x = values[f"{facet}/{gender}{suffix}"], place + shift
                    if math.isnan(estimate.value):
                        axis.text(x, 0.5, "no texts", ha="center", va="bottom", rotation=90, fontsize=7)
                        continue
                    share = 100 * estimate.value
                    low, high = (100 * end for end in sentences.ends_of(estimate, about) or (estimate.value,) * 2)
                    axis.bar(x, share, width=0.38, edgecolor="black", linewidth=0.6, **PEOPLE_STYLE[gender])
                    around = [[max(share - low, 0)], [max(high - share, 0)]]
                    axis.errorbar(x, share, yerr=around, color="black", capsize=2, linewidth=0.9)
                    top = max(top, high)
            axis.set_xticks(range(len(FACETS)), FACETS, fontsize=8)
            axis.set_title(title, fontsize=9)
            axis.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel("percent of texts\nwith a keyword")
    axes[0][0].set_ylim(0, max(5.0, 1.08 * top))
    handles = [Patch(edgecolor="black", linewidth=0.6, **style) for style in PEOPLE_STYLE.values()]
    names = [PEOPLE[gender] for gender in PEOPLE_STYLE]
    figure.legend(handles, names, loc="outside right upper", frameon=False, title="texts about")
    _footer(figure, result, f"Raw keyword matches (Kraft et al. 2022, Tab. 4) with 95% intervals for {about}.")
    return figure


def _save(figure: Figure, path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "lm-eval-bias", "svg.fonttype": "none"}):
        buffer, kind = io.BytesIO(), path.suffix[1:]
        figure.savefig(buffer, format=kind, dpi=DPI, metadata={"Date": None} if kind == "svg" else None)
    write_whole(path, buffer.getvalue())


def write(results: Sequence[Rescored], folder: Path) -> list[Path]:
    """Both figures of every regard result, as PNG and SVG.

    Args:
        results: Rescored results; other benchmarks' are passed over.
        folder: Where to put ``<task>_regard.*`` and ``<task>_facets.*``; made if it isn't there.

    Raises:
        BiasError: Nothing to plot, or the folder cannot be written.
    """
    regard_results = [result for result in results if result.part.benchmark == "regard"]
    if not regard_results:
        raise BiasError("nothing to plot: figures are for regard_de, regard_en and labelled texts")
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, result in enumerate(regard_results, start=1):
            name = result.part.task + (f"_{number}" if len(regard_results) > 1 else "")
            for content, draw in (("regard", regard_bars), ("facets", facet_bars)):
                figure = draw(result)
                for suffix in ("png", "svg"):
                    paths.append(folder / f"{name}_{content}.{suffix}")
                    _save(figure, paths[-1])
    except OSError as error:
        raise BiasError(f"{folder} cannot be written: {why(error)}") from error
    return paths
