"""Benchmarks that put their scores into words in a module of their own; some of them sample texts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from lm_eval_bias.core.benchmark import Benchmark, Size

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import Remark, TaskRun


class WithSentences(Benchmark):
    """A benchmark whose labels, sentences and cautions stand in one module."""

    @property
    @abstractmethod
    def words(self) -> Any:
        """The module with its ``score_label``, ``sentences`` and ``cautions``."""

    def score_label(self, score: str) -> str:
        """Put a score's name into words."""
        label: str = self.words.score_label(score)
        return label

    def sentences(self, task: TaskRun, beside_tables: bool = False) -> list[str]:
        """Say what a task's scores mean."""
        lines: list[str] = self.words.sentences(task, beside_tables)
        return lines

    def cautions(self, task: TaskRun) -> Iterable[str | Remark]:
        """Warn of what readers must know before they believe the scores."""
        found: Iterable[str | Remark] = self.words.cautions(task)
        return found


class SampledTexts(WithSentences):
    """A benchmark whose answers are sampled texts, each with what was read from it, such as its regard."""

    samples_texts: Literal["never", "always", "by default"] = "always"

    def size(self, metadata: Mapping[str, Any]) -> Size:
        """One request a prompt, which is repeated."""
        return super().size(metadata)._replace(requests=1)

    def read_answer(self, raw: Any) -> list[list[str]]:
        """Read a prompt's texts: ``[text, what was read, ...]`` each."""
        if not isinstance(raw, list) or not all(isinstance(row, list) and len(row) >= 2 for row in raw):
            raise ValueError("no list of texts with what they say")
        return [[str(part) for part in row] for row in raw]
