"""OccuGender's figures: occupations against the labour market, and how much depends on the wording."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lm_eval_bias.core import numbers, pen, registry
from lm_eval_bias.core.answers import DAMAGE
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.page_parts import MOST_FIGURES as MOST_FIGURES
from lm_eval_bias.core.page_parts import Cell, Column, Drawing, Part, ReportTask, Table
from lm_eval_bias.core.wording import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS = 48  # more cannot be read
GAP = 3.1  # between two labels, in percent of the axis


class Occupation(NamedTuple):
    """One item's mean over templates.

    Attributes:
        name: The occupation.
        real: Women among the workers, percent.
        female: Mean share of female words, percent.
        spread: Standard deviation of that share over templates, percentage points; ``nan`` for one template.
    """

    name: str
    real: float
    female: float
    spread: float


def occupations(result: ReportTask) -> list[Occupation]:
    """List a task's items with their means, by the share of women; prompts without a value are left out.

    Raises:
        BiasError: There is no sample log, or a damaged one, or one of fewer than two items.
    """
    if result.samples is None:
        raise BiasError("there is no sample log (run with --log_samples and give the run's folder)")
    benchmark = registry.get(result.task.benchmark)
    try:
        records = [benchmark.record(sample.doc, sample.answers) for sample in result.samples()]
    except DAMAGE as error:
        raise BiasError(f"its sample log is damaged ({error})") from error
    shares: dict[tuple[str, float], list[float]] = defaultdict(list)
    for record in records:
        if math.isfinite(record["F"]) and math.isfinite(record["share"]):
            shares[record["item"], float(record["share"])].append(100 * float(record["F"]))
    items = [
        Occupation(name, real, statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else math.nan)
        for (name, real), values in shares.items()
    ]
    if len(items) < 2:
        raise BiasError("its sample log has fewer than two occupations")
    return sorted(items, key=lambda item: (item.real, item.name))


def _spread_out(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Find the places nearest to the positions (ascending; least squares) that are ``gap`` apart and within bounds.

    >>> _spread_out([4.0, 4.0, 9.0], 2.0, 0.0, 10.0)
    [3.0, 5.0, 9.0]
    """
    from scipy.optimize import isotonic_regression

    last = len(positions) - 1
    gap = min(gap, (high - low) / max(last, 1))
    # ascending in steps of at least the gap is the same as ascending once the gaps are taken out
    shifted = isotonic_regression([place - number * gap for number, place in enumerate(positions)]).x
    return [min(max(float(place), low), high - last * gap) + number * gap for number, place in enumerate(shifted)]


def _label(axis: Axes, items: Sequence[Occupation], left: bool) -> None:
    """Write names in a column beside the axis, each joined to its point."""
    ordered = sorted(items, key=lambda item: (item.female, item.name))
    places = _spread_out([item.female for item in ordered], GAP, 0.0, 100.0)
    edge = -4.0 if left else 104.0
    for item, place in zip(ordered, places, strict=True):
        axis.plot(
            [item.real, edge], [item.female, place], color=pen.COLOUR["line"], linewidth=0.6, clip_on=False, zorder=1
        )
        axis.text(edge + (-0.8 if left else 0.8), place, short(item.name, 26), ha="right" if left else "left",
                  va="center", fontsize=8)  # fmt: skip


def _scatter(items: Sequence[Occupation], series: int, figure: Figure) -> None:
    furthest = sorted(items, key=lambda item: -abs(item.female - item.real))[:LABELS]
    with_label = [item for item in items if item in furthest]
    half = len(with_label) // 2
    axis = figure.subplots()
    axis.set_xlim(0, 100)
    axis.set_ylim(-1, 101)
    axis.plot([0, 100], [0, 100], color=pen.COLOUR["muted"], linewidth=1, linestyle=(0, (4, 2)))
    _label(axis, with_label[:half], left=True)
    _label(axis, with_label[half:], left=False)
    for item in items:
        text = f"{item.name}: female words {item.female:.1f}%, women among the workers {item.real:.1f}%"
        pen.mark(axis, item.real, item.female, series, text, zorder=3)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    inner = axis.secondary_yaxis(0.5)
    inner.set_ylim(-1, 101)
    inner.tick_params(labelsize=8)
    axis.text(50, 102.5, "female words, percent", ha="center", fontsize=8)
    axis.set_xlabel("women among the workers, percent (dashed: as the labour market)", fontsize=8)
    axis.margins(0)


def scatter(result: ReportTask, items: Sequence[Occupation]) -> Drawing:
    """Draw the share of female words against that of women, every occupation named."""
    ends = sorted(items, key=lambda item: item.female)
    text = (
        f"{len(items)} occupations. Least female words: {ends[0].name} {ends[0].female:.0f}% (women among the "
        f"workers {ends[0].real:.0f}%); most: {ends[-1].name} {ends[-1].female:.0f}% ({ends[-1].real:.0f}%). "
        "The table has all of them."
    )
    left_out = "" if len(items) <= LABELS else f" Labelled are the {LABELS} furthest from the line."
    return Drawing(
        f"{result.ident}-occupations",
        f"Occupations against labour share: {result.label}",
        text,
        f"{result.label}: share of female words among gender words, mean over templates.{left_out}",
        6.0,
        partial(_scatter, items, result.series),
    )


def _table(result: ReportTask, items: Sequence[Occupation]) -> Table:
    heads = ("Women among the workers, %", "Female words, %", "SD over templates, points")
    columns = [Column("Occupation"), *(Column(head, True) for head in heads)]
    rows = [
        [
            Cell(item.name),
            Cell(f"{item.real:.1f}", item.real),
            Cell(f"{item.female:.1f}", item.female),
            Cell(numbers.number(item.spread, "percent"), item.spread),
        ]
        for item in items
    ]
    return Table(f"Occupations of {result.label}", columns, rows)


def against_labour(tasks: Sequence[ReportTask]) -> Part:
    """Draw occupations against the labour market, from the sample logs; say what can't be shown."""
    text: list[str] = []
    figures: list[Drawing] = []
    tables: list[Table] = []
    for result in tasks[:MOST_FIGURES]:
        try:
            items = occupations(result)
        except BiasError as error:
            text.append(f"{result.label}: not shown, {error}.")
            continue
        figures.append(scatter(result, items))
        tables.append(_table(result, items))
    if left_out := ", ".join(result.label for result in tasks[MOST_FIGURES:]):
        text.append(f"Not shown, because this page already has {MOST_FIGURES} such figures: {left_out}.")
    return Part("Occupations against labour share", text, figures, [], tables)
