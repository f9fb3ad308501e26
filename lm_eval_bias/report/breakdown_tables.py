"""Breakdowns as tables and data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lm_eval_bias.core import numbers
from lm_eval_bias.core.page_parts import Cell, Footnotes, Row, Table, numeric
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.core.wording import value_cell
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.report.tables import text_table
from lm_eval_bias.runs.breakdowns import Breakdown

INTERVALS = "95% intervals, of each value and for all at once"


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


def table(breakdown: Breakdown) -> Table:
    """Make a table of a breakdown, a row for each value."""
    score = breakdown.score
    footnotes = Footnotes()
    rows: list[Row] = []
    for task, values, estimate, simultaneous, warning in breakdown.cells:
        value = Value.of(score, estimate)
        mark = footnotes.mark(joined(warning, value.note))
        count = Cell(numbers.count(estimate.n), estimate.n)
        ends = numbers.bracketed_ends(simultaneous, value.unit)
        rows.append([task, *values, count, value_cell(value, mark), ends])
    by = " and ".join(breakdown.by)
    caption = f"{score.title} ({score.name}) by {by}; {numbers.target_text(score)}; {INTERVALS}"
    columns = ["Task", *breakdown.by, *numeric("n", "Value", "All at once")]
    return Table(caption, columns, rows, footnotes.lines)


def as_text(breakdowns: Sequence[Breakdown]) -> str:
    """Write each breakdown as a table."""
    made = map(table, breakdowns)
    return "\n\n".join(f"{one.caption}\n{text_table(one)}" for one in made) + "\n"
