"""What is printed after a run, beside the scores in words: a table of the main ones, and why some are missing."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.core import answers, numbers
from lm_eval_bias.core.page_parts import Column
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.wording import short
from lm_eval_bias.report import parts
from lm_eval_bias.report.tables import grid

TABLES = ("main", "all", "none")  # what --table takes
_QUOTED = 80  # characters of an answer


def _how_to_read(scores: Sequence[Value]) -> str:
    """What scores' values mean, scores that read alike together."""
    alike: dict[str, list[str]] = {}
    for score in scores:
        text = ", ".join(
            filter(None, (numbers.score_range(score), numbers.reads_as(score)))
        )
        alike.setdefault(text, []).append(score.name)
    return " | ".join(f"{', '.join(names)}: {text}" for text, names in alike.items())


def _table(tasks: Sequence[TaskRun]) -> str:
    """The main scores of one benchmark's tasks, with their neutral values, and how to read them."""
    scores, values = parts.side_by_side(tasks)
    rows = [
        [task.task, f"{task.documents:,}", *(cell.whole for cell in own)]
        for task, own in zip(tasks, values, strict=True)
    ]
    rows.append(
        [
            "(neutral, or best)",
            "",
            *(numbers.bound(score.neutral, score.unit) for score in scores),
        ]
    )
    columns = [
        Column("Task"),
        Column("Items", True),
        *(Column(score.name, True) for score in scores),
    ]
    return f"{grid(columns, rows)}\n{_how_to_read(scores)}"


def main_scores(tasks: Sequence[TaskRun]) -> str:
    """The main scores with their intervals, the tasks of each benchmark below each other.

    Args:
        tasks: Of one run.
    """
    benchmarks = dict.fromkeys(task.benchmark for task in tasks)
    return "\n\n".join(
        _table([task for task in tasks if task.benchmark == name])
        for name in benchmarks
    )


def unanswered(
    tasks: Sequence[TaskRun], samples: Mapping[str, Sequence[Mapping[str, Any]]] | None
) -> str:
    """How many answers that models wrote could not be read and how many of them refuse, with two of them.

    Args:
        tasks: Of one run.
        samples: What the harness logs of each task's documents; ``None`` where nothing is logged.
    """
    lines, all_read = [], []
    for task in tasks:
        share, refused = (task.scores.get(name) for name in ("unanswered", "refused"))
        if share is None or refused is None or math.isnan(share.value):
            continue
        if not share.value:
            all_read.append(task.task)
            continue
        unread, refusals = (
            numbers.number(score.value, score.unit) for score in (share, refused)
        )
        text = f"{task.task}: {unread} of the answers couldn't be read, {refusals} are refusals"
        if samples is None:
            text += " (--log_samples shows them)"
        else:
            logged = (
                (one["resps"], one["filtered_resps"])
                for one in samples.get(task.task, ())
            )
            texts = (
                text
                for pair in logged
                for text, read in answers.written(*pair)
                if read in answers.UNANSWERED
            )
            quoted = (
                json.dumps(
                    short(text.strip().partition("\n")[0], _QUOTED), ensure_ascii=False
                )
                for text in texts
            )
            text += f", such as {', '.join(itertools.islice(dict.fromkeys(quoted), 2))}"
        lines.append(text)
    if all_read:
        lines.append(f"Every answer could be read: {numbers.few(all_read)}")
    return "\n".join(lines)


def notes(tasks: Sequence[TaskRun], everything: bool, words: str) -> str:
    """Why scores or their intervals are missing, and what to beware of; a line a reason.

    Args:
        tasks: Of one run.
        everything: Whether about all scores; else about the main ones, and how many others there are.
        words: What is said of them elsewhere, which isn't repeated.
    """
    about: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    others = 0
    for task in tasks:
        main = parts.main_names(task)
        for value in map(task.scores.__getitem__, dict.fromkeys([*main, *task.scores])):
            lacks = (
                "not computable"
                if math.isnan(value.value)
                else ""
                if value.interval
                else "no interval"
            )
            note = "" if value.note in words else value.note
            if not everything and value.name not in main:
                others += bool(value.note and lacks)
            elif note:
                names, tasks_of = about.setdefault((lacks or "beware", note), ({}, {}))
                names[value.name] = tasks_of[task.task] = None
    lines = [
        f"{lacks}: {numbers.few(list(names))} of {numbers.few(list(tasks_of))} ({note})"
        for (lacks, note), (names, tasks_of) in about.items()
    ]
    if others:
        have = "score has" if others == 1 else "scores have"
        lines.append(
            f"{others:,} other {have} no value or no interval (--table all says why)"
        )
    return "\n".join(lines)
