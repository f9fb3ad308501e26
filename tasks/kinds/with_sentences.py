"""Benchmarks whose parts lie in modules beside theirs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import run_data
from lm_eval_bias.core.benchmark import Benchmark, Documents, Presentation
from lm_eval_bias.core.planting import Planting, choices

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Record, Score


def module_of(benchmark: Benchmark, name: str) -> Any:
    """Import a module beside that of a benchmark, when it is needed: ``hooks``, ``sentences``, ..."""
    return importlib.import_module(
        f"{type(benchmark).__module__.rpartition('.')[0]}.{name}"
    )


class WithSentences(Benchmark):
    """A benchmark whose folder has a module for each of its parts.

    These are ``hooks`` (``record``), ``sentences`` (``sentences``, ``cautions``, perhaps ``withheld``),
    ``planted_answers`` (``answers``, ``expected``, perhaps ``random_texts``), and ``figures`` (``parts``).
    Its scores are those of the module of :mod:`lm_eval_bias.custom_metrics` with its name.
    """

    def record(self, doc: Any, answers: Sequence[Any]) -> Record:
        """Make the record of a document and its answers."""
        record: Record = module_of(self, "hooks").record(doc, answers)
        return record

    def scores(self, docs: Documents = ()) -> list[Score]:
        """Return the scores of the module with the benchmark's name."""
        scores: list[Score] = importlib.import_module(
            f"lm_eval_bias.custom_metrics.{self.name}"
        ).scores(docs)
        return scores

    @property
    def planting(self) -> Planting:  # type: ignore[override]  # imported when it is needed
        """What ``bias-dial`` and ``bias-chance`` answer."""
        planted = module_of(self, "planted_answers")
        return Planting(
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
