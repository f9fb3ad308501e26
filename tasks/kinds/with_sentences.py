"""What benchmarks have in common that put their scores into words in a module of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core.benchmark import Benchmark

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import Remark, TaskRun


class WithSentences(Benchmark):
    """A benchmark whose labels, sentences and cautions stand in one module."""

    @property
    @abstractmethod
    def words(self) -> Any:
        """The module with its ``score_label``, ``sentences`` and ``cautions``."""

    def score_label(self, score: str) -> str:
        """What people call a score."""
        label: str = self.words.score_label(score)
        return label

    def sentences(self, task: TaskRun, beside_tables: bool = False) -> list[str]:
        """What a task's scores say."""
        lines: list[str] = self.words.sentences(task, beside_tables)
        return lines

    def cautions(self, task: TaskRun) -> Iterable[str | Remark]:
        """What readers must know before they believe the scores."""
        found: Iterable[str | Remark] = self.words.cautions(task)
        return found
