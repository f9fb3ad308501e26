"""One task's items: as tables, and one in words, as pages show it."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.core import Data
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.report import templates
from lm_eval_bias.report.outputs import Output
from lm_eval_bias.runs.items import Item, items


def row(item: Item) -> Data:
    """Return an item as a flat row: key, facets, prompt, answers, record, and what it adds to each score."""
    found: Data = {"key": item.key, **item.facets, "prompt": item.prompt}
    if item.written:
        texts, readings = zip(*item.written, strict=True)
        found |= {"text": "\n\n".join(texts), "extracted": "\n\n".join(readings)}
    return {**found, **item.record, **item.contributions}


def answer(item: Item) -> str:
    """List an item's answers: texts with extracted answers, or scored texts with their numbers."""
    if item.written:
        return "\n".join(f"{text!r} → {read}" for text, read in item.written)
    return "\n".join(f"{text!r}: {number}" for text, number in item.asked)


def as_text(run: Run, task: TaskRun, item: Item) -> str:
    """Write all that is known of an item."""
    return templates.render(
        "item.txt.j2", run=run, task=task, item=item, answer=answer(item)
    )


class ItemsReport(Output):
    """A task's items with their answers.

    Attributes:
        task: A run's task, with a sample log.
    """

    formats = ("csv", "json")

    def __init__(self, task: TaskRun) -> None:
        """Take the task."""
        self.task = task

    def records(self) -> Iterator[Data]:
        """Yield the items, in the log's order."""
        return map(row, items(self.task))
