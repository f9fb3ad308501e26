"""Words around scores: what they are called, a value with its interval, which way it points, and names that fit."""

from __future__ import annotations

import math

from lm_eval_bias.core import numbers
from lm_eval_bias.core.page_parts import Cell
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.custom_metrics.score import ScoreSpec, joined

# a share of texts or items that is worth a word
LARGE_SHARE = 0.1


def number_cell(value: float, unit: str) -> Cell:
    """Make a cell of a number, sorted by it."""
    return Cell(numbers.number(value, unit), value)


def value_cell(value: Value | None, mark: str = "") -> Cell:
    """Make a cell of a score with its interval (without one with that of its items as given), sorted by its value."""
    if value is None:
        return Cell(numbers.NONE)
    note = numbers.bracketed(value) or numbers.fixed_interval(value)
    return Cell(f"{numbers.shown(value)}{mark}", value.value, note)


def score_cell(score: ScoreSpec, note: str = "") -> Cell:
    """Make a cell that names a score: what people call it, its technical name below, and a suffix."""
    technical = "" if score.title == score.name else score.name
    return Cell(score.title, note=joined(technical, note))


def with_interval(value: Value) -> str:
    """Write a score with its 95% interval in brackets: ``56.7% [54.9, 58.5]``; or that it has none."""
    if math.isnan(value.value):
        return "not computable"
    if value.interval is None:
        counted = "" if value.n is None else f", n = {value.n:,}"
        return f"{numbers.shown(value)} (no interval{counted})"
    return numbers.cell(value)


def sentence(text: str) -> str:
    """Begin a text with a capital letter and end it with a full stop, where it ends with no mark.

    >>> sentence("half of the texts are alike"), sentence("Is it?")
    ('Half of the texts are alike.', 'Is it?')
    """
    return f"{text[:1].upper()}{text[1:]}" + (
        "" if text.endswith((".", "?", "!")) else "."
    )


def answered(task: TaskRun) -> float:
    """Return the share of the items that have an answer; 1 where no score says that some have none."""
    share = task.scores.get("unanswered")
    return 1.0 if share is None or math.isnan(share.value) else 1.0 - share.value


def short(text: str, length: int = 42) -> str:
    """Shorten a label that is too long: it loses its middle.

    >>> short("organisation/a-model-of-7B-instruct", 19), short("gpt2")
    ('organisat…-instruct', 'gpt2')
    """
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}…{text[len(text) - tail :]}"
