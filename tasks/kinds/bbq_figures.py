"""Figures of the BBQ family: accuracy against bias, and how scores move with the prompt's wording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from lm_eval_bias.core import numbers, pen, registry
from lm_eval_bias.core.page_parts import Column, Drawing, Part, ReportTask, Table, plottable
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.core.wording import score_cell, score_label, short, value_cell
from lm_eval_bias.custom_metrics.question_answering import Terms, score_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEGEND = 12  # names that it has room for
CONTEXTS = {"amb": "ambiguous contexts", "disamb": "disambiguated contexts"}
# the largest |diff-bias| that an accuracy leaves: Eqs. 2 and 4 as corners of the region
CORNERS = {"amb": ([0, 1, 0], [1, 0, -1]), "disamb": ([0, 0.5, 1, 0.5, 0], [0, 1, 0, -1, 0])}


def _chance(result: ReportTask, context: str, terms: Terms) -> float:
    """Return the accuracy of guessing; generated answers choose among three options."""
    fixed = result.task.metadata.get("fixed")
    generated = isinstance(fixed, Mapping) and fixed.get("answers") == "generated"
    return 1 / 3 if generated or terms.main_rule else float(Fraction(terms.chance[context == "disamb"]))


class PlanePoint(NamedTuple):
    """A task in the plane: its number, accuracy and bias, and what it says."""

    number: int
    label: str
    accuracy: Value
    bias: Value
    text: str


def _points(tasks: Sequence[ReportTask], context: str, suffix: str, terms: Terms) -> list[PlanePoint]:
    points = []
    for number, result in enumerate(tasks):
        accuracy, bias = (result.task.scores.get(terms.main(kind, context) + suffix) for kind in ("acc", "diff_bias"))
        if accuracy is None or bias is None or not (plottable(accuracy) and plottable(bias)):
            continue
        text = f"{result.label}, {CONTEXTS[context]}: accuracy {numbers.cell(accuracy)}, diff-bias {numbers.cell(bias)}"
        points.append(PlanePoint(number, result.label, accuracy, bias, text))
    return points


def _plane(axis: Axes, context: str, points: Sequence[PlanePoint], chances: Sequence[float]) -> None:
    axis.fill(*CORNERS[context], facecolor=pen.COLOUR["raised"], edgecolor=pen.COLOUR["muted"], linewidth=1)
    axis.axhline(0, color=pen.COLOUR["ink"], linewidth=1.2, linestyle=(0, (4, 2)))
    for chance in chances:
        axis.axvline(chance, color=pen.COLOUR["line"], linewidth=1.2)
        axis.text(chance, -1.03, "chance", ha="center", va="top", fontsize=8, color=pen.COLOUR["muted"])
    axis.set_xlim(-0.03, 1.03)
    axis.set_ylim(-1.12, 1.03)
    axis.set_title(CONTEXTS[context])
    axis.set_xlabel("accuracy", fontsize=8)
    for point in points:
        accuracy, bias, colour = point.accuracy, point.bias, pen.COLOUR[pen.series(point.number)[0]]
        if accuracy.interval is not None:
            axis.plot(accuracy.interval, [bias.value] * 2, color=colour, linewidth=2, solid_capstyle="butt")
        if bias.interval is not None:
            axis.plot([accuracy.value] * 2, bias.interval, color=colour, linewidth=2, solid_capstyle="butt")
        pen.mark(axis, accuracy.value, bias.value, point.number, point.text, label=short(point.label))


def plane(tasks: Sequence[ReportTask], name: str, terms: Terms, suffix: str = "") -> Part:
    """Draw diff-bias against accuracy, with the bound that the accuracy leaves.

    Args:
        tasks: Of one benchmark, or of its variant of all wordings with the suffix of the mean over these.
        name: The benchmark's.
        terms: What is particular to the paper.
        suffix: Of the scores' names.
    """
    points = {context: _points(tasks, context, suffix, terms) for context in CONTEXTS}
    lines = [point.text for own in points.values() for point in own]

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 2, sharey=True)
        for axis, (context, own) in zip(axes, points.items(), strict=True):
            _plane(axis, context, own, sorted({_chance(result, context, terms) for result in tasks}))
        axes[0].set_ylabel("diff-bias: along (+) or against (−) stereotypes", fontsize=8)
        if 1 < len(tasks) <= LEGEND and lines:
            handles, names = axes[0].get_legend_handles_labels()
            figure.legend(handles, names, loc="outside lower center", ncols=2, fontsize=8)

    drawing = Drawing(
        f"{name}{'-prompts' if suffix else ''}-plane",
        f"Accuracy and bias of {registry.get(name).title}'s answers",
        f"{'; '.join(lines[:24]) or 'Nothing to show'}. The grey region is what the accuracy leaves room for.",
        "The grey region holds every diff-bias that an accuracy leaves room for (Eqs. 2 and 4; "
        "in disambiguated contexts strictly only where biased and counter-biased contexts are equally many). Lines "
        "are 95% intervals. An unbiased model that understands the question is at accuracy 1 and "
        "diff-bias 0.",
        4.3,
        draw,
    )
    return Part(f"Accuracy and bias{', mean over wordings' if suffix else ''}", [], [drawing])


def _sentence(result: ReportTask, stem: str, name: str) -> str | None:
    mean, width = (result.task.scores.get(f"{stem}/{kind}") for kind in ("mean", "range"))
    whole = mean.interval[1] - mean.interval[0] if mean is not None and mean.interval is not None else 0.0
    if mean is None or width is None or not whole or not plottable(width):
        return None
    label = score_label(name, stem)
    verdict = "more than" if width.value > whole else "no more than"
    return (
        f"{result.label}, {label}: from wording to wording it moves by {numbers.number(width.value, width.unit)}, "
        f"{verdict} the {numbers.number(whole, mean.unit)} that the 95% interval of its mean is wide."
    )


def wordings(tasks: Sequence[ReportTask], name: str) -> Part:
    """Lay out how scores spread over wordings, next to the sampling error of their mean.

    Args:
        tasks: Of a variant of all wordings.
        name: The benchmark's.
    """
    names = [score_name(kind, context) for kind in ("acc", "diff_bias") for context in CONTEXTS]
    title = "Prompt spread and sampling error"
    heads = ("Mean over wordings [95% interval]", "SD over wordings", "Largest minus smallest")
    columns = [Column("Score"), *(Column(head, True) for head in heads)]
    lines = []
    for result in tasks:
        for stem in names:
            values = [result.task.scores.get(f"{stem}/{kind}") for kind in ("mean", "sd", "range")]
            if None not in values:
                lines.append([score_cell(name, stem, result.label), *map(value_cell, values)])
    if not lines:
        return Part(title, ["The files hold no scores per wording."])
    table = Table("Prompt spread next to sampling error", columns, lines)
    text = [sentence for result in tasks for stem in names if (sentence := _sentence(result, stem, name)) is not None]
    return Part(title, text, [], [table])


def parts(tasks: Sequence[ReportTask], *, name: str, terms: Terms) -> list[Part]:
    """Draw all breakdowns of a benchmark of the family.

    Args:
        tasks: Its tasks, and those of its variant of all wordings, ``<name>_prompts``.
        name: The benchmark's.
        terms: What is particular to the paper.
    """
    plain, prompts = ([r for r in tasks if r.task.benchmark == own] for own in (name, f"{name}_prompts"))
    planes = [plane(plain, name, terms)] if plain else []
    return [*planes, plane(prompts, name, terms, "/mean"), wordings(prompts, name)] if prompts else planes
