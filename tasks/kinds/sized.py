"""What most benchmarks share: items named by fields, a size that YAMLs tell, sentences in a module of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from lm_eval_bias.core import Facts, run_data
from lm_eval_bias.core.benchmark import (
    Benchmark,
    Document,
    HarnessTasks,
    ItemKey,
    Presentation,
    Size,
)
from lm_eval_bias.core.files import packaged_text

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import Remark, TaskRun


class Sentences(Protocol):
    """A module that tells a benchmark's scores to people: see :class:`.core.benchmark.Presentation`."""

    def sentences(self, task: TaskRun, beside_tables: bool) -> Sequence[str]:
        """Say what a task's scores mean."""

    def cautions(self, task: TaskRun) -> Iterable[str | Remark]:
        """Say what to know before they are believed."""


def presented(name: str, words: Sentences) -> Presentation:
    """Tell scores by a module's sentences, beside those that the benchmark's paper prints (``results/published``)."""
    return Presentation(
        sentences=words.sentences,
        cautions=words.cautions,
        published=partial(run_data.published, name),
    )


def harness_tasks(
    package: str, options: Callable[[Document, str], Sequence[str]]
) -> HarnessTasks:
    """Read which tasks of the harness a benchmark describes: ``data/harness_tasks.json`` in its folder."""
    tasks = json.loads(packaged_text(package, "data/harness_tasks.json"))
    return HarnessTasks(tasks, options)


class SizedBenchmark(Benchmark):
    """A benchmark whose documents are named by fields, and whose YAMLs tell how many a task has.

    Attributes:
        identity: The fields of a document that make it the same item in another run.
        requests: How many each document makes.
        smallest: The smallest useful ``--limit``; ``None`` where that isn't known.
    """

    identity: Sequence[str] = ("id",)
    requests: int | None = None
    smallest: int | None = None

    def key(self, doc: Document) -> ItemKey:
        """Return the fields of its identity; empty texts where they are absent."""
        return tuple(str(doc.get(field, "")) for field in self.identity)

    def size(self, metadata: Facts) -> Size:
        """Return as many documents as the task's YAML says."""
        return Size(metadata.get("n_items"), self.requests, self.smallest)
