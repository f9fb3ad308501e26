"""Benchmarks' cards for people: as text for the terminal, as data, and what pages fold away."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import Benchmark, Card
from lm_eval_bias.core.errors import BiasError, did_you_mean

_WIDTH = 100
UNWRITTEN = "not recorded"
_LABELS = {
    "measures": "Purpose", "population": "Population", "languages": "Languages", "size": "Size", "licence": "Licence",
    "cannot": "Can't say", "flaws": "Known flaws", "use": "Intended use", "misuse": "Misuse",
    "uncertainty": "Intervals", "differs": "Unlike the paper", "paper": "Paper", "link": "Link",
}  # fmt: skip
_FOLDED = ("population", "languages", "size", "licence", "flaws", "use", "misuse")


def lines(card: Card, field: str) -> Sequence[str]:
    """A field's sentences; empty where nothing was written."""
    value = getattr(card, field)
    return [value] if value and isinstance(value, str) else list(value)


def folded(card: Card) -> list[tuple[str, Sequence[str]]]:
    """What pages put behind a click, as far as it was written: label and sentences."""
    return [(_LABELS[field], lines(card, field)) for field in _FOLDED if lines(card, field)]


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
        raise BiasError(f"no benchmark or task is called {name!r}.{did_you_mean(name, names)} Benchmarks: {known}")
    return benchmark


def of(name: str) -> Benchmark:
    """The benchmark of that name, as :func:`family_of`.

    Raises:
        BiasError: There is none, or it has no card.
    """
    benchmark = family_of(name)
    if benchmark.card is None:
        raise BiasError(f"{benchmark.name} has no card: what it measures, and what it can't say, isn't recorded")
    return benchmark


def as_data(benchmark: Benchmark) -> dict[str, Any]:
    """A card with all of its fields; ``None`` for those that weren't written."""
    assert benchmark.card is not None
    fields = benchmark.card._asdict()
    return {
        "benchmark": benchmark.name,
        "title": benchmark.title or benchmark.name,
        **{name: (list(fields[name]) if name == "flaws" else fields[name]) or None for name in _LABELS},
    }


def text(benchmark: Benchmark) -> str:
    """A card for the terminal, wrapped."""
    assert benchmark.card is not None
    title = benchmark.title or benchmark.name
    blocks = [f"{title} ({benchmark.name})" if title != benchmark.name else title]
    for field, label in _LABELS.items():
        sentences = lines(benchmark.card, field) or [UNWRITTEN]
        wrapped = [
            textwrap.fill(
                sentence,
                _WIDTH,
                initial_indent="  - " if field == "flaws" else "  ",
                subsequent_indent="    " if field == "flaws" else "  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            for sentence in sentences
        ]
        blocks.append("\n".join([label, *wrapped]))
    return "\n\n".join(blocks) + "\n"
