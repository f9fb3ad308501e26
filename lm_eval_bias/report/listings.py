"""What there is: benchmarks with their cards, tasks with their scores, and suites."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import Benchmark, Card, card_of
from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.numbers import aim, count, reads_as, score_range
from lm_eval_bias.core.page_parts import Column
from lm_eval_bias.report.tables import grid

_WIDTH = 100
_LABELS = {
    "measures": "Purpose", "population": "Population", "languages": "Languages", "size": "Size", "licence": "Licence",
    "cannot": "Can't say", "flaws": "Known flaws", "use": "Intended use", "misuse": "Misuse",
    "uncertainty": "Intervals", "differs": "Unlike the paper", "paper": "Paper", "link": "Link",
}  # fmt: skip
_FOLDED = ("population", "languages", "size", "licence", "flaws", "use", "misuse")


def card_lines(card: Card, field: str) -> Sequence[str]:
    """A field's sentences; empty where nothing was written."""
    value = getattr(card, field)
    return [value] if value and isinstance(value, str) else list(value)


def card_details(card: Card) -> list[tuple[str, Sequence[str]]]:
    """What pages put behind a click, as far as it was written: label and sentences."""
    return [
        (_LABELS[field], card_lines(card, field))
        for field in _FOLDED
        if card_lines(card, field)
    ]


def family_of(name: str) -> Benchmark:
    """The benchmark of that name, or the one that a variant, task or group of that name belongs to.

    Raises:
        BiasError: There is none.
    """
    entry = catalog.entries().get(name)
    benchmark = registry.family(entry.benchmark if entry is not None else name)
    if benchmark is None:
        names = dict.fromkeys([*registry.by_name(), *catalog.entries()])
        known = ", ".join(benchmark.name for benchmark in registry.benchmarks())
        raise BiasError(
            f"no benchmark or task is called {name!r}.{did_you_mean(name, names)} Benchmarks: {known}"
        )
    return benchmark


def with_card(name: str) -> Benchmark:
    """The benchmark of that name, as :func:`family_of`.

    Raises:
        BiasError: There is none, or it has no card.
    """
    benchmark = family_of(name)
    if card_of(benchmark) is None:
        raise BiasError(
            f"{benchmark.name} has no card: what it measures, and what it can't say, isn't recorded"
        )
    return benchmark


def card_data(benchmark: Benchmark) -> dict[str, Any]:
    """A card with all of its fields; ``None`` for those that weren't written."""
    card = card_of(benchmark)
    assert card is not None
    fields = card._asdict()
    return {
        "benchmark": benchmark.name,
        "title": benchmark.title or benchmark.name,
        **{
            name: (list(fields[name]) if name == "flaws" else fields[name]) or None
            for name in _LABELS
        },
    }


def card_text(benchmark: Benchmark) -> str:
    """A card for the terminal, wrapped."""
    card = card_of(benchmark)
    assert card is not None
    title = benchmark.title or benchmark.name
    blocks = [f"{title} ({benchmark.name})" if title != benchmark.name else title]
    wrap = textwrap.TextWrapper(_WIDTH, break_long_words=False, break_on_hyphens=False)
    for field, label in _LABELS.items():
        wrap.initial_indent, wrap.subsequent_indent = (
            ("  - ", "    ") if field == "flaws" else ("  ", "  ")
        )
        blocks.append(
            "\n".join(
                [
                    label,
                    *map(wrap.fill, card_lines(card, field) or ["not recorded"]),
                ]
            )
        )
    return "\n\n".join(blocks) + "\n"


def _scores(benchmarks: Iterable[str], style: str) -> str:
    """How to read the headline scores of some benchmarks."""
    scores = [
        score for benchmark in benchmarks for score in catalog.headline(benchmark)
    ]
    rows = [
        [score.name, score_range(score, " … "), aim(score), reads_as(score)]
        for score in scores
    ]
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
        is_harness, card = all(e.path is None for e in own), card_of(benchmark)
        measures = textwrap.shorten(
            card.measures if card else benchmark.title, 90, placeholder=" …"
        )
        rows.append(
            (is_harness, [benchmark.name, languages, count(len(tasks)), measures])
        )
    shown = [row for _, row in sorted(rows, key=itemgetter(0))]
    listing = grid(["Benchmark", "Lang", Column("Tasks", True), "Measures"], shown)
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
    only = family_of(name) if name else None
    entries = [
        e
        for e in catalog.entries().values()
        if only is None or registry.family(e.benchmark) is only
    ]
    blocks = [
        grid(
            [
                "Name",
                "Kind",
                "Benchmark",
                "Lang",
                Column("Items", True),
                Column("Least", True),
                "Measures",
            ],
            [
                [
                    e.name,
                    e.kind,
                    e.benchmark,
                    e.language,
                    count(e.items),
                    count(e.smallest),
                    e.measures,
                ]
                for e in entries
            ],
        ),
        "Least: the smallest useful --limit; with fewer items, scores have no intervals or aren't balanced.",
    ]
    for benchmark in dict.fromkeys(e.benchmark for e in entries):
        blocks.append(f"Scores of {benchmark}\n{_scores([benchmark], 'simple')}")
    return "\n\n".join(blocks)


def suites(listing: Iterable[Mapping[str, Any]]) -> str:
    """Suites as tables, from what :func:`lm_eval_bias.evaluation.suites.listing` says of them."""
    blocks = []
    for suite in listing:
        which = [
            f"chosen by {part['rule']}" if part["rule"] else "all"
            for part in suite["tasks"].values()
        ]
        parts = zip(
            [*suite["tasks"], "in all"],
            [*suite["tasks"].values(), suite],
            [*which, ""],
            strict=True,
        )
        rows = [
            [name, count(part["documents"]), count(part["requests"]), chosen]
            for name, part, chosen in parts
        ]
        blocks.append(
            f"{suite['name']} (version {suite['version']}): {suite['purpose']}\nNot in it: {suite['leaves_out']}\n"
            + grid(
                ["Task", Column("Items", True), Column("Requests", True), "Which"], rows
            )
        )
    return "\n\n".join(blocks)
