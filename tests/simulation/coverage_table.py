"""The simulation's table: a row for each structure and score, its cells held against their bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lm_eval_bias.core import registry
from tests.simulation.structures import Structure

LEVEL = 0.05
COVERAGE = (0.93, 0.97)
FALSE = (0.6, 1.4)  # times the level: 3% to 7% at 5%
SHORTFALL = 0.05  # of the power from what was promised
Sum = tuple[float, int, int]
Truths = tuple[Mapping[str, float], Mapping[str, float]]
TITLES = {
    "interval": "interval covers, %",
    "fixed": "for these prompts, %",
    "difference": "difference's covers, %",
    "false": "false findings at 5%, %",
    "false_corrected": "at 5%/tests, %",
    "power": "power (promised), %",
    "power_corrected": "at 5%/tests, %",
    "ordered": "ranks order equals, %",
}


@dataclass(frozen=True)
class Cell:
    """A share of rounds.

    Attributes:
        share: ``nan`` where the package never gave what it takes.
        number: Of how many rounds.
        without: In what share of all rounds the package gave nothing.
        low: Bound.
        high: Bound.
        promised: What a power was promised to be.
    """

    share: float
    number: int
    without: float
    low: float
    high: float
    promised: float = math.nan

    @property
    def outside(self) -> bool:
        """Whether it is out of bounds by more than the simulation's error (95%)."""

        def error(bound: float) -> float:
            return 1.96 * math.sqrt(max(bound * (1 - bound), 0.0) / self.number) if self.number else 0.0

        return self.share < self.low - error(self.low) or self.share > self.high + error(self.high)

    def __str__(self) -> str:
        if math.isnan(self.share):
            return "none"
        text = f"{100 * self.share:.1f}"
        text = f"**{text}**" if self.outside else text
        text += "" if math.isnan(self.promised) else f" ({100 * self.promised:.0f})"
        return f"{text}, none in {100 * self.without:.2g}%" if self.without else text


@dataclass(frozen=True)
class Row:
    """A structure's score.

    Attributes:
        structure: Its name.
        score: Its name.
        truth: Of the second model.
        difference: The true one where the models were made to differ; ``nan`` where they never were.
        cells: By what is measured.
    """

    structure: str
    score: str
    truth: float
    difference: float
    cells: Mapping[str, Cell]

    @classmethod
    def of(
        cls, structure: Structure, score: str, cases: Mapping[str, Mapping[str, Sum]], truths: Mapping[str, Truths]
    ) -> Row:
        """The row from the sums of its cases."""
        true = {case: truths[case][0][score] - truths[case][1][score] for case in cases}
        equal = [case for case, difference in true.items() if math.isclose(difference, 0.0, abs_tol=1e-9)]
        level = LEVEL / len(registry.get(structure.benchmark).main)
        cells = {
            "interval": _cell([*cases], cases, ("interval", "second_interval"), *COVERAGE),
            "fixed": _cell([*cases], cases, ("fixed",), *COVERAGE),
            "difference": _cell([*cases], cases, ("difference",), *COVERAGE),
            "false": _cell(equal, cases, ("rejects",), *(bound * LEVEL for bound in FALSE)),
            "false_corrected": _cell(equal, cases, ("rejects_corrected",), *(bound * level for bound in FALSE)),
            "ordered": _cell([*cases], cases, ("ordered",), 0.0, LEVEL),
        }
        if "different" in cases and "different" not in equal:
            for name, key in (("power", ""), ("power_corrected", "_corrected")):
                if promise := _cell(["different"], cases, (f"promised{key}",), 0.0, 1.0):
                    bounds = promise.share - SHORTFALL, 1.0
                    tested = cases["different"][f"rejects{key}"]
                    findings = {
                        "different": {"findings": (tested[0], sum(tested[1:]), 0)}
                    }  # nothing where there is no test
                    cells[name] = _cell(["different"], findings, ("findings",), *bounds, promised=promise.share)
        difference = true.get("different", math.nan)
        there = {name: cell for name in TITLES if (cell := cells.get(name)) is not None}
        return cls(structure.name, score, truths[next(iter(cases))][1][score], difference, there)

    def data(self) -> dict[str, Any]:
        """The row as JSON takes it."""
        return {
            "structure": self.structure,
            "score": self.score,
            "truth": self.truth,
            "difference": None if math.isnan(self.difference) else self.difference,
            "cells": {
                name: {
                    "share": None if math.isnan(cell.share) else cell.share,
                    "rounds": cell.number,
                    "without": cell.without,
                    "bounds": [cell.low, cell.high],
                    "outside": cell.outside,
                }
                for name, cell in self.cells.items()
            },
        }


def _cell(
    names: list[str], cases: Mapping[str, Mapping[str, Sum]], measures: tuple[str, ...], low: float, high: float,
    promised: float = math.nan,
) -> Cell | None:  # fmt: skip
    """The share of rounds over some cases and measures, which rest on the same rounds; ``None`` where nothing was."""
    sums = [cases[name][measure] for name in names for measure in measures if measure in cases[name]]
    if not sums:
        return None
    total, number, without = (sum(column) for column in zip(*sums, strict=True))
    share = total / number if number else math.nan
    return Cell(share, number // len(measures), without / (number + without), low, high, promised)


def outside(row: Row) -> list[str]:
    """What is out of bounds in a row, in words."""
    return [
        f"{TITLES[name].rpartition(',')[0]} {cell}, bounds {100 * cell.low:.3g} to {100 * cell.high:.3g}"
        for name, cell in row.cells.items()
        if cell.outside
    ]


def markdown(rows: list[Row], count: int) -> str:
    """The table as GitHub takes it."""
    from tabulate import tabulate

    body = [
        [row.structure, row.score, f"{row.truth:.3g}", *(str(row.cells.get(name, "–")) for name in TITLES)]
        for row in rows
    ]
    table = tabulate(body, ["models", "score", "true", *TITLES.values()], "github", disable_numparse=True)
    error = 196 * math.sqrt(LEVEL * (1 - LEVEL) / count)
    return f"{table}\n\n{count:,} rounds, which measure 5% and 95% to ± {error:.1f} percentage points."
