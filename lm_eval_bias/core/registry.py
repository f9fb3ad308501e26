"""The benchmarks that are there: this package's own, and those of other distributions' entry points.

An entry point in the group ``lm_eval_bias.benchmarks`` names a benchmark object, such as
``my_package.benchmark:BENCHMARK``; this package's own are the packages of ``lm_eval_bias.tasks`` that have a module
``benchmark``. One that can't be loaded is named and left out.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import metadata
from typing import TypeVar

from lm_eval_bias.core import __version__
from lm_eval_bias.core.benchmark import Benchmark
from lm_eval_bias.core.errors import BiasError, call_plugin, fault, kind_of
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.core.run_data import Published, TaskRun

E = TypeVar("E")
GROUP = "lm_eval_bias.benchmarks"
OWN = f"lm-eval-bias {__version__}"


@lru_cache(maxsize=1)
def _found() -> dict[Benchmark, str]:
    """Every benchmark, with its distribution's name and version; one that can't be loaded is a fault, and left out."""
    points = {
        f"lm_eval_bias.tasks.{p.parent.name}.benchmark": OWN
        for p in sorted(tasks_path().glob("*/benchmark.py"))
    }
    for point in metadata.entry_points(group=GROUP):
        points.setdefault(
            point.value, f"{point.dist.name} {point.dist.version}" if point.dist else ""
        )
    found: dict[Benchmark, str] = {}
    taken: set[str] = set()
    for value, distribution in points.items():
        module, _, name = value.partition(":")
        try:
            benchmark = getattr(importlib.import_module(module), name or "BENCHMARK")
            if not isinstance(benchmark, Benchmark):
                raise BiasError(f"{value} is not an instance of lm_eval_bias.Benchmark")
            names = [member.name for member in _members(benchmark)]
            if twice := next(
                (name for name in names if name in taken or names.count(name) > 1), ""
            ):
                raise BiasError(f"another one is named {twice}, too")
        except Exception as error:  # other people's code can fail in any way
            source = f" of {distribution}" if distribution else ""
            fault(
                f"the benchmark {value}{source} is left out ({kind_of(error)}): repair or uninstall it"
            )
            continue
        taken.update(names)
        found[benchmark] = distribution
    return found


@lru_cache(maxsize=1)
def benchmarks() -> tuple[Benchmark, ...]:
    """All benchmarks in the order of listings, without their variants."""
    return tuple(
        sorted(_found(), key=lambda benchmark: (benchmark.place, benchmark.name))
    )


def distribution(name: str) -> str:
    """The distribution that a benchmark or variant comes from, with its version; empty where that isn't known."""
    return next(
        (
            own
            for one, own in _found().items()
            if name in (member.name for member in _members(one))
        ),
        "",
    )


def is_own(benchmark: Benchmark) -> bool:
    """Whether a benchmark comes with this package."""
    return distribution(benchmark.name) == OWN


def _members(benchmark: Benchmark) -> tuple[Benchmark, ...]:
    return (benchmark, *benchmark.variants)


@lru_cache(maxsize=1)
def by_name() -> dict[str, Benchmark]:
    """All benchmarks and their variants, by name."""
    return {
        member.name: member
        for benchmark in benchmarks()
        for member in _members(benchmark)
    }


def extensions(kind: type[E]) -> list[tuple[Benchmark, E]]:
    """What benchmarks add to commands, of one kind (``Command``, ``Rewriting``, ...), each with its benchmark."""
    return [
        (own, one)
        for own in benchmarks()
        for one in own.extensions
        if isinstance(one, kind)
    ]


def family(name: str) -> Benchmark | None:
    """The benchmark that a benchmark or variant of that name belongs to; ``None`` where it is unknown."""
    return next(
        (
            benchmark
            for benchmark in benchmarks()
            if by_name().get(name) in _members(benchmark)
        ),
        None,
    )


def get(name: str) -> Benchmark:
    """The benchmark or variant of that name.

    Raises:
        BiasError: There is none.
    """
    if name not in by_name():
        raise BiasError(f"no benchmark named {name!r}; known: {', '.join(by_name())}")
    return by_name()[name]


def main_names(task: TaskRun) -> list[str]:
    """A task's main scores, as far as it has them; all where its benchmark names none."""
    benchmark = by_name().get(task.benchmark)
    return [
        name
        for name in (benchmark.main if benchmark else ()) or task.scores
        if name in task.scores
    ]


def withheld(name: str, task: TaskRun) -> str:
    """Why a task's scores must not be shown; empty if they may, or where the benchmark of that name isn't known."""
    benchmark = by_name().get(name)
    failed = "its benchmark can't say whether they may be shown"
    return (
        call_plugin(failed, benchmark, benchmark.presentation.withheld, task)
        if benchmark
        else ""
    )


@lru_cache(maxsize=1)
def published() -> Mapping[str, list[Published]]:
    """All published rows by task name, in the order of the papers' tables."""
    rows: dict[str, list[Published]] = defaultdict(list)
    for benchmark in benchmarks():
        own: Iterable[Published] = call_plugin(
            (), benchmark, benchmark.presentation.published
        )
        for row in own:
            rows[row.task].append(row)
    return dict(rows)
