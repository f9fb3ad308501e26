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


def named(benchmark: str, score: str) -> tuple[str, str]:
    """What people call a score, and its technical name to stand beside it; empty where that is the same."""
    shown = label(benchmark, score)
    return shown, "" if shown == score else score
