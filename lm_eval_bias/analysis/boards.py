"""What a board is: one task's table, with runs and published models as rows and main scores as columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lm_eval_bias.analysis.rank_intervals import Rank
from lm_eval_bias.runs.run_data import Value

RUN, PUBLISHED = "run", "published"
NOT_PUBLISHED = "not published"


@dataclass(frozen=True)
class Cell:
    """A score of a row.

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
class Row:
    """A model.

    Attributes:
        model: Its name.
        kind: :data:`RUN` or :data:`PUBLISHED`.
        source: The version of this suite, or paper and tables.
        conventions: What its scores were made by.
        deviations: Where it departs from the task, and what is known to be wrong.
        cells: By score name.
        group: What it shares with the rows that it may be ranked with; empty for published ones.
        caveat: What has to be read before its scores.
    """

    model: str
    kind: str
    source: str
    conventions: str
    deviations: tuple[str, ...]
    cells: Mapping[str, Cell]
    group: tuple[str, ...] = ()
    caveat: str = ""


@dataclass(frozen=True)
class Board:
    """A task's table.

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
    rows: Sequence[Row]
    notes: Sequence[str]


def rule(column: Value) -> str:
    """How a score ranks models; empty where it doesn't."""
    if column.higher_is_better is not None:
        return "highest first" if column.higher_is_better else "lowest first"
    return "" if column.neutral is None else f"nearest to {column.neutral:g} first"
