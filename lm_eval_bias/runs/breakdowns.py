"""Breakdowns: the main scores of saved answers by what their items differ in, such as job or target term."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from lm_eval_bias.core import catalog
from lm_eval_bias.core.answers import (
    NotConcerned,
    SavedRecord,
    SavedTask,
    damage_in,
)
from lm_eval_bias.core.benchmark import LANGUAGE, Benchmark, Split
from lm_eval_bias.core.errors import check_scores
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.custom_metrics.breakdowns import of_part, simultaneous_level, widened
from lm_eval_bias.custom_metrics.score import Bounds, Estimate, Record, Score
from lm_eval_bias.runs import run_discovery
from lm_eval_bias.runs.rescoring import AnswerReading

Facets = tuple[str, ...]  # names
Records = dict[tuple[str, ...], list[Record]]  # by the facets' values


class FacetValue(NamedTuple):
    """A score of a part of a task's items.

    Attributes:
        task: The task.
        values: What the part's items have of each facet.
        estimate: The score's estimate.
        together: The interval that holds at 95% for all cells of the breakdown at once; ``None`` where there is none.
        warning: What stands before the task's score, as far as the run's results tell.
    """

    task: str
    values: tuple[str, ...]
    estimate: Estimate
    together: Bounds | None
    warning: str = ""


class Breakdown(NamedTuple):
    """A score by the values of some facets.

    Attributes:
        by: The facets.
        score: The score.
        cells: The furthest from the neutral value first (without one, the highest), those without a value last.
    """

    by: Facets
    score: Score
    cells: Sequence[FacetValue]

    @property
    def values(self) -> int:
        """How many cells have a value."""
        return sum(not math.isnan(cell.estimate.value) for cell in self.cells)


def _facets(saved: SavedRecord) -> dict[str, str | Split]:
    """Return a document's facets: values, or functions that split its record."""
    benchmark: Benchmark = saved.saved_task.definition
    entry = catalog.entries().get(saved.saved_task.task)
    splits = {name: of for name, of in benchmark.facets.items() if callable(of)}
    language = {LANGUAGE: entry.language} if entry else {}
    return {**language, **saved.facets, **splits}


def _parts_of(
    benchmark: str, facets: Mapping[str, str | Split], record: Record, by: Facets
) -> Iterator[tuple[tuple[str, ...], Record]]:
    """Yield the parts that a document belongs to (several if its texts differ in a facet).

    Raises:
        NotConcerned: The benchmark has no such facet.
    """
    parts: Mapping[str, Record] = {"": record}
    for name in by:
        facet = facets.get(name)
        if facet is None:
            raise NotConcerned(
                f"{benchmark} has no facet {name!r}; it has {', '.join(facets)}"
            )
        if callable(facet):
            parts = facet(record)
    for value, part in parts.items():
        chosen = [facets[name] for name in by]
        yield tuple(value if callable(facet) else facet for facet in chosen), part


def by_facets(records: Iterable[SavedRecord], by: Facets) -> dict[SavedTask, Records]:
    """Group a file's records by part, and by the facets' values."""
    parts: dict[SavedTask, Records] = {}
    for saved in records:
        facets = _facets(saved)
        of_task = parts.setdefault(saved.saved_task, {})
        benchmark = saved.saved_task.benchmark
        with damage_in(saved.saved_task, f"document {saved.number}"):
            for values, part in _parts_of(benchmark, facets, saved.record, by):
                of_task.setdefault(values, []).append(part)
    return parts


def _warning(score: str, task: TaskRun | None) -> str:
    """Return the warning of a whole task's score."""
    if task is None or score not in task.scores:
        return ""
    return task.scores[score].verdict.reason or task.warning(score)


def _cells(
    score: Score, tasks: Sequence[tuple[str, Records]], runs: Mapping[str, TaskRun]
) -> list[FacetValue]:
    """Compute a score for each value of the facets, sorted, with simultaneous intervals."""
    warnings = {task: _warning(score.name, runs.get(task)) for task, _ in tasks}
    estimates = []
    for task, records in tasks:
        for values, of_values in records.items():
            estimates.append((task, values, of_part(score, of_values)))
    alone = [widened(estimate, score, 0.95) for _, _, estimate in estimates]
    level = simultaneous_level(len(alone) - alone.count(None))
    cells = [
        FacetValue(
            task, values, estimate, widened(estimate, score, level), warnings[task]
        )
        for task, values, estimate in estimates
    ]

    def place(cell: FacetValue) -> tuple[bool, float, str, tuple[str, ...]]:
        value = cell.estimate.value
        distance = value if score.neutral is None else abs(value - score.neutral)
        is_nan = math.isnan(value)
        return is_nan, 0.0 if is_nan else -distance, cell.task, cell.values

    return sorted(cells, key=place)


def _of_benchmark(
    benchmark: Benchmark,
    by: Facets,
    tasks: Sequence[tuple[str, Records]],
    names: Sequence[str],
    runs: Mapping[str, TaskRun],
) -> list[Breakdown]:
    """Break the named scores down, or the main ones."""
    every = [
        record
        for _, records in tasks
        for of_values in records.values()
        for record in of_values
    ]
    scores = {score.name: score for score in benchmark.scores(every)}
    return [
        Breakdown(by, scores[name], _cells(scores[name], tasks, runs))
        for name in names or benchmark.main or scores
        if name in scores
    ]


def breakdowns(
    paths: Sequence[str],
    by: Facets,
    names: Sequence[str] = (),
    language: str | None = None,
    reading: AnswerReading | None = None,
    wanted: Collection[tuple[str, str]] = (),
) -> list[Breakdown]:
    """Break scores of everything saved under the paths down by some facets.

    Each task has a breakdown of its own; those of a benchmark in which its facets have one value, such as the
    language, share one.

    Args:
        paths: Files or folders.
        by: Names of facets.
        names: Of scores; each benchmark's main ones if empty.
        language: The language of files that don't say it themselves.
        reading: How answers are read; by today's rules by default.
        wanted: Files and their tasks, of those that are saved there; all by default.

    Raises:
        BiasError: Files can't be read or scored, no benchmark has the facets, or no task the scores.
    """
    reading = reading or AnswerReading()
    parts = reading.gather(paths, lambda records: by_facets(records, by), language)
    groups = grouped(
        ((part.definition, len(records) == 1 or part), (part.task, records))
        for part, records in parts.items()
        if not wanted or (str(part.path), part.task) in wanted
    )
    found = run_discovery.beside(part.path for part in parts)
    runs = {
        part.task: found[part.path].tasks[part.task]
        for part in parts
        if part.path in found and part.task in found[part.path].tasks
    }
    computed = []
    saved = {part.definition: part for part in parts}
    for (benchmark, _), tasks in groups.items():
        with damage_in(saved[benchmark], "its scores"):
            computed += _of_benchmark(benchmark, by, tasks, names, runs)
    check_scores(names, {breakdown.score.name for breakdown in computed})
    # what compares the values of a facet has no value of one
    with_values = [breakdown for breakdown in computed if breakdown.values]
    return computed if names else with_values or computed
