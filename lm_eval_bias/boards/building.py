"""Boards from runs and published scores: one task's table, with ranks where these can be told."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lm_eval_bias.boards import rank_intervals
from lm_eval_bias.boards.rank_intervals import Rank
from lm_eval_bias.comparing.pairing import Side
from lm_eval_bias.core import catalog, numbers, registry, run_data
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import progress
from lm_eval_bias.core.run_data import Problem, Run, TaskRun, Value
from lm_eval_bias.custom_metrics.score import (
    Design,
    Record,
    Undefined,
    t_factor,
    undefined,
)
from lm_eval_bias.runs import remarks, settings
from lm_eval_bias.runs.harness_results import presentable
from lm_eval_bias.runs.soundness import ROUNDING

RUN, PUBLISHED = "run", "published"
NOT_PUBLISHED = "not published"


@dataclass(frozen=True)
class RankedScore:
    """One score in one row of a board.

    Attributes:
        value: ``nan`` where there is none.
        printed: With the digits that its paper prints; empty for a run's.
        stderr: ``nan`` where there is none.
        interval: 95%; ``None`` where there is none.
        plus_minus: An uncertainty that the paper prints, which is no standard error of the mean.
        note: Why there is no value, what to beware of, or how it was derived.
        rank: Interval of rank among the runs with the same conventions.
        unranked: Why there is none.
    """

    value: float = math.nan
    printed: str = ""
    stderr: float = math.nan
    interval: tuple[float, float] | None = None
    plus_minus: float | None = None
    note: str = ""
    rank: Rank | None = None
    unranked: str = ""

    @property
    def derived(self) -> bool:
        """Whether a published score isn't printed itself but follows from what is."""
        return bool(self.printed and self.note)


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
        caveat: What has to be read before its scores.
        unmaking: The kinds of the remarks that it says.
        paper: That prints its scores; empty for runs.
    """

    model: str
    kind: str
    source: str
    conventions: str
    deviations: tuple[str, ...]
    cells: Mapping[str, RankedScore]
    group: tuple[str, ...] = ()
    caveat: str = ""
    unmaking: tuple[str, ...] = ()
    paper: str = ""


@dataclass(frozen=True)
class Board:
    """The table of one task.

    Attributes:
        task: Its name.
        benchmark: Its benchmark's.
        language: ISO 639-1 code.
        measures: What it measures, in one line.
        columns: The main scores; their ``value`` is empty.
        others: Further scores that the paper prints.
        rows: Runs, then published models, each by name: no order of merit.
        notes: What holds for the whole table.
    """

    task: str
    benchmark: str
    language: str
    measures: str
    columns: Sequence[Value]
    others: Sequence[Value]
    rows: Sequence[BoardRow]
    notes: Sequence[str]


def rule(column: Value) -> str:
    """Say how a score ranks models; "" where it doesn't."""
    if column.higher_is_better is not None:
        return "highest first" if column.higher_is_better else "lowest first"
    return (
        ""
        if column.neutral is None
        else f"nearest to {numbers.bound(column.neutral, column.unit)} first"
    )


INDEPENDENT = (
    "were ranked as if their errors were independent, because there are no sample logs that tell the error of their "
    "difference: the ranks of models that err on different items may be too sure."
)
ABSENT = "not in its file"
UNRANKED = (
    "chance_level",
    "unanswered",
)  # kinds of remarks: what knows or says nothing is near neutral, too
ALONE = "no other run was scored by the same conventions"


class Unranked(Exception):
    """Raised where a run can't be ranked by a score; its text says why."""


def _point(
    value: Value | None, column: Value, form: Design | None = None
) -> rank_intervals.Point:
    """Return what a run is ranked by.

    An interval that is wider than the standard error says (Wilson's, Newcombe's and bootstrap ones near the end of the
    range, where the error may even be 0) counts for more. An error of 0 would settle every comparison: it says that
    nothing varied between the items, not that nothing could have.

    Raises:
        Unranked: There is no value, or no error that could be used.
    """
    if value is None:
        raise Unranked(ABSENT)
    if not math.isfinite(value.value):
        raise Unranked(value.note or "no value")
    meaning = ("neutral", "higher_is_better", "unit", "low", "high")
    if any(getattr(value, name) != getattr(column, name) for name in meaning):
        raise Unranked(
            "its file states another range, unit or neutral value for the score"
        )
    dof = math.inf if math.isnan(value.dof) else max(value.dof, 1.0)
    half = (
        0.0
        if value.interval is None
        else (value.interval[1] - value.interval[0]) / 2 / t_factor(dof)
    )
    error = half if math.isnan(value.stderr) else max(half, value.stderr)
    if ROUNDING * max(1.0, abs(value.value)) < error <= column.high - column.low:
        same = form is not None and math.isclose(
            form.value, value.value, abs_tol=ROUNDING
        )
        return rank_intervals.Point(value.value, error, dof, form if same else None)
    raise Unranked(
        value.note
        if math.isnan(value.stderr) and value.note
        else "no usable standard error"
    )


def _run_row(run: Run, task: TaskRun, columns: Sequence[Value]) -> BoardRow:
    given = {column.name: task.scores.get(column.name) for column in columns}
    cells = {
        name: RankedScore(v.value, stderr=v.stderr, interval=v.interval, note=v.note)
        if v is not None
        else RankedScore(note=ABSENT)
        for name, v in given.items()
    }
    departures = [
        one for one in (settings.part(task), settings.old_version(task)) if one
    ]
    departures += [
        remark.text
        for remark in remarks.about_answers(run, task)
        if remark.kind == "of_benchmark"
    ]
    notes: dict[str, list[str]] = defaultdict(list)
    for name, cell in cells.items():
        if cell.note and not math.isnan(cell.value) and cell.note not in departures:
            notes[cell.note].append(name)
    return BoardRow(
        run.name,
        RUN,
        f"lm-eval-bias {run.provenance.get('lm-eval-bias') or ''}".strip(),
        settings.describe(run, task),
        (
            *departures,
            *(f"{', '.join(names)}: {note}" for note, names in notes.items()),
            *([f"differs from {run.differs}"] if run.differs else []),
        ),
        cells,
        settings.key(run, task),
        remarks.before_scores(run, task),
        tuple(remark.kind for remark in remarks.unmaking(run, task)),
    )


def _published_cell(score: run_data.PublishedCell | None, ranked: bool) -> RankedScore:
    if score is None:
        return RankedScore(note=NOT_PUBLISHED, unranked=NOT_PUBLISHED if ranked else "")
    reason = (
        "without standard error"
        if score.plus_minus is None
        else "with a ± that is not a standard error"
    )
    return RankedScore(
        score.value,
        score.printed,
        plus_minus=score.plus_minus,
        note=score.derived,
        unranked=f"published {reason}" if ranked else "",
    )


def _forms(run: Run, task: TaskRun, columns: Sequence[Value]) -> dict[str, Design]:
    """Return a run's score designs by name; none without a readable log of known items."""
    side, records = Side(run.name, run, task), list[Record]()
    if settings.asked(task) != settings.UNRECORDED:
        with suppress(BiasError):
            records = list(side.records.values())
    names = {column.name for column in columns}
    designs: dict[str, Design] = {}
    for score in side.benchmark.scores(records):
        if score.name in names and score.design is not None:
            with suppress(Undefined):
                designs[score.name] = score.design(records)
    return designs


def _with_ranks(
    rows: Sequence[BoardRow],
    tasks: Sequence[TaskRun],
    column: Value,
    forms: Sequence[Mapping[str, Design]],
) -> list[BoardRow]:
    """Rank runs by one score among those with the same conventions; rows without a rank say why."""
    ranks: list[Rank | str] = []
    groups: dict[tuple[str, ...], dict[int, rank_intervals.Point]] = defaultdict(dict)
    for place, (row, task, form) in enumerate(zip(rows, tasks, forms, strict=True)):
        knows_nothing = next(
            (kind for kind in UNRANKED if kind in row.unmaking), ""
        ).replace("_", " ")
        part = settings.part(task)
        try:
            if problem := settings.unknown_part(task) or knows_nothing:
                raise Unranked(problem)
            groups[row.group][place] = _point(
                task.scores.get(column.name), column, form.get(column.name)
            )
        except Unranked as reason:
            ranks.append(str(reason))
        else:
            ranks.append(f"{part}: no other run on the same items" if part else ALONE)
    for members in groups.values():
        if len(members) > 1:
            intervals = rank_intervals.intervals(
                list(members.values()), column.neutral, column.higher_is_better
            )
            for place, rank in zip(members, intervals, strict=True):
                ranks[place] = rank
    ranked = []
    for row, outcome in zip(rows, ranks, strict=True):
        cell = row.cells[column.name]
        cell = (
            replace(cell, unranked=outcome)
            if isinstance(outcome, str)
            else replace(cell, rank=outcome)
        )
        ranked.append(replace(row, cells={**row.cells, column.name: cell}))
    return ranked


def _notes(
    rows: Sequence[BoardRow], columns: Sequence[Value], tasks: Sequence[TaskRun]
) -> list[str]:
    notes = []
    groups = {row.group for row in rows if row.kind == RUN}
    if len(groups) > 1:
        notes.append(
            "The runs follow different conventions: ranks hold only among runs that follow the same."
        )
    recorded = {settings.asked(task) for task in tasks if not settings.part(task)}
    if len(recorded - {settings.UNRECORDED}) > 1 and len(
        {group[:-1] for group in groups}
    ) < len(groups):
        notes.append(
            "Runs on other documents or prompts are ranked separately, even under the same name."
        )
    ranks = [cell.rank for row in rows for cell in row.cells.values() if cell.rank]
    if any(rank.apart for rank in ranks):
        share = "All" if all(rank.apart == rank.of - 1 for rank in ranks) else "Some"
        notes.append(f"{share} pairs of runs {INDEPENDENT}")
    printed = [row for row in rows if row.kind == PUBLISHED]
    if not printed:
        notes.append("No published scores for this task.")
    elif all(
        row.cells[column.name].note == NOT_PUBLISHED
        for row in printed
        for column in columns
    ):
        notes.append(
            "The paper prints none of the main scores; the scores it prints are among the further ones."
        )
    return notes


def _board(task: str, members: Sequence[tuple[Run, TaskRun]]) -> Board:
    entry = catalog.entries().get(task)
    benchmark = entry.benchmark if entry else members[0][1].benchmark
    task_runs = [
        (run, result) for run, result in members if result.benchmark == benchmark
    ]
    printed = registry.published().get(task, [])
    # the suite's own description of the scores
    scores = registry.get(benchmark).scores()
    definitions = {one.name: Value.of(one, undefined("")) for one in scores}
    main = registry.get(benchmark).main or tuple(definitions)
    extra = [
        name
        for name in definitions
        if name not in main and any(name in row.cells for row in printed)
    ]
    columns, others = (
        [definitions[name] for name in main],
        [definitions[name] for name in extra],
    )
    task_runs.sort(key=lambda pair: (pair[0].name.casefold(), pair[1].task))
    rows = [_run_row(run, result, [*columns, *others]) for run, result in task_runs]
    ranked = [column for column in columns if rule(column)]
    logged = Counter(
        row.group
        for row, (_, result) in zip(rows, task_runs, strict=True)
        if result.samples
    )
    forms = [
        _forms(run, result, ranked) if logged[row.group] > 1 else {}
        for row, (run, result) in zip(rows, task_runs, strict=True)
    ]
    for column in ranked:
        rows = _with_ranks(rows, [result for _, result in task_runs], column, forms)
    for one in sorted(printed, key=lambda row: row.model.casefold()):
        cells = {
            c.name: _published_cell(one.cells.get(c.name), c in ranked)
            for c in (*columns, *others)
        }
        source = f"{one.paper}, {one.tables}"
        rows.append(
            BoardRow(
                one.model,
                PUBLISHED,
                source,
                one.conventions,
                one.remarks,
                cells,
                paper=one.paper,
            )
        )
    if entry:
        language, measures = entry.language, entry.measures
    else:  # a task over a data set of one's own says what it measures
        first = task_runs[0][1]
        own = (
            first.metadata.get("measures") if "dataset_used" in first.metadata else None
        )
        language, measures = (
            first.language,
            str(own or "a task that this package doesn't know"),
        )
    notes = _notes(rows, columns, [result for _, result in task_runs])
    return Board(task, benchmark, language, measures, columns, others, rows, notes)


def boards(runs: Sequence[Run]) -> list[Board]:
    """Build the boards of all tasks that were run, in the order of listings."""
    members: dict[str, list[tuple[Run, TaskRun]]] = defaultdict(list)
    for run in presentable(runs):
        for task in run.tasks.values():
            if task.benchmark in registry.by_name():
                members[task.task].append((run, task))
    names = list(
        dict.fromkeys(
            [*(name for name in catalog.entries() if name in members), *members]
        )
    )
    return [_board(name, members[name]) for name in progress(names, "Tasks")]


def foreign(runs: Sequence[Run]) -> list[Problem]:
    """List the tasks of unknown benchmarks, which have no board."""
    return [
        Problem(run.path, f"{task.task}: unknown benchmark, {task.benchmark!r}")
        for run in runs
        for task in run.tasks.values()
        if task.benchmark not in registry.by_name()
    ]
