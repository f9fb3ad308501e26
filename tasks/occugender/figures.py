"""OccuGender's figures: its three measurements side by side, and occupations against the labour market."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lm_eval_bias.core import pen
from lm_eval_bias.core.answers import DAMAGE, HOW_TO_SAVE
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.page_parts import (
    MOST_FIGURES,
    Cell,
    Drawing,
    Part,
    ReportTask,
    ReportTasks,
    Row,
    Table,
    not_shown,
    numeric,
    plottable,
    to_beware_of,
)
from lm_eval_bias.core.wording import short, with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = {
    "explicit": "asked outright",
    "implicit": "in running text",
    "stories": "in stories",
}
LABELS = 6  # of the points furthest from the line; more cannot be read


class Occupation(NamedTuple):
    """One item's mean over templates.

    Attributes:
        name: The occupation.
        real: Women among the workers, percent.
        female: Mean share of female words, percent.
    """

    name: str
    real: float
    female: float


def occupations(result: ReportTask) -> list[Occupation]:
    """List a task's items with their means, by the share of women; prompts without a value are left out.

    Raises:
        BiasError: No answers are saved, or damaged ones, or those of fewer than two items.
    """
    if result.records is None:
        raise BiasError(f"there are no saved answers ({HOW_TO_SAVE})")
    pairs = []
    try:
        for saved in result.records():
            record = saved.record
            if math.isfinite(record["F"]) and math.isfinite(record["share"]):
                occupation = record["item"], float(record["share"])
                pairs.append((occupation, 100 * float(record["F"])))
    except DAMAGE as error:
        raise BiasError(f"its answers are damaged ({error})") from error
    items = [
        Occupation(name, real, statistics.fmean(values))
        for (name, real), values in grouped(pairs).items()
    ]
    if len(items) < 2:
        raise BiasError("its answers are of fewer than two occupations")
    return sorted(items, key=lambda item: (item.real, item.name))


def _scatter(items: Sequence[Occupation], series: int, figure: Figure) -> None:
    axis = figure.subplots()
    axis.set_xlim(0, 100)
    axis.set_ylim(-1, 101)
    axis.plot(
        [0, 100],
        [0, 100],
        color=pen.COLOUR["muted"],
        linewidth=1,
        linestyle=(0, (4, 2)),
    )
    for item in items:
        text = f"{item.name}: female words {item.female:.1f}%, women among the workers {item.real:.1f}%"
        pen.mark(axis, item.real, item.female, series, text, zorder=3)
    for item in sorted(items, key=lambda item: -abs(item.female - item.real))[:LABELS]:
        side, shift = ("left", 6) if item.real < 50 else ("right", -6)
        axis.annotate(
            short(item.name, 26),
            (item.real, item.female),
            (shift, 3),
            textcoords="offset points",
            ha=side,
            fontsize=8,
        )
    axis.tick_params(labelsize=8)
    axis.set_ylabel("female words, percent", fontsize=8)
    axis.set_xlabel(
        "women among the workers, percent (dashed: as the labour market)", fontsize=8
    )


def _table(result: ReportTask, items: Sequence[Occupation]) -> Table:
    heads = numeric(
        "Women among the workers, %",
        "Female words, %",
    )
    rows: list[Row] = [
        [
            item.name,
            Cell(f"{item.real:.1f}", item.real),
            Cell(f"{item.female:.1f}", item.female),
        ]
        for item in items
    ]
    return Table(f"Occupations of {result.label}", ["Occupation", *heads], rows)


def _draw_gaps(tasks: ReportTasks, names: Sequence[str], figure: Figure) -> None:
    axis = figure.subplots()
    axis.axvline(0, color=pen.COLOUR["muted"], linewidth=1)
    for row, (result, name) in enumerate(zip(tasks, names, strict=True)):
        gap = result.task.scores["stereotype_gap"]
        axis.plot(
            gap.interval or (),
            [row, row] if gap.interval else (),
            color=pen.COLOUR["ink"],
            linewidth=1,
        )
        pen.mark(
            axis,
            gap.value,
            row,
            result.series,
            f"{name}: {with_interval(gap)}",
            zorder=3,
        )
    axis.set_xlim(-1, 1)
    axis.set_ylim(len(tasks) - 0.5, -0.5)
    axis.set_yticks(range(len(tasks)), names, fontsize=8)
    axis.set_xlabel("stereotype gap (0: none)", fontsize=8)
    axis.tick_params(labelsize=8)


def _side_by_side(tasks: ReportTasks) -> list[Part]:
    """Set the stereotype gaps of the ways to ask on one scale, where there are several."""
    shown = [
        result
        for result in tasks
        if plottable(result.task.scores.get("stereotype_gap"))
    ]
    ways = {str(result.task.metadata.get("kind")) for result in shown} & WAYS.keys()
    if len(ways) < 2:
        return []
    names = [
        f"{WAYS.get(str(r.task.metadata.get('kind')), '')}: {r.label}" for r in shown
    ]
    text = (
        "These are different measurements, not repeats of one: what a model answers when it is asked, what it writes "
        "in a sentence, and whom it puts into a story need not agree (Lum et al. 2025)."
    )
    values = [
        f"{name} {with_interval(r.task.scores['stereotype_gap'])}"
        for name, r in zip(names, shown, strict=True)
    ]
    drawing = Drawing(
        f"{shown[0].ident}-ways",
        "Stereotype gaps by the way of asking",
        "; ".join(values),
        "Stereotype gaps with 95% intervals, from -1 to 1.",
        0.8 + 0.3 * len(shown),
        partial(_draw_gaps, shown, names),
        to_beware_of({result.label: result.task for result in shown}),
    )
    return [Part("Asked outright, in running text, in stories", [text], [drawing])]


def parts(tasks: ReportTasks) -> list[Part]:
    """Draw the gaps side by side, and from the sample logs occupations against the labour market."""
    text: list[str] = []
    figures: list[Drawing] = []
    tables: list[Table] = []
    for result in tasks[:MOST_FIGURES]:
        try:
            items = occupations(result)
        except BiasError as error:
            text.append(f"{result.label}: not shown, {error}.")
            continue
        drawing = Drawing(
            f"{result.ident}-occupations",
            f"Occupations against labour share: {result.label}",
            f"{len(items)} occupations; the table has all of them.",
            f"{result.label}: share of female words among gender words, mean over templates. "
            "Those furthest from the line are labelled.",
            6.0,
            partial(_scatter, items, result.series),
        )
        figures.append(drawing)
        tables.append(_table(result, items))
    heading = "Occupations against labour share"
    text = [*text, *not_shown(tasks)]
    return [*_side_by_side(tasks), Part(heading, text, figures, [], tables)]
