"""Citations of what a run rests on: its benchmarks, those that they go back to, the harness and this package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lm_eval_bias.core import Facts, __version__
from lm_eval_bias.core.benchmark import Benchmark, Card, UnknownBenchmark, card_of
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import packaged_yaml
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.report import provenance_facts
from lm_eval_bias.runs import measurement, rescoring
from lm_eval_bias.runs.harness_results import presentable

_HARNESS = {
    "title": "The Language Model Evaluation Harness",
    "author": "Gao, Leo and Tow, Jonathan and Abbasi, Baber and Biderman, Stella and others",
    "year": "2024",
    "doi": "10.5281/zenodo.12608602",
    "url": "https://github.com/EleutherAI/lm-evaluation-harness",
}

YEAR = "2026"  # of this package's release
UNTOLD = ""  # in place of a statistic's name, where no file says it


@dataclass(frozen=True)
class Citation:
    """An entry of a bibliography.

    Attributes:
        kind: BibTeX's type.
        key: What it is cited by.
        fields: Its fields.
        about: What stands above it, such as a licence.
    """

    kind: str
    key: str
    fields: Mapping[str, str]
    about: str = ""


def entry(key: str, fields: Mapping[str, str], about: str = "") -> Citation:
    """Make an entry, whose type follows from where it was published.

    >>> made = entry("a", {"title": "A", "howpublished": "Transactions of the ACL 12"})
    >>> made.kind, made.fields["journal"], made.fields["volume"]
    ('article', 'Transactions of the ACL', '12')
    """
    given = dict(fields)
    place = given.pop("howpublished", "")
    if place.startswith("arXiv:"):
        given |= {"eprint": place.removeprefix("arXiv:"), "archiveprefix": "arXiv"}
        return Citation("misc", key, given, about)
    journal = re.fullmatch(r"(Transactions .*?) (\d+)", place)
    if journal:
        given |= {"journal": journal[1], "volume": journal[2]}
        return Citation("article", key, given, about)
    if place:
        return Citation("inproceedings", key, {**given, "booktitle": place}, about)
    kind = (
        "book" if "publisher" in given else "article" if "journal" in given else "misc"
    )
    return Citation(kind, key, given, about)


def of_card(name: str, card: Card) -> list[Citation]:
    """List a benchmark's paper, and that of the benchmark that it goes back to."""
    key = name.replace("_", "-")
    link = {"url": card.link} if card.link else {}
    found = []
    if card.citation:
        licence = f"Data: {card.licence}" if card.licence else ""
        found.append(entry(key, {**card.citation, **link}, licence))
    if card.origin:
        author = card.origin["author"].partition(",")[0].lower()
        found.append(entry(f"{author}-{card.origin['year']}", card.origin))
    return found


def of_benchmarks(benchmarks: Iterable[Benchmark]) -> list[Citation]:
    """List what some benchmarks are cited by, each paper once."""
    found: dict[str, Citation] = {}
    for benchmark in benchmarks:
        card = card_of(benchmark)
        for one in of_card(benchmark.name, card) if card else ():
            found.setdefault(one.key, one)
    return list(found.values())


def title_of(benchmark: Benchmark) -> str:
    """Name a benchmark, or a variant by what it belongs to."""
    return benchmark.title or benchmark.family.title or benchmark.name


def _values(task: TaskRun) -> list[Value]:
    """Return a task's shown scores; of an older file that doesn't say how, computed again where answers are saved."""
    shown = task.shown()
    untold = [value for value in shown if value.interval and not value.statistics]
    if not task.is_saved or not untold:
        return shown
    with suppress(BiasError):
        computed = rescoring.recompute(task)
        return [computed.get(value.name, value) for value in shown]
    return shown


def _named(benchmark: Benchmark, values: Sequence[Value], over: bool) -> str:
    """Name scores of a benchmark, perhaps with how many clusters they rest on."""
    names = ", ".join(dict.fromkeys(value.name for value in values))
    counts = sorted(value.clusters for value in values if value.clusters)
    if over and counts:
        ends = dict.fromkeys((counts[0], counts[-1]))
        names += f"; {' to '.join(map(str, ends))} {benchmark.clusters}"
    return f"{title_of(benchmark)} ({names})"


def statistics_of(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Name what errors, intervals and tests of runs are made by, each with the shown scores that rest on it.

    Of parts of the items where answers are saved, of differences and ranks where runs measured the same. The key
    :data:`UNTOLD` has the scores of which no file says it.
    """
    tasks = [task for run in presentable(runs) for task in run.tasks.values()]
    used = []
    for task in tasks:
        for value in _values(task):
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
    """Name what parts of the items, differences between runs and ranks are made by."""
    names = ["sidak"] * any(task.is_saved for task in tasks)
    same = grouped((measurement.rank_group(task), task) for task in tasks)
    logged = [
        all(task.is_saved for task in alike)
        for alike in same.values()
        if len(alike) > 1
    ]
    names += ["paired"] * any(logged) + ["welch"] * (not all(logged))
    return [*names, *("holm", "ranks") * bool(logged)]


def known_statistics() -> Facts:
    """Read what errors, intervals and tests are made by, and the papers that they are from."""
    return packaged_yaml("lm_eval_bias.custom_metrics", "statistics.yaml")


def _of_statistics(names: Iterable[str]) -> list[Citation]:
    known = known_statistics()
    keys = [
        key
        for name in names
        for key in known["statistics"].get(name, {}).get("cites", ())
    ]
    return [entry(key, known["references"][key]) for key in dict.fromkeys(keys)]


def of_runs(runs: Iterable[Run]) -> list[Citation]:
    """List what runs are cited by: benchmarks, the harness in its release, this package, and papers on statistics."""
    runs = list(runs)
    families = dict.fromkeys(
        task.definition.family for run in runs for task in run.tasks.values()
    )
    known = [one for one in families if not isinstance(one, UnknownBenchmark)]
    codes = [run.record.code for run in runs]
    harness = ", ".join(dict.fromkeys(c.lm_eval for c in codes if c.lm_eval))
    own = ", ".join(dict.fromkeys(c.lm_eval_bias or __version__ for c in codes))
    package = {
        "title": "lm-eval-bias",
        "author": "{the lm-eval-bias authors}",
        "year": YEAR,
    }
    address, installed = provenance_facts.installed_from()
    if installed and own == __version__:
        package |= {"url": address}
        own += f", {installed}"
    return [
        *of_benchmarks(known),
        entry(
            "lm-eval-harness", {**_HARNESS, "note": f"Version {harness or 'unknown'}"}
        ),
        Citation(
            "misc", "lm-eval-bias", {**package, "note": f"Version {own}"}, "Code: MIT"
        ),
        *_of_statistics(statistics_of(runs)),
    ]
