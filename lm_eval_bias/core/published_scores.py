"""The scores that the papers print, by task, in this suite's own score names and units, with what they were made by."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources


@dataclass(frozen=True)
class PublishedCell:
    """A printed score.

    Attributes:
        value: In the suite's unit; ``nan`` where the paper prints a bound only.
        printed: The same with the paper's digits.
        plus_minus: The uncertainty printed beside it, same unit; ``None`` where there is none. Never a standard error
            that one could test with: see the row's conventions.
        derived: How it follows from printed numbers, where it isn't printed itself.
    """

    value: float
    printed: str
    plus_minus: float | None = None
    derived: str = ""


@dataclass(frozen=True)
class Published:
    """A model's scores in one task.

    Attributes:
        task: Task name.
        model: As the paper calls it, with its approach where it has several.
        paper: Authors and year.
        tables: Where in the paper.
        conventions: What the scores were made by.
        remarks: What is known to be wrong with them.
        cells: By score name.
    """

    task: str
    model: str
    paper: str
    tables: str
    conventions: str
    remarks: tuple[str, ...] = ()
    cells: Mapping[str, PublishedCell] = field(default_factory=dict)


def printed_lines(name: str) -> list[dict[str, str]]:
    """The lines of ``results/published/<name>.csv``."""
    text = resources.files("lm_eval_bias.results").joinpath("published", f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def table_names(numbers: set[str]) -> str:
    """``Tables 2, 3 and 5``."""
    ordered = sorted(numbers, key=int)
    return f"Table {ordered[0]}" if len(ordered) == 1 else f"Tables {', '.join(ordered[:-1])} and {ordered[-1]}"
