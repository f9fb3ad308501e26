"""Citations of what a run rests on: its benchmarks, those that they go back to, the harness and this package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from lm_eval_bias.core import Facts, __version__
from lm_eval_bias.core.benchmark import Benchmark, UnknownBenchmark, folder_of
from lm_eval_bias.core.files import packaged_text, packaged_yaml
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.report import provenance_facts, templates
from lm_eval_bias.report.escaping import Markup
from lm_eval_bias.runs import measurement
from lm_eval_bias.runs.harness_results import presentable

UNTOLD = ""  # in place of a statistic's name, where no file says it


def entries(bibliography: str) -> dict[str, str]:
    r"""Return the entries of BibTeX by key, each with the comments above it.

    >>> list(entries("% free\n@misc{a,\n  year = {1},\n}\n\n@book{b,\n}"))
    ['a', 'b']
    """
    found = {}
    for one in re.split(r"\n{2,}", bibliography.strip()):
        key = re.search(r"^@\w+\{([^,\s]+)", one, re.MULTILINE)
        if key:
            found[key[1]] = one
    return found


def of_benchmarks(benchmarks: Iterable[Benchmark]) -> dict[str, str]:
    """Return the citation keys of some benchmarks: their papers, and those they build on."""
    found: dict[str, str] = {}
    for benchmark in benchmarks:
        file = folder_of(benchmark) / "data" / "card.bib"
        if file.is_file():
            found |= entries(file.read_text(encoding="utf-8"))
    return found


def _named(benchmark: Benchmark, values: Sequence[Value], over: bool) -> str:
    """Name a benchmark's scores, perhaps with their number of clusters."""
    names = ", ".join(dict.fromkeys(value.name for value in values))
    counts = sorted(value.clusters for value in values if value.clusters)
    if over and counts:
        ends = dict.fromkeys((counts[0], counts[-1]))
        names += f"; {' to '.join(map(str, ends))} {benchmark.clusters}"
    return f"{benchmark.heading} ({names})"


def statistics_of(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Return the methods of the runs' errors, intervals and tests, each with its scores.

    Of parts of the items where answers are saved, of differences and ranks where runs measured the same. The key
    :data:`UNTOLD` has the scores of which no file says it.
    """
    tasks = [task for run in presentable(runs) for task in run.tasks.values()]
    used = []
    for task in tasks:
        for value in task.shown():
            names = value.statistics or [UNTOLD] * bool(value.interval)
            used += [((name, task.definition), value) for name in names]
    known = known_statistics()["statistics"]
    found: dict[str, list[str]] = {}
    for (name, benchmark), values in grouped(used).items():
        over = known.get(name, {}).get("over_clusters", False)
        found.setdefault(name, []).append(_named(benchmark, values, over))
    for name in _between(tasks):
        found.setdefault(name, [])
    return {name: found[name] for name in (*known, UNTOLD) if name in found}


def _between(tasks: Sequence[TaskRun]) -> list[str]:
    """Return the methods of facets, comparisons and ranks."""
    same = grouped((measurement.rank_group(task), task) for task in tasks).values()
    several = [alike for alike in same if len(alike) > 1]
    saved = [all(task.is_saved for task in alike) for alike in several]
    used = {
        "sidak": any(task.is_saved for task in tasks),
        "paired": any(saved),
        "welch": not all(saved),
        "holm": bool(saved),
        "ranks": bool(saved),
    }
    return [name for name, is_used in used.items() if is_used]


def known_statistics() -> Facts:
    """Read the table of statistical methods, with citation keys."""
    return packaged_yaml("lm_eval_bias.custom_metrics", "statistics.yaml")


def _of_statistics(names: Iterable[str]) -> dict[str, str]:
    known = known_statistics()["statistics"]
    text = packaged_text("lm_eval_bias.custom_metrics", "statistics.bib")
    written = entries(text)
    keys = [key for name in names for key in known.get(name, {}).get("cites", ())]
    return {key: written[key] for key in keys}


def of_runs(runs: Iterable[Run]) -> dict[str, str]:
    """Return the citation keys of runs: benchmarks, the harness's release, this package, and statistics papers."""
    runs = list(runs)
    families = dict.fromkeys(
        task.definition.family for run in runs for task in run.tasks.values()
    )
    known = [one for one in families if not isinstance(one, UnknownBenchmark)]
    codes = [run.record.code for run in runs]
    address, installed = provenance_facts.installed_from()
    software = templates.render(
        "software.tex.j2",
        harness=list(dict.fromkeys(c.lm_eval for c in codes if c.lm_eval)),
        own=list(dict.fromkeys(c.lm_eval_bias or __version__ for c in codes)),
        address=address,
        installed=installed,
    )
    return {
        **of_benchmarks(known),
        **entries(software),
        **_of_statistics(statistics_of(runs)),
    }


def bibtex(cited: Mapping[str, str]) -> Markup:
    """Join entries to a bibliography."""
    return Markup("\n\n".join(cited.values()))
