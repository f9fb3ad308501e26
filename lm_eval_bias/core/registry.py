"""The benchmarks that are there: this package's own, and those of other distributions' entry points.

An entry point in the group ``lm_eval_bias.benchmarks`` names a benchmark object, such as
``my_package.benchmark:BENCHMARK``; this package's own are the packages of ``lm_eval_bias.tasks`` that have a module
``benchmark``. One that can't be loaded is named and left out.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata
from typing import TypeVar

from lm_eval_bias.core import __version__
from lm_eval_bias.core.benchmark import Benchmark, UnknownBenchmark
from lm_eval_bias.core.errors import (
    BiasError,
    call_plugin,
    did_you_mean,
    fault,
    kind_of,
)
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.run_data import Published

E = TypeVar("E")
GROUP = "lm_eval_bias.benchmarks"
OWN = f"lm-eval-bias {__version__}"


@lru_cache(maxsize=1)
def _found() -> dict[Benchmark, str]:
    """Load all benchmarks, with distribution and version; one that can't be loaded is a fault, and left out."""
    points = {
        f"lm_eval_bias.tasks.{p.parent.name}.benchmark": OWN
        for p in sorted(tasks_path().glob("*/benchmark.py"))
    }
    for point in metadata.entry_points(group=GROUP):
        points.setdefault(
            point.value, f"{point.dist.name} {point.dist.version}" if point.dist else ""
        )
    distributions = {}
    taken = set()
    for value, distribution in points.items():
        module, _, name = value.partition(":")
        try:
            benchmark = getattr(importlib.import_module(module), name or "BENCHMARK")
            if not isinstance(benchmark, Benchmark):
                raise BiasError(f"{value} is not an instance of lm_eval_bias.Benchmark")
            names = [member.name for member in _members(benchmark)]
            for name in names:
                if name in taken or names.count(name) > 1:
                    raise BiasError(f"another one is named {name}, too")
        except Exception as error:  # other people's code can fail in any way
            source = f" of {distribution}" if distribution else ""
            fault(
                f"the benchmark {value}{source} is left out ({kind_of(error)}): repair or uninstall it"
            )
            continue
        taken.update(names)
        distributions[benchmark] = distribution
    return distributions


@lru_cache(maxsize=1)
def benchmarks() -> tuple[Benchmark, ...]:
    """List all benchmarks in the order of listings, without their variants."""
    return tuple(
        sorted(_found(), key=lambda benchmark: (benchmark.place, benchmark.name))
    )


def distribution(benchmark: Benchmark) -> str:
    """Return the distribution of a benchmark or variant, with its version; empty if it is unknown."""
    return _found().get(benchmark.family, "")


def is_own(benchmark: Benchmark) -> bool:
    """Return whether a benchmark comes with this package."""
    return distribution(benchmark) == OWN


def _members(benchmark: Benchmark) -> tuple[Benchmark, ...]:
    return (benchmark, *benchmark.variants)


def place(benchmark: Benchmark) -> int:
    """Return a benchmark's place in pages: unknown ones come last."""
    listed = benchmarks()
    return listed.index(benchmark) if benchmark in listed else len(listed)


@lru_cache(maxsize=1)
def by_name() -> dict[str, Benchmark]:
    """Return all benchmarks and their variants, by name."""
    return {
        member.name: member
        for benchmark in benchmarks()
        for member in _members(benchmark)
    }


def extensions(kind: type[E]) -> list[tuple[Benchmark, E]]:
    """Return the benchmarks' extensions of a kind (``Command``, ``Rewriting``, ...), each with its benchmark."""
    return [
        (benchmark, extension)
        for benchmark in benchmarks()
        for extension in benchmark.extensions
        if isinstance(extension, kind)
    ]


def family(name: str) -> Benchmark | None:
    """Return the benchmark that a benchmark or variant of that name belongs to; ``None`` where it is unknown."""
    benchmark = by_name().get(name)
    return benchmark.family if benchmark else None


def get(name: str) -> Benchmark:
    """Return the benchmark or variant of that name.

    Raises:
        BiasError: There is none.
    """
    known = by_name()
    if name not in known:
        hint = did_you_mean(name, known)
        raise BiasError(f"no benchmark named {name!r}.{hint} Known: {', '.join(known)}")
    return known[name]


def of_run(name: str) -> Benchmark:
    """Return the benchmark or variant that a run names, or a stand-in for an unknown one."""
    earlier = (one for one in benchmarks() if name in one.earlier_names)
    return by_name().get(name) or next(earlier, UnknownBenchmark(name))


@lru_cache(maxsize=1)
def published() -> Mapping[str, list[Published]]:
    """Return all published rows by task name, in the order of the papers' tables."""
    rows: list[Published] = []
    for benchmark in benchmarks():
        rows += call_plugin((), benchmark, benchmark.presentation.published)
    return grouped((row.task, row) for row in rows)
