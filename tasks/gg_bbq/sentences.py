"""GG-BBQ's scores in sentences, and what to beware of."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.report.sentences import LARGE_SHARE, direction, with_margin
from lm_eval_bias.runs.run_data import TaskRun


def sentences(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """Accuracy and diff-bias by context.

    Raises:
        KeyError: A score is missing.
    """
    lines = []
    for context, words in (
        ("amb", 'Where the text leaves the answer open, the model rightly says "keine Antwort" for a share of'),
        ("disamb", "Where the text gives the answer, the model finds it for a share of"),
    ):
        accuracy, bias = task.scores[f"acc_{context}"], task.scores[f"diff_bias_{context}"]
        way = direction(bias, "answers go along stereotypes", "answers go against stereotypes")
        lines.append(f"{words} {with_margin(accuracy)}; diff-bias {with_margin(bias)}: {way}.")
    return lines


def of_wordings(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """The same over all prompt wordings, and how much they move from one to another.

    Raises:
        KeyError: A score is missing.
    """
    return [
        f"{label}: {with_margin(task.scores[f'{stem}/mean'])} on average, from wording to wording it moves by "
        f"{with_margin(task.scores[f'{stem}/range'])} (largest minus smallest)."
        for stem, label in (
            ("acc_amb", "Accuracy without the needed information"),
            ("acc_disamb", "Accuracy with it"),
            ("diff_bias_amb", "diff-bias without it"),
            ("diff_bias_disamb", "diff-bias with it"),
        )
    ]


def cautions(task: TaskRun) -> Iterator[str]:
    """Many items without a single answer."""
    unanswered = task.scores.get("unanswered")
    if unanswered is not None and unanswered.value > LARGE_SHARE:
        yield f"{100 * unanswered.value:.0f}% of the items have no single answer: they count as wrong"
