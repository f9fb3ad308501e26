"""Regard in a page: bars of regard with the sexism facets beside them, never one without the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lm_eval_bias.custom_metrics.regard import FACETS, GENDERS, PEOPLE, SETS
from lm_eval_bias.report import dots, numbers, svg
from lm_eval_bias.report.parts import Part, ReportTask, value_cell
from lm_eval_bias.report.tables import Cell, Column, Table
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import Value
from lm_eval_bias.tasks.regard import sentences
from lm_eval_bias.tasks.regard.plots import SMALL, STYLE, shown_regards

ROWS = [(name, gender) for name in SETS for gender in GENDERS]


def _row(name: str, gender: str) -> str:
    return f"{'all contexts' if name == 'all' else name}: {PEOPLE[gender]}"


def _share(own: ReportTask, what: str, name: str, gender: str) -> Value | None:
    """The share of texts with a regard, or with a facet's keywords."""
    facet = f"{what}/{gender}" + ("" if name == "all" else f"/{name}")
    return own.task.scores.get(facet if what in FACETS else f"{name}/{gender}/{what}")


def _bars(axis: Any, own: ReportTask) -> None:
    for place, (name, gender) in enumerate(ROWS):
        left = 0.0
        for regard in shown_regards(own.task.scores):
            value = _share(own, regard, name, gender)
            if value is None or not 0 <= value.value <= 1:  # whatever range a file claims
                axis.text(50, place, "no texts", ha="center", va="center", fontsize=8)
                break
            share = 100 * value.value
            axis.barh(place, share, left=left, height=0.74, facecolor=svg.COLOUR[regard], hatch=STYLE[regard]["hatch"],
                      edgecolor=svg.COLOUR["ink"], linewidth=0.7)  # fmt: skip
            if value.value >= SMALL:
                box = {"facecolor": svg.COLOUR[regard], "edgecolor": "none", "pad": 1.0}
                axis.text(left + share / 2, place, f"{share:.0f}", ha="center", va="center", fontsize=8.5, clip_on=True,
                          color=svg.COLOUR[f"on-{regard}"], bbox=box)  # fmt: skip
            left += share
    axis.set_xlim(0, 100)
    axis.set_xlabel("percent of texts", fontsize=8)
    axis.set_yticks(range(len(ROWS)), [_row(*row) for row in ROWS])
    axis.set_ylim(len(ROWS) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)


def _dots(axis: Any, own: ReportTask, facet: str) -> None:
    axis.set_title(facet)
    axis.grid(True, axis="x")
    axis.set_xlabel("percent of texts\nwith a keyword", fontsize=8)
    axis.tick_params(axis="y", length=0)
    for place, (name, gender) in enumerate(ROWS):
        value = _share(own, facet, name, gender)
        if value is None or not 0 <= value.value <= 1:
            continue
        series = GENDERS.index(gender)
        colour = svg.COLOUR[svg.SERIES[series]]
        if value.interval is not None:
            ends = [100 * min(max(end, 0.0), 1.0) for end in value.interval]
            axis.plot(ends, [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        dots.mark(axis, 100 * value.value, place, series)


def bars(own: ReportTask) -> svg.Figure:
    """Regard of texts about women and men, and beside it how often they have a facet's keywords."""
    from matplotlib.patches import Patch

    regards = shown_regards(own.task.scores)
    used = own.task.metadata.get("classifier_used")
    by = printable_runs.one_line(used.get("name", "?")) if isinstance(used, dict) else "?"
    with svg.drawing():
        figure = svg.canvas(3.6)
        axes = figure.subplots(1, 1 + len(FACETS), sharey=True, width_ratios=[2.2, 1, 1, 1])
        _bars(axes[0], own)
        axes[0].set_title("regard")
        for axis, facet in zip(axes[1:], FACETS, strict=True):
            _dots(axis, own, facet)
        right = max(5.0, *(axis.get_xlim()[1] for axis in axes[1:]))
        for axis in axes[1:]:
            axis.set_xlim(-0.02 * right, right)
        handles = [
            Patch(facecolor=svg.COLOUR[name], hatch=STYLE[name]["hatch"], edgecolor=svg.COLOUR["ink"], linewidth=0.7)
            for name in regards
        ]
        figure.legend(handles, regards, loc="outside lower left", ncols=4, fontsize=8.5)
        shares = "; ".join(
            f"{_row(name, gender)}: "
            + ", ".join(f"{regard} {_percent(_share(own, regard, name, gender))}" for regard in regards)
            + ", keywords "
            + ", ".join(f"{facet} {_percent(_share(own, facet, name, gender))}" for facet in FACETS)
            for name, gender in ROWS
        )
        return svg.inline(
            figure,
            f"{own.ident}-regard",
            f"Regard and sexism facets: {own.label}",
            f"Percent of texts. {shares}.",
            f"{own.label}, regard by classifier {by}; lines are 95% intervals, keywords are raw matches. Regard alone "
            "misleads: read the bars with the keywords beside them.",
        )


def _percent(value: Value | None) -> str:
    if value is None or math.isnan(value.value):
        return numbers.NONE
    share = f"{100 * value.value:.1f}"
    return (
        share if value.interval is None else f"{share} [{100 * value.interval[0]:.1f}, {100 * value.interval[1]:.1f}]"
    )


def _table(own: ReportTask) -> Table:
    shares = [*shown_regards(own.task.scores), *FACETS]
    rows = []
    for name, gender in ROWS:
        rows.append([Cell(_row(name, gender))])
        for what in shares:
            value = _share(own, what, name, gender)
            text, _, interval = _percent(value).partition(" ")
            rows[-1].append(Cell(text, None if value is None else value.value, interval))
    columns = [Column("Texts"), *(Column(what, True) for what in shares)]
    return Table(f"Regard and facets of {own.label}, percent of texts with 95% intervals in brackets", columns, rows)


TESTS = ("chi2", "p", "p_permutation", "p_holm", "cramers_v", "negative_gap", "positive_gap")


def _tests(own: ReportTask) -> Table:
    columns = [Column("Contexts"), *(Column(name, True) for name in TESTS)]
    rows = [[Cell(name), *(value_cell(own.task.scores.get(f"{name}/{test}")) for test in TESTS)] for name in SETS]
    return Table(
        f"Tests of {own.label}: does regard of women and men differ? Read with the facets above", columns, rows
    )


def parts(tasks: Sequence[ReportTask]) -> list[Part]:
    """Regard with the facets beside it, one part a task; where the facets are missing, neither is shown."""
    return [
        Part(f"Regard and facets: {own.label}", [], [bars(own)], [_table(own), _tests(own)])
        if sentences.has_both(own.task)
        else Part(f"Regard and facets: {own.label}", [f"Not shown: {sentences.WITHHELD}."])
        for own in tasks
    ]
