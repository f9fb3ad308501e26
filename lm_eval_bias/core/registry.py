"""The benchmarks that are there: this package's own, and those of other distributions' entry points.

An entry point in the group ``lm_eval_bias.benchmarks`` names a benchmark object, such as
``my_package.benchmark:BENCHMARK``; this package's own are the packages of ``lm_eval_bias.tasks`` that have a module
``benchmark``.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import metadata
from typing import TypeVar

from lm_eval_bias.core.benchmark import Benchmark
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.core.published_scores import Published

E = TypeVar("E")
GROUP = "lm_eval_bias.benchmarks"


def _packaged() -> Iterator[tuple[str, str]]:
    for path in sorted(tasks_path().glob("*/benchmark.py")):
        yield f"lm_eval_bias.tasks.{path.parent.name}.benchmark:BENCHMARK", "lm-eval-bias"


def _installed() -> Iterator[tuple[str, str]]:
    for point in metadata.entry_points(group=GROUP):
        yield point.value, point.dist.name if point.dist else "?"


def _load(value: str, distribution: str) -> Benchmark:
    module, _, name = value.partition(":")
    try:
        benchmark = getattr(importlib.import_module(module), name or "BENCHMARK")
    except Exception as error:  # other people's code can fail in any way
        raise BiasError(
            f"the benchmark {value} of {distribution} can't be loaded ({one_line(error)}): repair or uninstall it"
        ) from error
    if not isinstance(benchmark, Benchmark):
        raise BiasError(
            f"{value} of {distribution} is not an instance of lm_eval_bias.Benchmark: repair or uninstall it"
        )
    return benchmark


@lru_cache(maxsize=1)
def benchmarks() -> tuple[Benchmark, ...]:
    """All benchmarks in the order of listings, without their variants.

    Raises:
        BiasError: One that can't be loaded, or two of one name.
    """
    by_member: dict[str, Benchmark] = {}
    points = {value: distribution for value, distribution in (*_packaged(), *_installed())}  # some stand there twice
    for value, distribution in points.items():
        benchmark = _load(value, distribution)
        for name in (member.name for member in _members(benchmark)):
            if name in by_member:
                raise BiasError(f"two benchmarks are named {name} (the second: {value} of {distribution})")
            by_member[name] = benchmark
    return tuple(sorted(dict.fromkeys(by_member.values()), key=lambda benchmark: (benchmark.place, benchmark.name)))


def _members(benchmark: Benchmark) -> tuple[Benchmark, ...]:
    return (benchmark, *benchmark.variants)


@lru_cache(maxsize=1)
def by_name() -> dict[str, Benchmark]:
    """All benchmarks and their variants, by name."""
    return {member.name: member for benchmark in benchmarks() for member in _members(benchmark)}


def extensions(kind: type[E]) -> list[tuple[Benchmark, E]]:
    """What benchmarks add to commands, of one kind (``Command``, ``Rewriting``, ...), each with its benchmark."""
    return [(own, one) for own in benchmarks() for one in own.extensions if isinstance(one, kind)]


def family(name: str) -> Benchmark | None:
    """The benchmark that a benchmark or variant of that name belongs to; ``None`` where it is unknown."""
    return next((benchmark for benchmark in benchmarks() if by_name().get(name) in _members(benchmark)), None)


def get(name: str) -> Benchmark:
    """The benchmark or variant of that name.

    Raises:
        BiasError: There is none.
    """
    if name not in by_name():
        raise BiasError(f"no benchmark named {name!r}; known: {', '.join(by_name())}")
    return by_name()[name]


@lru_cache(maxsize=1)
def published() -> Mapping[str, list[Published]]:
    """All published rows by task name, in the order of the papers' tables."""
    rows: dict[str, list[Published]] = defaultdict(list)
    for benchmark in benchmarks():
        for row in benchmark.published():
            rows[row.task].append(row)
    return dict(rows)
