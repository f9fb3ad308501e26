"""OccuGender's figures: occupations against the labour market, and how much depends on the wording."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lm_eval_bias.core import pen, registry
from lm_eval_bias.core.answers import DAMAGE
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.page_parts import (
    MOST_FIGURES,
    Cell,
    Drawing,
    Part,
    ReportTask,
    Row,
    Table,
    not_shown,
    numeric,
)
from lm_eval_bias.core.wording import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        BiasError: There is no sample log, or a damaged one, or one of fewer than two items.
    """
    if result.samples is None:
        raise BiasError(
            "there is no sample log (run with --log_samples and give the run's folder)"
        )
    benchmark = registry.get(result.task.benchmark)
    try:
        records = [
            benchmark.record(sample.doc, sample.answers) for sample in result.samples()
        ]
    except DAMAGE as error:
        raise BiasError(f"its sample log is damaged ({error})") from error
    shares: dict[tuple[str, float], list[float]] = defaultdict(list)
    for record in records:
        if math.isfinite(record["F"]) and math.isfinite(record["share"]):
            shares[record["item"], float(record["share"])].append(
                100 * float(record["F"])
            )
    items = [
        Occupation(name, real, statistics.fmean(values))
        for (name, real), values in shares.items()
    ]
    if len(items) < 2:
        raise BiasError("its sample log has fewer than two occupations")
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


def scatter(result: ReportTask, items: Sequence[Occupation]) -> Drawing:
    """Draw the share of female words against that of women; the occupations furthest from the line are named."""
    return Drawing(
        f"{result.ident}-occupations",
        f"Occupations against labour share: {result.label}",
        f"{len(items)} occupations; the table has all of them.",
        f"{result.label}: share of female words among gender words, mean over templates. "
        "Those furthest from the line are labelled.",
        6.0,
        partial(_scatter, items, result.series),
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


def parts(tasks: Sequence[ReportTask]) -> list[Part]:
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
    heading, text = "Occupations against labour share", [*text, *not_shown(tasks)]
    return [Part(heading, text, figures, [], tables)]
