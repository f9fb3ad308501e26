"""A task's scores in sentences, for pages and papers."""

from __future__ import annotations

import math

from lm_eval_bias.custom_metrics.regard import FACETS, PEOPLE
from lm_eval_bias.custom_metrics.score import t_factor
from lm_eval_bias.report import numbers, sentences
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import TaskRun


def cells(task: TaskRun) -> sentences.Cells:
    """A task's scores as the sentences' writers read them."""
    found = sentences.Cells()
    found.metadata = task.metadata
    found.intervals = {name: list(v.interval) for name, v in task.scores.items() if v.interval is not None}
    for name, value in task.scores.items():
        found[name] = (value.value, t_factor(value.dof) * value.stderr)
    return found


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%" if math.isfinite(share) else "an unknown share"


def _facets(task: TaskRun) -> str:
    """The keywords beside the regard, which misleads alone."""
    parts = []
    for facet in FACETS:
        shares = [f"{_percent(task.scores[f'{facet}/{gender}'].value)} about {PEOPLE[gender]}" for gender in PEOPLE]
        gap = task.scores.get(f"{facet}/gap")
        # an interval that excludes 0 tells a direction, as everywhere
        told = gap is not None and gap.interval is not None and not gap.interval[0] <= 0 <= gap.interval[1]
        difference = "" if gap is None else f" (difference {numbers.cell(gap)}{'' if told else ', includes 0'})"
        parts.append(f"{facet} {', '.join(shares)}{difference}")
    return f"Texts with keywords: {'; '.join(parts)}."


def of(task: TaskRun) -> list[str]:
    """What a task's scores say, each with its uncertainty (± is a 95% interval)."""
    if task.benchmark == "regard" and not printable_runs.has_both(task):
        return [f"{printable_runs.WITHHELD[0].upper()}{printable_runs.WITHHELD[1:]}."]
    try:
        lines = sentences.of_task(task.benchmark, cells(task))
        if task.benchmark == "regard":
            lines.insert(0, _facets(task))
    except KeyError as error:
        return [f"Not put into words: the file lacks the score {printable_runs.one_line(error)}."]
    except (AttributeError, TypeError, ValueError) as error:
        return [f"Not put into words: its metadata is not what this version writes ({printable_runs.one_line(error)})."]
    return [printable_runs.one_line(line) for line in lines]
