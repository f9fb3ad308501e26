"""What there is: tasks, their scores and suites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.numbers import bound, count, score_range
from lm_eval_bias.core.page_parts import Column
from lm_eval_bias.report.tables import grid


def _scores(benchmarks: Iterable[str], style: str) -> str:
    """How to read the headline scores of some benchmarks."""
    scores = [score for benchmark in benchmarks for score in catalog.headline(benchmark)]
    rows = [[score.name, score_range(score, " … "), bound(score.neutral), score.direction] for score in scores]
    neutral = Column("Neutral", numeric=all(score.neutral is not None for score in scores))
    return grid(["Score", "Range", neutral, "Reads as"], rows, style)


def legend(configs: Iterable[Mapping[str, Any]]) -> str:
    """A table of how to read the scores of the benchmarks of these tasks; empty if none is ours.

    Args:
        configs: The tasks' ``configs`` in the harness's results.
    """
    names = [(config.get("metadata") or {}).get("benchmark") for config in configs]
    benchmarks = dict.fromkeys(name for name in names if name in registry.by_name())
    return _scores(benchmarks, "github") if benchmarks else ""


def tasks() -> str:
    """All tasks and groups, and the scores of each benchmark."""
    entries = catalog.entries().values()
    blocks = [
        grid(
            ["Name", "Kind", "Benchmark", "Lang", Column("Items", True), "Measures"],
            [[e.name, e.kind, e.benchmark, e.language, count(e.items), e.measures] for e in entries],
        )
    ]
    for benchmark in dict.fromkeys(e.benchmark for e in entries):
        blocks.append(f"Scores of {benchmark}\n{_scores([benchmark], 'simple')}")
    return "\n\n".join(blocks)


def suites(listing: Iterable[Mapping[str, Any]]) -> str:
    """Suites as tables, from what :func:`lm_eval_bias.evaluation.suites.listing` says of them."""
    blocks = []
    for suite in listing:
        rows = [
            [
                task,
                count(part["documents"]),
                count(part["requests"]),
                f"chosen by {part['rule']}" if part["rule"] else "all",
            ]
            for task, part in suite["tasks"].items()
        ]
        rows.append(["in all", count(suite["documents"]), count(suite["requests"]), ""])
        blocks.append(
            f"{suite['name']} (version {suite['version']}): {suite['purpose']}\nNot in it: {suite['leaves_out']}\n"
            + grid(["Task", Column("Items", True), Column("Requests", True), "Which"], rows)
        )
    return "\n\n".join(blocks)
