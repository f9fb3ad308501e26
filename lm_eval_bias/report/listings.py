"""What there is: benchmarks with their cards, tasks with their scores, and suites."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from lm_eval_bias.core import Data, Facts, catalog, registry
from lm_eval_bias.core.benchmark import Benchmark, Card, card_of, facet_names
from lm_eval_bias.core.errors import BadOption, BiasError, did_you_mean
from lm_eval_bias.core.files import packaged_yaml
from lm_eval_bias.core.numbers import (
    count,
    join_some,
    reads_as,
    score_range,
    target_text,
)
from lm_eval_bias.core.page_parts import numeric
from lm_eval_bias.report import templates
from lm_eval_bias.report.tables import grid

_FOLDED = ("population", "languages", "size", "licence", "flaws", "use", "misuse")


def labels(kind: str) -> dict[str, str]:
    """Return labels by name, of ``card`` fields, ``provenance`` or ``warnings``."""
    return packaged_yaml("lm_eval_bias.report", "labels.yaml")[kind]


def card_lines(card: Card, field: str) -> Sequence[str]:
    """List a card field's sentences; none if nothing was written."""
    value = getattr(card, field)
    return [value] if value and isinstance(value, str) else list(value)


def card_details(card: Card) -> list[tuple[str, Sequence[str]]]:
    """List the fields that pages fold away, as far as they were written: label and sentences."""
    return [
        (labels("card")[field], card_lines(card, field))
        for field in _FOLDED
        if card_lines(card, field)
    ]


def family_of(name: str) -> Benchmark:
    """Return the benchmark of that name, or the one that a variant, task or group of that name belongs to.

    Raises:
        BiasError: There is none.
    """
    entry = catalog.entries().get(name)
    benchmark = entry.definition.family if entry else registry.family(name)
    if benchmark is None:
        names = dict.fromkeys([*registry.by_name(), *catalog.entries()])
        known = ", ".join(benchmark.name for benchmark in registry.benchmarks())
        raise BiasError(
            f"no benchmark or task is called {name!r}.{did_you_mean(name, names)} Benchmarks: {known}"
        )
    return benchmark


def with_card(name: str) -> tuple[Benchmark, Card]:
    """Return the benchmark of that name, as :func:`family_of` does, and its card.

    Raises:
        BiasError: There is none, or it has no card.
    """
    benchmark = family_of(name)
    card = card_of(benchmark)
    if card is None:
        raise BiasError(
            f"{benchmark.name} has no card: what it measures, and what it can't say, isn't recorded"
        )
    return benchmark, card


def card_data(benchmark: Benchmark, card: Card) -> Data:
    """Turn a card into plain data with all of its fields; ``None`` for those that weren't written."""
    fields = card._asdict()
    return {
        "benchmark": benchmark.name,
        "title": benchmark.heading,
        **{name: fields[name] or None for name in labels("card")},
        "facets": facet_names(benchmark),
    }


def card_text(benchmark: Benchmark, card: Card) -> str:
    """Write a card for the terminal, wrapped."""
    facets = ", ".join(facet_names(benchmark))
    fields = [
        (label, card_lines(card, field)) for field, label in labels("card").items()
    ]
    return templates.render(
        "card.txt.j2", benchmark=benchmark, fields=fields, facets=facets
    )


def _scores(benchmark: Benchmark) -> str:
    """Make a table of how to read a benchmark's headline scores."""
    rows = [
        [score.name, score_range(score, " … "), target_text(score), reads_as(score)]
        for score in catalog.headline(benchmark)
    ]
    return grid(["Score", "Range", "Neutral or best", "Reads as"], rows)


def benchmarks() -> str:
    """List the benchmarks."""
    rows = []
    for benchmark in registry.benchmarks():
        tasks = [one for one in entries(benchmark.name) if one.kind == "task"]
        languages = dict.fromkeys(task.language for task in tasks if task.language)
        card = card_of(benchmark)
        purpose = card.measures if card else benchmark.title
        measures = textwrap.shorten(purpose, 90, placeholder=" …")
        row = [benchmark.name, join_some(languages), count(len(tasks)), measures]
        rows.append(row)
    listing = grid(["Benchmark", "Lang", *numeric("Tasks"), "Measures"], rows)
    return (
        f"{listing}\n\nls NAME lists a benchmark's tasks and scores, ls --card NAME prints its card, ls --suites lists "
        "the suites, ls --all every task."
    )


def entries(name: str = "", languages: Sequence[str] = ()) -> list[catalog.Entry]:
    """List tasks and groups.

    Args:
        name: Of a benchmark, a variant, a task or a group: its benchmark's alone.
        languages: ISO 639-1 codes; all if empty.

    Raises:
        BiasError: There is none of that name, or in one of these languages.
    """
    found = list(catalog.entries().values())
    if name:
        family = family_of(name)
        found = [entry for entry in found if entry.definition.family is family]
    spoken = {code for entry in found for code in entry.language.split(", ")}
    for code in languages:
        if code not in spoken:
            have = ", ".join(sorted(filter(None, spoken)))
            raise BadOption("language", code, f"no task has it, only {have}")
    if languages:
        wanted = set(languages)
        found = [entry for entry in found if wanted & {*entry.language.split(", ")}]
    return found


def tasks(entries: Sequence[catalog.Entry]) -> str:
    """List tasks and groups, and the scores of each benchmark."""
    columns = [
        "Name",
        "Kind",
        "Benchmark",
        "Lang",
        *numeric("Items", "Least"),
        "Measures",
    ]
    rows = [
        [
            entry.name,
            entry.kind,
            entry.benchmark,
            join_some(entry.language.split(", ")),
            count(entry.items),
            count(entry.smallest),
            entry.measures,
        ]
        for entry in entries
    ]
    blocks = [
        grid(columns, rows),
        "Least: the smallest useful --limit; with fewer items, scores have no intervals or aren't balanced.",
    ]
    for benchmark in dict.fromkeys(entry.definition for entry in entries):
        blocks.append(f"Scores of {benchmark.name}\n{_scores(benchmark)}")
    return "\n\n".join(blocks)


def suites(listing: Iterable[Facts]) -> str:
    """Show suites as tables, from :func:`lm_eval_bias.evaluation.suites.listing`."""
    columns = ["Task", *numeric("Items", "Requests"), "Which"]
    blocks = []
    for suite in listing:
        rows = []
        for name, part in suite["tasks"].items():
            which = part["rule"] or "all"
            rows.append([name, *_asked(part), which])
        rows.append(["in all", *_asked(suite), ""])
        block = f"{suite['name']} (version {suite['version']}): {suite['purpose']}\nNot in it: {suite['leaves_out']}\n"
        blocks.append(block + grid(columns, rows))
    return "\n\n".join(blocks)


def _asked(part: Facts) -> list[str]:
    return [count(part["documents"]), count(part["requests"])]
