"""Pages of the reference that are written from the code: commands from parsers, scores from the catalogue, cards."""

from __future__ import annotations

import argparse
import os
import pkgutil

from lm_eval_bias.cli import main as commands
from lm_eval_bias.cli import run, signatures
from lm_eval_bias.core import catalog, comparability, numbers, registry
from lm_eval_bias.core.benchmark import card_of
from lm_eval_bias.report import listings


def pages() -> dict[str, str]:
    """Return the text of each page by its place in the site."""
    return {
        "reference/commands.md": commands_page(),
        "reference/scores.md": scores_page(),
        "reference/cards.md": cards_page(),
        "reference/comparable.md": comparable_page(),
    }


def _cell(text: str) -> str:
    """Write text into a table's cell, not taken for Markdown or HTML."""
    for sign in "\\`*_[]":
        text = text.replace(sign, "\\" + sign)
    for sign, entity in (("<", "&lt;"), (">", "&gt;"), ("|", "&#124;")):
        text = text.replace(sign, entity)
    return " ".join(text.split())


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return every command's parser by its name, ``run`` first."""
    special = {name: one.function for name, one in commands.special_commands().items()}
    made = {"run": run.parser()}
    for name, address in sorted((commands.verbs() | special).items()):
        function = pkgutil.resolve_name(address)
        parser, _ = signatures.command(function, f"lm-eval-bias {name}")
        made.setdefault(name, parser)
    return made


def commands_page() -> str:
    """Write all commands with their options, as ``--help`` prints them."""
    os.environ["COLUMNS"] = "110"  # the width of argparse's lines
    lines = [
        "# Commands and options\n",
        "What `lm-eval-bias COMMAND --help` prints. Bad usage or input is one line on standard error and exit status "
        "2, and leaves nothing half-written.\n",
    ]
    for name, parser in parsers().items():
        lines.append(f"## {name}\n\n```text\n{parser.format_help().rstrip()}\n```\n")
    return "\n".join(lines)


_COUNTS = {
    "apart": "ranks apart",
    "same": "has to be the same",
    "known": "has to be the same where both say it",
    "refused": "not paired",
    "note": "paired, with a note",
    "both": "paired, with a note where both say it",
    "items": "the items decide",
    "allow": "a departure has to be allowed",
    "said": "is said",
    "other": "another model's",
}
_WHEN = {
    "sampled": ", where texts or examples are drawn",
    "generated": ", where texts are written",
}


def comparable_page() -> str:
    """Write which facts of a run count for what, from the table that the commands read."""
    columns = ("ranks", "joins", "pairs", "gate", "cache")
    lines = [
        "# What is comparable\n",
        "Which facts make two runs another measurement, for every command: whether a leaderboard ranks them apart, "
        "files are joined to one run, `compare` pairs answers, `check` needs an `allow:` of that name, and a file of "
        "`--use_cache` is another model's. Where a cell is empty, the fact doesn't count.\n",
        "| fact | leaderboard | one run | `compare` | `check` | `--use_cache` | why |",
        "|---" * 7 + "|",
    ]
    for fact in comparability.facts().values():
        cells = []
        for column in columns:
            text = _COUNTS.get(getattr(fact, column), "")
            is_of_a_task = column in ("ranks", "pairs", "gate")
            cells.append(text + _WHEN.get(fact.when, "") * bool(text and is_of_a_task))
        lines.append(f"| `{fact.name}` | {' | '.join(cells)} | {_cell(fact.why)} |")
    return "\n".join(lines) + "\n"


def scores_page() -> str:
    """List the headline scores of every benchmark, with what is needed to read them."""
    lines = [
        "# Scores\n",
        "Written from the catalogue; `lm-eval-bias ls --json` has the same as data. Breakdowns (by bias type, social "
        "value, context set, ...) have the names of these with a prefix, and are on the benchmarks' pages. Bold "
        "scores are main ones: comparisons and verdicts rest on them by default.\n",
    ]
    for benchmark in sorted(registry.benchmarks(), key=lambda one: one.name):
        lines.append(f"## {benchmark.title or benchmark.name}\n")
        tasks = [
            f"`{e.name}`"
            for e in catalog.entries().values()
            if e.benchmark == benchmark.name
        ]
        if len(tasks) <= 12:
            lines.append(f"Tasks: {', '.join(tasks)}.\n")
        lines.append(
            "| score | what it is called | range | neutral | what it measures | direction |\n"
            + "|---" * 6
            + "|"
        )
        for score in catalog.headline(benchmark):
            name = (
                f"**`{score.name}`**"
                if score.name in benchmark.main
                else f"`{score.name}`"
            )
            is_named = score.title.replace(" ", "_") != score.name
            called = _cell(score.title) if is_named else ""
            bounds = f"{numbers.bound(score.low)} … {numbers.bound(score.high)}"
            lines.append(
                f"| {name} | {called} | {bounds} | {numbers.bound(score.neutral)} | "
                f"{_cell(score.summary)} | {_cell(numbers.reads_as(score))} |"
            )
        lines.append("")
    return "\n".join(lines)


def cards_page() -> str:
    """Write the cards of all benchmarks, as ``ls --card`` prints them."""
    lines = [
        "# Cards\n",
        "What `lm-eval-bias ls --card NAME` prints: what a benchmark measures, and what it can't say.\n",
    ]
    for benchmark in sorted(registry.benchmarks(), key=lambda one: one.name):
        card = card_of(benchmark)
        if card is not None:
            text = listings.card_text(benchmark, card)
            title = benchmark.title or benchmark.name
            lines.append(f"## {title}\n\n```text\n{text}```\n")
    return "\n".join(lines)
