"""Cells and columns of tables that show or name a score."""

from __future__ import annotations

from lm_eval_bias.core import numbers, registry
from lm_eval_bias.core.errors import ask
from lm_eval_bias.core.page_parts import Cell, Column
from lm_eval_bias.core.run_data import Value


def score_label(benchmark: str, score: str) -> str:
    """What people call a score; its technical name where this version doesn't know the benchmark.

    Args:
        benchmark: A benchmark or variant, as a task's metadata name it.
        score: The technical name.
    """
    known = registry.by_name().get(benchmark)
    return ask(score, known, known.score_label, score) if known else score


def named(benchmark: str, score: str) -> tuple[str, str]:
    """What people call a score, and its technical name to stand beside it; empty where that is the same."""
    shown = score_label(benchmark, score)
    return shown, "" if shown == score else score


def value_cell(value: Value | None, link: str = "") -> Cell:
    """A score with its interval (without one with that of its items as given), sorted by its value, and a link."""
    if value is None:
        return Cell(numbers.NONE)
    note = numbers.bracketed(value) or numbers.fixed_interval(value)
    return Cell(numbers.number(value.value, value.unit), value.value, note, link)


def score_column(benchmark: str, name: str) -> Column:
    """A heading for a score: what people call it, its technical name below."""
    cell = score_cell(benchmark, name)
    return Column(cell.text, True, cell.note)


def score_cell(benchmark: str, name: str, note: str = "") -> Cell:
    """A cell that names a score: what people call it, its technical name below, and a remark."""
    shown, technical = named(benchmark, name)
    return Cell(shown, note="; ".join(filter(None, (technical, note))))
