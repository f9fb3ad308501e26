"""What the sections of a page are made of, as plain data: tables and the parts that hold them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lm_eval_bias.core.run_data import Run, TaskRun


@dataclass(frozen=True)
class Column:
    """A table's column.

    Attributes:
        label: Its heading.
        numeric: Whether its cells are numbers: set right and sorted by value.
        note: In small print below the heading of a page's table.
    """

    label: str
    numeric: bool = False
    note: str = ""


@dataclass(frozen=True)
class Cell:
    """A table's cell.

    Attributes:
        text: What is shown.
        value: What it is sorted by where the text alone would sort wrongly; ``None`` sorts by the text, ``nan`` last.
        note: A suffix or an interval, in small print below the text.
        bar: Where an interval begins, its value and its end, in percent of the range: half of it is neutral.
    """

    text: str
    value: float | None = None
    note: str = ""
    bar: Sequence[float] = ()

    @property
    def whole(self) -> str:
        """Text and note on one line, for tables of text."""
        return f"{self.text} {self.note}" if self.note else self.text

    @property
    def key(self) -> str:
        """The sorting key as the page's script reads it; empty if there is none."""
        return (
            ""
            if self.value is None or math.isnan(self.value)
            else repr(float(self.value))
        )


class Footnotes:
    """The footnotes of a table: each text once, with its mark."""

    _MARKS = "†‡§¶"  # doubled when they are used up

    def __init__(self) -> None:
        """Start without footnotes."""
        self._marks: dict[str, str] = {}

    def mark(self, text: str) -> str:
        """Return the mark of a text; empty for an empty one.

        >>> notes = Footnotes()
        >>> [notes.mark(text) for text in ("a", "", "b", "a")], notes.lines
        (['†', '', '‡', '†'], ['† a', '‡ b'])
        """
        if not text:
            return ""
        times, place = divmod(len(self._marks), len(self._MARKS))
        return self._marks.setdefault(text, self._MARKS[place] * (times + 1))

    @property
    def lines(self) -> list[str]:
        """The footnotes with their marks."""
        return [f"{mark} {text}" for text, mark in self._marks.items()]


Row = Iterable[Cell | str]


class Table:
    """A table that readers can sort by any column, by keyboard or mouse."""

    def __init__(
        self,
        caption: str,
        columns: Iterable[Column | str],
        rows: Iterable[Row],
        notes: Sequence[str] = (),
    ) -> None:
        """Make a table.

        Args:
            caption: What it shows.
            columns: Headings; a mere text heads a column of words.
            rows: Cells or their mere texts, one per column; the first is the row's heading.
            notes: Footnotes.
        """
        self.caption = caption
        self.notes = notes
        self.columns = [
            Column(column) if isinstance(column, str) else column for column in columns
        ]
        self.rows: list[list[Cell]] = []
        for row in rows:
            cells = [Cell(cell) if isinstance(cell, str) else cell for cell in row]
            self.rows.append(cells)


def numeric(*labels: str) -> list[Column | str]:
    """Make the headers of numeric columns."""
    return [Column(label, True) for label in labels]


@dataclass(frozen=True)
class ReportTask:
    """A task of a run in a page.

    Attributes:
        run: The run.
        task: The task.
        label: Task, with its run where there are several.
        series: The run's number, for colours and marks.
    """

    run: Run
    task: TaskRun
    label: str
    series: int


ReportTasks = Sequence[ReportTask]
