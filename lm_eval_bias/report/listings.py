"""What there is: tasks, their scores and suites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from textwrap import shorten
from typing import Any

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.numbers import aim, count, score_range
from lm_eval_bias.core.page_parts import Column
from lm_eval_bias.report import cards
from lm_eval_bias.report.tables import grid


def _scores(benchmarks: Iterable[str], style: str) -> str:
    """How to read the headline scores of some benchmarks."""
    scores = [score for benchmark in benchmarks for score in catalog.headline(benchmark)]
    rows = [[score.name, score_range(score, " … "), aim(score), score.direction] for score in scores]
    return grid(["Score", "Range", "Neutral or best", "Reads as"], rows, style)


def legend(configs: Iterable[Mapping[str, Any]]) -> str:
    """A table of how to read the scores of the benchmarks of these tasks; empty if none is ours.

    Args:
        configs: The tasks' ``configs`` in the harness's results.
    """
    names = [(config.get("metadata") or {}).get("benchmark") for config in configs]
    benchmarks = dict.fromkeys(name for name in names if name in registry.by_name())
    return _scores(benchmarks, "github") if benchmarks else ""


def benchmarks() -> str:
    """A line per benchmark, our own and other packages' first, then those whose tasks are the harness's own."""
    entries = catalog.entries().values()
    rows = []
    for benchmark in registry.benchmarks():
        own = [e for e in entries if registry.family(e.benchmark) is benchmark]
        tasks = [e for e in own if e.kind == "task"]
        languages = ", ".join(dict.fromkeys(e.language for e in tasks if e.language))
        measures = benchmark.card.measures if benchmark.card else benchmark.title
        is_harness = all(e.path is None for e in own)
        rows.append(
            (is_harness, [benchmark.name, languages, count(len(tasks)), shorten(measures, 90, placeholder=" …")])
        )
    listing = grid(
        ["Benchmark", "Lang", Column("Tasks", True), "Measures"],
        [row for _, row in sorted(rows, key=itemgetter(0))],
    )
    return (
        f"{listing}\n\nls NAME lists a benchmark's tasks and scores, ls --card NAME prints its card, ls --suites lists "
        "the suites, ls --all every task."
    )


def tasks(name: str = "") -> str:
    """All tasks and groups, and the scores of each benchmark.

    Args:
        name: Of a benchmark, a variant, a task or a group: lists its benchmark's alone.

    Raises:
        BiasError: There is none of that name.
    """
    only = cards.family_of(name) if name else None
    entries = [e for e in catalog.entries().values() if only is None or registry.family(e.benchmark) is only]
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
