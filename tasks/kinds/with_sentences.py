"""Benchmarks whose parts lie in modules beside theirs, which are imported when they are needed."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import Facts, run_data
from lm_eval_bias.core.benchmark import (
    Benchmark,
    Document,
    Documents,
    HarnessTasks,
    ItemKey,
    Presentation,
    Size,
)
from lm_eval_bias.core.files import packaged_text
from lm_eval_bias.core.planting import BiasPlan, choices

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Answers, Record, Score


def deferred(name: str) -> Callable[..., Any]:
    """Make a function that imports another one (``tasks.regard.hooks:record``) when it is called."""

    def call(*arguments: Any) -> Any:
        return pkgutil.resolve_name(f"lm_eval_bias.{name}")(*arguments)

    return call


def module_of(benchmark: Benchmark, name: str) -> Any:
    """Import a module beside that of a benchmark, when it is needed: ``hooks``, ``sentences``, ..."""
    return importlib.import_module(
        f"{type(benchmark).__module__.rpartition('.')[0]}.{name}"
    )


def harness_tasks(
    package: str, options: Callable[[Document, str], Sequence[str]]
) -> HarnessTasks:
    """Read which tasks of the harness a benchmark describes: ``data/harness_tasks.json`` in its folder."""
    tasks = json.loads(packaged_text(package, "data/harness_tasks.json"))
    return HarnessTasks(tasks, options)


class WithModules(Benchmark):
    """A benchmark whose records and scores are made in other modules.

    Attributes:
        identity: The fields of a document that make it the same item in another run.
        requests: How many each document makes.
        smallest: The smallest useful ``--limit``; ``None`` where that isn't known.
        recorded_by: Module beside its own, and function, that makes its records.
        scored_by: Module of :mod:`lm_eval_bias.custom_metrics`, and function, that lists its scores; by default
            ``scores`` of the module with its name.
    """

    identity: Sequence[str] = ("id",)
    requests: int | None = None
    smallest: int | None = None
    recorded_by = "hooks:record"
    scored_by = ""

    def record(self, doc: Any, answers: Answers) -> Record:
        """Make the record of a document and its answers."""
        module, _, function = self.recorded_by.partition(":")
        record: Record = getattr(module_of(self, module), function)(doc, answers)
        return record

    def scores(self, docs: Documents = ()) -> list[Score]:
        """Return its scores."""
        name = self.scored_by or f"{self.name}:scores"
        scores: list[Score] = deferred(f"custom_metrics.{name}")(docs)
        return scores

    def key(self, doc: Document) -> ItemKey:
        """Return the fields of its identity; empty texts where they are absent."""
        return tuple(str(doc.get(field, "")) for field in self.identity)

    def size(self, metadata: Facts) -> Size:
        """Return as many documents as the task's YAML says."""
        return Size(metadata.get("n_items"), self.requests, self.smallest)


class WithSentences(WithModules):
    """A benchmark whose folder has a module for each of its parts.

    These are ``hooks`` (``record``), ``sentences`` (``sentences``, ``cautions``, perhaps ``withheld``),
    ``planted_answers`` (``answers``, ``expected``, perhaps ``random_texts``), and ``figures`` (``parts``).
    """

    @property
    def planting(self) -> BiasPlan:  # type: ignore[override]  # imported when it is needed
        """What ``bias-dial`` and ``bias-chance`` answer."""
        planted = module_of(self, "planted_answers")
        return BiasPlan(
            planted.answers, planted.expected, getattr(planted, "random_texts", choices)
        )

    @property
    def presentation(self) -> Presentation:  # type: ignore[override]
        """Sentences, and figures where there are any; what the paper's tables print (``results/published``)."""
        words = module_of(self, "sentences")
        withheld = getattr(words, "withheld", Presentation().withheld)
        return Presentation(
            words.sentences,
            words.cautions,
            withheld,
            lambda tasks: module_of(self, "figures").parts(tasks),
            partial(run_data.published, self.name),
        )
