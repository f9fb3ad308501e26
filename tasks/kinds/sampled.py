"""What benchmarks have in common whose texts are sampled after prompts, and then classified by regard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lm_eval_bias.core.benchmark import Size
from lm_eval_bias.tasks.kinds.with_sentences import WithSentences


class SampledTexts(WithSentences):
    """A benchmark whose answers are sampled texts, each with its regard."""

    samples_texts: Literal["never", "always", "by default"] = "always"

    def size(self, metadata: Mapping[str, Any]) -> Size:
        """One request a prompt, which is repeated."""
        return Size(metadata.get("n_items"), 1)

    def read_answer(self, raw: Any) -> list[list[str]]:
        """A prompt's texts: ``[text, regard, probability, ...]`` each."""
        if not isinstance(raw, list) or not all(isinstance(row, list) and len(row) >= 2 for row in raw):
            raise ValueError("no list of classified texts")
        return [[str(part) for part in row] for row in raw]
