"""Boards from runs and published scores: one task's table, with ranks where these can be told."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lm_eval_bias.boards import rank_intervals
from lm_eval_bias.boards.models import BoardModel
from lm_eval_bias.boards.rank_intervals import Rank
from lm_eval_bias.core import catalog, numbers, registry
from lm_eval_bias.core.benchmark import Benchmark, UnknownBenchmark
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import progress
from lm_eval_bias.core.run_data import (
    Problem,
    PublishedCell,
    Run,
    TaskRun,
    Value,
)
from lm_eval_bias.core.run_record import UNKNOWN
from lm_eval_bias.core.verdicts import Diagnostic
from lm_eval_bias.custom_metrics.score import (
    Design,
    joined,
    stderr_of,
    undefined,
)
from lm_eval_bias.runs import answer_files, diagnostics, measurement
from lm_eval_bias.runs.integrity import ROUNDING

RUN = "run"
PUBLISHED = "published"
NOT_PUBLISHED = "not published"


@dataclass(frozen=True)
class RankedScore(Value):
    """One score in one row of a board; the ``note`` of a published one says how it was derived.

    Attributes:
        plus_minus: An uncertainty that the paper prints, which is no standard error of the mean.
        rank: Interval of rank among the runs with the same conventions.
        unranked: Why there is none.
    """

    plus_minus: float | None = None
    rank: Rank | None = None
    unranked: str = ""


@dataclass(frozen=True)
class BoardRow:
    """A model's row.

    Attributes:
        model: Its name.
        kind: :data:`RUN` or :data:`PUBLISHED`.
        source: The version of this suite, or paper and tables.
        conventions: What its scores were made by.
        deviations: Where it departs from the task, and what is known to be wrong.
        cells: By score name.
        group: What it shares with the rows that it may be ranked with; empty for published ones.
        diagnostics: What has to be read before its scores.
        task: The result that counts, of a run; ``None`` for published ones.
        run: Which of the model's runs it is of, from 0.
        others: How many further runs of the task there are.
    """

    model: str
    kind: str
    source: str
    conventions: str
    deviations: tuple[str, ...]
    cells: dict[str, RankedScore]
    group: tuple[str, ...] = ()
    diagnostics: Sequence[Diagnostic] = ()
    task: TaskRun | None = None
    run: int = 0
    others: int = 0

    @property
    def uninformative(self) -> str:
        """The warning that its answers say nothing about bias; empty without one."""
        empty = [r.shortest for r in self.diagnostics if r.code in diagnostics.EMPTY]
        return empty[0] if empty else ""

    @property
    def warning(self) -> str:
        """Its warnings on one line."""
        return joined(*(one.shortest for one in self.diagnostics))


@dataclass(frozen=True)
class Board:
    """The table of one task.

    Attributes:
        task: Its name.
        definition: Its benchmark or variant.
        language: ISO 639-1 code.
        measures: What it measures, in one line.
        columns: The main scores; their ``value`` is empty.
        others: Further scores that the paper prints.
        rows: Runs, then published models, each by name: no order of merit.
        notes: What holds for the whole table.
    """

    task: str
    definition: Benchmark
    language: str
    measures: str
    columns: Sequence[Value]
    others: Sequence[Value]
    rows: Sequence[BoardRow]
    notes: Sequence[str]

    def too_few(self, score: Value) -> str:
        """Describe that the items can't tell any models apart by a score, and how many could; empty if they can."""
        for row in self.rows:
            rank = row.cells[score.name].rank
            if row.task and rank and rank.tells_none:
                wanted = numbers.two_digits(row.task.documents * rank.more)
                return (
                    f"too few items to tell {rank.of} models apart; {wanted} like them, where these are "
                    f"{row.task.documents:,}, would tell the two that differ most"
                )
        return ""


def rule(column: Value) -> str:
    """Describe the order in which a score ranks models; empty if it doesn't."""
    if column.higher_is_better is not None:
        return "highest first" if column.higher_is_better else "lowest first"
    return (
        ""
        if column.neutral is None
        else f"nearest to {numbers.bound(column.neutral, column.unit)} first"
    )


INDEPENDENT = (
    "were ranked as if their errors were independent, because the error of their difference isn't known (it takes "
    "both runs' answers to the same items): the ranks of models that err on different items may be too sure."
)
ABSENT = "not in its file"
ALONE = "no other run with the same items and conventions can be ranked"


class Unranked(Exception):
    """Raised where a run can't be ranked by a score; its text says why."""


def _point(value: Value, column: Value, design: Design | None) -> rank_intervals.Point:
    """Return a run's point for ranking.

    An interval that is wider than the standard error says (Wilson's, Newcombe's and bootstrap ones near the end of the
    range, where the error may even be 0) counts for more. An error of 0 would settle every comparison: it says that
    nothing varied between the items, not that nothing could have.

    Raises:
        Unranked: There is no value, or no error that could be used.
    """
    if not math.isfinite(value.value):
        raise Unranked(value.note or "no value")
    meaning = ("neutral", "higher_is_better", "unit", "low", "high")
    if any(getattr(value, name) != getattr(column, name) for name in meaning):
        raise Unranked(
            "its file states another range, unit or neutral value for the score"
        )
    dof = math.inf if math.isnan(value.dof) else max(value.dof, 1.0)
    error = value.stderr
    if value.interval is not None:
        half = stderr_of(value.interval, dof)
        error = half if math.isnan(error) else max(half, error)
    if ROUNDING * max(1.0, abs(value.value)) < error <= column.high - column.low:
        if design is not None and not math.isclose(
            design.value, value.value, abs_tol=ROUNDING
        ):
            design = None
        silent = value.verdict.silent
        return rank_intervals.Point(value.value, error, dof, design, silent)
    reason = value.note if math.isnan(value.stderr) else ""
    raise Unranked(reason or "no usable standard error")


def _run_row(model: BoardModel, name: str, columns: Sequence[Value]) -> BoardRow:
    run, task = model.tasks[name]
    deviations = [measurement.items_run(task), measurement.old_version(task)]
    for one in diagnostics.about_answers(task):
        if one.code == "of_benchmark":
            deviations.append(one.message)
    cells = {}
    notes = []
    for column in columns:
        value = task.scores.get(column.name) or replace(column, note=ABSENT)
        cells[value.name] = RankedScore(**vars(value))
        if not math.isnan(value.value) and value.note not in ("", *deviations):
            notes.append((value.note, value.name))
    for note, names in numbers.grouped(notes).items():
        deviations.append(f"{', '.join(names)}: {note}")
    return BoardRow(
        model.label,
        RUN,
        f"lm-eval-bias {task.record.code.lm_eval_bias or ''}".strip(),
        measurement.describe(task),
        tuple(filter(None, deviations)),
        cells,
        measurement.rank_group(task),
        task.diagnostics,
        task,
        [each.path for each in model.runs].index(run.path),
        model.others(name),
    )


def _published_cell(
    column: Value, score: PublishedCell | None, ranked: bool
) -> RankedScore:
    cell = RankedScore(**vars(column))
    reason = "published without standard error"
    if score is None:
        reason = NOT_PUBLISHED
        cell = replace(cell, note=NOT_PUBLISHED)
    else:
        if score.plus_minus is not None:
            reason = "published with a ± that is not a standard error"
        cell = replace(
            cell,
            value=score.value,
            plus_minus=score.plus_minus,
            note=score.derived,
        )
    return replace(cell, unranked=reason) if ranked else cell


def _designs(task: TaskRun, names: Sequence[str]) -> dict[str, Design]:
    """Return a task's score designs by name; none without readable answers to known items."""
    if measurement.documents_hash(task) != UNKNOWN:
        with suppress(BiasError):
            return answer_files.designs(task, names)
    return {}


def _rank(
    rows: Sequence[BoardRow],
    tasks: Sequence[TaskRun],
    column: Value,
    designs: Sequence[Mapping[str, Design]],
) -> None:
    """Fill in a score's ranks of runs among those with the same conventions, or why a run has none."""
    name = column.name
    groups: dict[tuple[str, ...], dict[int, rank_intervals.Point]] = defaultdict(dict)
    for place, (row, task) in enumerate(zip(rows, tasks, strict=True)):
        reason = ALONE
        try:
            verdict = row.cells[name].verdict
            silent = row.uninformative or (verdict.silent == 1 and verdict.reason)
            if problem := measurement.unknown_part(task) or silent:
                raise Unranked(problem)
            design = designs[place].get(name)
            groups[row.group][place] = _point(row.cells[name], column, design)
        except Unranked as error:
            reason = str(error)
        row.cells[name] = replace(row.cells[name], unranked=reason)
    for members in groups.values():
        if len(members) < 2:
            continue  # nothing to rank it among
        ranks = rank_intervals.intervals(
            list(members.values()), column.neutral, column.higher_is_better
        )
        for place, rank in zip(members, ranks, strict=True):
            cells = rows[place].cells
            cells[name] = replace(cells[name], rank=rank, unranked="")


def _notes(rows: Sequence[BoardRow], tasks: Sequence[TaskRun]) -> list[str]:
    notes = []
    groups = {row.group for row in rows}
    if len(groups) > 1:
        notes.append(
            "The runs follow different conventions: ranks hold only among runs that follow the same."
        )
    whole = [task for task in tasks if not measurement.items_run(task)]
    recorded = {measurement.documents_hash(task) for task in whole}
    conventions = {group[:-2] for group in groups}
    if len(recorded - {UNKNOWN}) > 1 and len(conventions) < len(groups):
        notes.append(
            "Runs on other documents or prompts are ranked separately, even under the same name."
        )
    ranks = [cell.rank for row in rows for cell in row.cells.values() if cell.rank]
    if any(rank.apart for rank in ranks):
        share = "All" if all(rank.apart == rank.of - 1 for rank in ranks) else "Some"
        notes.append(f"{share} pairs of runs {INDEPENDENT}")
    return notes


def _board(task: str, models: Sequence[BoardModel]) -> Board:
    entry = catalog.entries().get(task)
    defined = [model.tasks[task][1].definition for model in models]
    benchmark: Benchmark = entry.definition if entry else defined[0]
    models = [m for m, its in zip(models, defined, strict=True) if its is benchmark]
    models = sorted(models, key=lambda model: model.label.casefold())
    results = [model.tasks[task][1] for model in models]
    published = registry.published().get(task, [])
    # the suite's own description of the scores
    definitions = {
        score.name: Value.of(score, undefined("")) for score in benchmark.scores()
    }
    main = benchmark.main or tuple(definitions)
    columns = [definitions[score] for score in main]
    printed = {score for row in published for score in row.cells}
    others = [definitions[s] for s in definitions if s in printed and s not in main]
    rows = [_run_row(model, task, [*columns, *others]) for model in models]
    ranked = [column for column in columns if rule(column)]
    pairs = zip(rows, results, strict=True)
    names = [column.name for column in ranked]
    logged = Counter(row.group for row, result in pairs if result.is_saved)
    designs = [
        _designs(result, names) if logged[row.group] > 1 else {}
        for row, result in zip(rows, results, strict=True)
    ]
    for column in ranked:
        _rank(rows, results, column, designs)
    notes = _notes(rows, results)
    for paper in sorted(published, key=lambda paper: paper.model.casefold()):
        cells = {
            column.name: _published_cell(
                column, paper.cells.get(column.name), column in ranked
            )
            for column in (*columns, *others)
        }
        rows.append(
            BoardRow(
                paper.model,
                PUBLISHED,
                f"{paper.paper}, {paper.tables}",
                paper.conventions,
                paper.notes,
                cells,
                diagnostics=[Diagnostic("chance_level", paper.chance)]
                if paper.chance
                else [],
            )
        )
    if entry:
        language = entry.language
        measures = entry.measures
    else:  # a task over a data set of one's own says what it measures
        language = results[0].language
        metadata = results[0].metadata
        measures = "a task that this package doesn't know"
        if "dataset_used" in metadata:
            measures = str(metadata.get("measures") or measures)
    return Board(task, benchmark, language, measures, columns, others, rows, notes)


def boards(models: Sequence[BoardModel]) -> list[Board]:
    """Build the boards of all tasks that were run, in the order of listings."""
    members = numbers.grouped(
        (name, model)
        for model in models
        for name, (_, task) in model.tasks.items()
        if not isinstance(task.definition, UnknownBenchmark)
    )
    listed = [name for name in catalog.entries() if name in members]
    names = list(dict.fromkeys([*listed, *members]))
    return [_board(name, members[name]) for name in progress(names, "Tasks")]


def foreign(runs: Sequence[Run]) -> list[Problem]:
    """List the tasks of unknown benchmarks, which have no board."""
    return [
        Problem(run.path, f"{task.task}: unknown benchmark, {task.benchmark!r}")
        for run in runs
        for task in run.tasks.values()
        if isinstance(task.definition, UnknownBenchmark)
    ]
