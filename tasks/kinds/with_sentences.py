"""Benchmarks whose parts lie in modules beside theirs; some of them sample texts."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from lm_eval_bias.core import run_data
from lm_eval_bias.core.benchmark import Benchmark, Document, Size
from lm_eval_bias.core.planting import Planting, choices

if TYPE_CHECKING:
    from lm_eval_bias.core.page_parts import Part, ReportTask
    from lm_eval_bias.core.run_data import Published, Remark, TaskRun
    from lm_eval_bias.custom_metrics.score import Record, Score


def module_of(benchmark: Benchmark, name: str) -> Any:
    """Import a module beside that of a benchmark, when it is needed: ``hooks``, ``sentences``, ..."""
    return importlib.import_module(
        f"{type(benchmark).__module__.rpartition('.')[0]}.{name}"
    )


class WithSentences(Benchmark):
    """A benchmark whose folder has a module for each of its parts.

    These are ``hooks`` (``record``), ``sentences`` (``score_label``, ``sentences``, ``cautions``), ``planted_answers``
    (``answers``, ``expected``, perhaps ``random_texts``), and ``figures`` (``parts``).
    Its scores are those of the module of :mod:`lm_eval_bias.custom_metrics` with its name.
    """

    def record(self, doc: Any, answers: Sequence[Any]) -> Record:
        """Make the record of a document and its answers."""
        record: Record = module_of(self, "hooks").record(doc, answers)
        return record

    def scores(
        self, docs: Sequence[Document] = (), detailed: bool = False
    ) -> list[Score]:
        """Return the scores of the module with the benchmark's name."""
        scores: list[Score] = importlib.import_module(
            f"lm_eval_bias.custom_metrics.{self.name}"
        ).scores(docs, detailed)
        return scores

    @property
    def planting(self) -> Planting:
        """What ``bias-dial`` and ``bias-chance`` answer."""
        planted = module_of(self, "planted_answers")
        return Planting(
            planted.answers, planted.expected, getattr(planted, "random_texts", choices)
        )

    def score_label(self, score: str) -> str:
        """Put a score's name into words."""
        label: str = module_of(self, "sentences").score_label(score)
        return label

    def sentences(self, task: TaskRun, beside_tables: bool = False) -> list[str]:
        """Say what a task's scores mean."""
        lines: list[str] = module_of(self, "sentences").sentences(task, beside_tables)
        return lines

    def cautions(self, task: TaskRun) -> Iterable[str | Remark]:
        """Warn of what readers must know before they believe the scores."""
        found: Iterable[str | Remark] = module_of(self, "sentences").cautions(task)
        return found

    def figures(self, tasks: Sequence[ReportTask]) -> list[Part]:
        """Draw the benchmark's own figures and tables."""
        parts: list[Part] = module_of(self, "figures").parts(tasks)
        return parts

    def published(self) -> Iterable[Published]:
        """Return what the paper's tables print (``results/published``)."""
        return run_data.published(self.name)


class SampledTexts(WithSentences):
    """A benchmark whose answers are sampled texts, each with what was read from it, such as its regard."""

    samples_texts: Literal["never", "always", "by default"] = "always"

    def size(self, metadata: Mapping[str, Any]) -> Size:
        """One request a prompt, which is repeated."""
        return super().size(metadata)._replace(requests=1)

    def read_answer(self, raw: Any) -> list[list[str]]:
        """Read a prompt's texts: ``[text, what was read, ...]`` each."""
        if not isinstance(raw, list) or not all(
            isinstance(row, list) and len(row) >= 2 for row in raw
        ):
            raise ValueError("no list of texts with what they say")
        return [[str(part) for part in row] for row in raw]
