"""What pages call a score: its benchmark's words for it, with the technical name beside them where it is asked for."""

from __future__ import annotations

from lm_eval_bias import registry


def label(benchmark: str, score: str) -> str:
    """What people call a score; its technical name where this version doesn't know the benchmark.

    Args:
        benchmark: A benchmark or variant, as a task's metadata name it.
        score: The technical name.
    """
    known = registry.by_name().get(benchmark)
    return known.score_label(score) if known else score
