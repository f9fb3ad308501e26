"""What is printed after a run, beside the scores in words: a table of the main ones, and why some are missing."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lm_eval_bias.core import Facts, answers, numbers
from lm_eval_bias.core.page_parts import Footnotes, numeric
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.wording import short
from lm_eval_bias.report import parts
from lm_eval_bias.report.tables import grid
from lm_eval_bias.runs import diagnostics

TABLES = ("main", "all", "none")  # what --table takes
_QUOTED = 80  # characters of an answer


def _how_to_read(scores: Sequence[Value]) -> str:
    """Say what scores' values mean, scores that read alike together."""
    pairs = []
    for score in scores:
        texts = (numbers.score_range(score), numbers.reads_as(score))
        pairs.append((", ".join(filter(None, texts)), score.name))
    alike = numbers.grouped(pairs)
    return " | ".join(f"{', '.join(names)}: {text}" for text, names in alike.items())


def _table(tasks: Sequence[TaskRun]) -> str:
    """Show the main scores of one benchmark's tasks, with their neutral values, and how to read them."""
    footnotes = Footnotes()
    scores, values = parts.side_by_side(tasks, footnotes)
    rows = []
    for task, cells in zip(tasks, values, strict=True):
        texts = [cell.whole for cell in cells]
        rows.append([task.task, f"{task.documents:,}", *texts])
    neutral = [numbers.bound(score.neutral, score.unit) for score in scores]
    rows.append(["(neutral, or best)", "", *neutral])
    columns = ["Task", *numeric("Items", *(score.name for score in scores))]
    lines = [grid(columns, rows), *footnotes.lines, _how_to_read(scores)]
    return "\n".join(lines)


def main_scores(tasks: Sequence[TaskRun]) -> str:
    """Show the main scores with their intervals, the tasks of each benchmark below each other.

    Args:
        tasks: Of one run.
    """
    groups = numbers.grouped((task.benchmark, task) for task in tasks)
    return "\n\n".join(map(_table, groups.values()))


def _unread(samples: Iterable[Facts]) -> Iterator[str]:
    """Yield the beginnings of answers that couldn't be read, each once, in quotation marks."""
    seen = set()
    for sample in samples:
        for text, read in answers.written(sample["resps"], sample["filtered_resps"]):
            first_line = text.strip().partition("\n")[0]
            quoted = json.dumps(short(first_line, _QUOTED), ensure_ascii=False)
            if read in answers.UNANSWERED and quoted not in seen:
                seen.add(quoted)
                yield quoted


def unanswered(tasks: Sequence[TaskRun], samples: Mapping[str, Sequence[Facts]]) -> str:
    """Say how many written answers couldn't be read and how many are refusals, and quote two of them.

    Args:
        tasks: Of one run.
        samples: What the harness logs of each task's documents.
    """
    lines = []
    all_read = []
    for task in tasks:
        for one in diagnostics.about_texts(task):
            lines.append(f"{task.task}: {one.message}")
        share = task.scores.get("unanswered")
        refused = task.scores.get("refused")
        if share is None or refused is None or math.isnan(share.value):
            continue
        if not share.value:
            all_read.append(task.task)
            continue
        unread = numbers.number(share.value, share.unit)
        refusals = numbers.number(refused.value, refused.unit)
        text = f"{task.task}: {unread} of the answers couldn't be read, {refusals} are refusals"
        quoted = itertools.islice(_unread(samples.get(task.task, ())), 2)
        text += f", such as {', '.join(quoted)}"
        lines.append(text)
    if all_read:
        lines.append(f"Every answer could be read: {numbers.join_some(all_read)}")
    return "\n".join(lines)


def notes(tasks: Sequence[TaskRun], everything: bool, words: str) -> str:
    """Say why scores or their intervals are missing, and what to beware of; a line a reason.

    Args:
        tasks: Of one run.
        everything: Whether about all scores; else about the main ones, and how many others there are.
        words: What is said of them elsewhere, which isn't repeated.
    """
    about = []
    others = 0
    for task in tasks:
        main = {value.name: value for value in task.shown()}
        for value in {**main, **task.scores}.values():
            lacks = ""
            if math.isnan(value.value):
                lacks = "not computable"
            elif not value.interval:
                lacks = "no interval"
            if not everything and value.name not in main:
                others += bool(value.note and lacks)
            elif value.note and value.note not in words:
                key = lacks or "beware", value.note
                about.append((key, (value.name, task.task)))
    lines = []
    for (lacks, note), places in numbers.grouped(about).items():
        which, where = map(numbers.join_some, zip(*places, strict=True))
        lines.append(f"{lacks}: {which} of {where} ({note})")
    if others:
        have = "score has" if others == 1 else "scores have"
        lines.append(
            f"{others:,} other {have} no value or no interval (--table all says why)"
        )
    return "\n".join(lines)
