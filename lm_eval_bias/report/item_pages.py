"""One task's items: as a page to search and filter, as tables, and a single one in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from lm_eval_bias.core import Data
from lm_eval_bias.core.files import FORMATS
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.report import templates
from lm_eval_bias.report.outputs import Output
from lm_eval_bias.runs.items import Item, items

MANY = 20_000  # rows of a page


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
    """Write all that is known of an item, for a terminal."""
    return templates.render(
        "item.txt.j2", run=run, task=task, item=item, answer=answer(item)
    )


@dataclass(frozen=True)
class ItemsReport(Output):
    """A task's items with their answers.

    Attributes:
        run: The run.
        task: One of its tasks, with a sample log.
    """

    run: Run
    task: TaskRun
    formats = tuple(name for name in FORMATS if name in ("html", "json", "csv"))
    template = "items"

    @cached_property
    def items(self) -> list[Item]:
        """The items, in the log's order."""
        return list(items(self.task))

    def context(self) -> Mapping[str, object]:
        """Override."""
        facets = list(
            dict.fromkeys(name for item in self.items for name in item.facets)
        )
        scores = list(
            dict.fromkeys(name for item in self.items for name in item.contributions)
        )
        return {
            "run": self.run,
            "task": self.task,
            "items": self.items[:MANY],
            "number": len(self.items),
            "facets": facets,
            "scores": scores,
            "answer": answer,
            "warning": self.task.warning(),
        }

    def records(self) -> Iterable[Mapping[str, object]]:
        """Override."""
        return map(row, self.items)
