"""Breakdowns as tables and data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lm_eval_bias.core import numbers
from lm_eval_bias.core.csv_text import csv_of
from lm_eval_bias.core.page_parts import Cell, Column, Table
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.core.wording import value_cell
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.report.tables import text_table
from lm_eval_bias.runs.breakdowns import Breakdown

INTERVALS = "95% intervals, of each value and for all at once"
_NUMERIC = ("n", "Value", "All at once")


def records(breakdowns: Sequence[Breakdown]) -> Iterator[dict[str, object]]:
    """Yield each value of each breakdown as plain data, facets by name."""
    for breakdown in breakdowns:
        for task, values, estimate, simultaneous, warning in breakdown.cells:
            value = Value.of(breakdown.score, estimate)
            yield {
                "task": task,
                **dict(zip(breakdown.by, values, strict=True)),
                "score": value.name,
                "n": estimate.n,
                "estimate": value.value,
                "stderr": value.stderr,
                "interval": value.interval or value.fixed_interval,
                "simultaneous": simultaneous,
                "neutral": value.neutral,
                "unit": value.unit,
                "warning": warning,
                "note": value.note,
            }


def as_csv(breakdowns: Sequence[Breakdown]) -> str:
    """Write each value of each breakdown as a line of CSV."""
    return csv_of(records(breakdowns))


def table(breakdowns: Sequence[Breakdown], most: int | None = None) -> Table:
    """Make a table of breakdowns by the same facets, a row for each value; its caption says what all rows share.

    Args:
        breakdowns: Each a score.
        most: How many rows each gets at most, those furthest from neutral.
    """
    by = breakdowns[0].by
    rows: list[dict[str, Cell | str]] = []
    for breakdown in breakdowns:
        score = breakdown.score
        for cell in breakdown.cells[:most]:
            task, values, estimate, simultaneous, warning = cell
            value = Value.of(score, estimate)
            rows.append(
                {
                    "Task": task,
                    "Score": f"{score.title} ({score.name}), {numbers.target_text(score)}",
                    **dict(zip(by, values, strict=True)),
                    "n": Cell(f"{estimate.n:,}", estimate.n),
                    "Value": value_cell(value),
                    "All at once": numbers.bracketed_ends(simultaneous, value.unit),
                    "Note": joined(warning, value.note),
                }
            )
    shared = []
    for name in ("Task", "Score", "Note"):
        texts = {row[name] for row in rows}
        if len(texts) == 1:
            shared.append(str(texts.pop()))
            for row in rows:
                del row[name]
    caption = [f"By {' and '.join(by)}", *filter(None, shared), INTERVALS]
    cells = max(len(breakdown.cells) for breakdown in breakdowns)
    if most is not None and cells > most:
        caption.append(
            f"the {most} furthest of {cells:,}; all: rescore RUN --by {','.join(by)}"
        )
    columns = [Column(name, name in _NUMERIC) for name in rows[0]]
    return Table("; ".join(caption), columns, [row.values() for row in rows])


def as_text(breakdowns: Sequence[Breakdown]) -> str:
    """Write each breakdown as a table."""
    made = (table([breakdown]) for breakdown in breakdowns)
    return "\n\n".join(f"{one.caption}\n{text_table(one)}" for one in made) + "\n"
