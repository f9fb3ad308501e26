"""What is printed after a run, beside the scores in words: a table of them, and which answers couldn't be read."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lm_eval_bias.core import Facts, answers, numbers
from lm_eval_bias.core.page_parts import Footnotes, numeric
from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.core.wording import short
from lm_eval_bias.report import parts
from lm_eval_bias.report.tables import grid
from lm_eval_bias.runs import diagnostics

TABLES = ("main", "all", "none")  # what --table takes
_QUOTED = 80  # characters of an answer


def scores(tasks: Sequence[TaskRun], which: str) -> str:
    """Make the table of scores: one line per task and score, with interval and reference.

    Args:
        tasks: Of one run.
        which: One of :data:`TABLES`.
    """
    if which == "none":
        return ""
    footnotes = Footnotes()
    rows = []
    named = [("", task) for task in tasks]
    chosen = parts.all_scores if which == "all" else TaskRun.shown
    for name, value, cells in parts.score_rows(named, footnotes, chosen):
        cell = cells[""].whole
        has_goal = value.neutral is not None or value.higher_is_better is not None
        goal = numbers.target_text(value) if has_goal else numbers.NONE
        rows.append([name, value.name, cell, goal])
    table = grid(["Task", "Score", *numeric("Value"), "Neutral, best"], rows)
    return "\n".join([table, *footnotes.lines])


def _unread(samples: Iterable[Facts]) -> Iterator[str]:
    """Yield the distinct beginnings of unparsed answers, quoted."""
    seen = set()
    for sample in samples:
        for text, read in answers.written(sample["resps"], sample["filtered_resps"]):
            first_line = text.strip().partition("\n")[0]
            quoted = json.dumps(short(first_line, _QUOTED), ensure_ascii=False)
            if read in answers.UNANSWERED and quoted not in seen:
                seen.add(quoted)
                yield quoted


def unanswered(tasks: Sequence[TaskRun], samples: Mapping[str, Sequence[Facts]]) -> str:
    """Describe truncated and blocked texts and the share of unparsed answers, and quote two of these.

    Args:
        tasks: Of one run.
        samples: What the harness logs of each task's documents.
    """
    lines = []
    for task in tasks:
        told = [one.message for one in diagnostics.about_texts(task)]
        share = task.scores.get("unanswered")
        quoted = list(itertools.islice(_unread(samples.get(task.task, ())), 2))
        if share is not None and quoted:
            unread = numbers.number(share.value, share.unit)
            examples = ", ".join(quoted)
            told.append(f"{unread} of the answers couldn't be read, such as {examples}")
        lines += [f"{task.task}: {text}" for text in told]
    return "\n".join(lines)
