"""Pages of the reference that are written from the code: commands from parsers, scores from the catalogue, cards."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

from lm_eval_bias.cli import main as commands
from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import Card
from lm_eval_bias.core.wording import score_label
from lm_eval_bias.report import listings


def pages() -> dict[str, str]:
    """The text of each page by its place in the site."""
    return {
        "reference/commands.md": commands_page(),
        "reference/scores.md": scores_page(),
        "reference/cards.md": cards_page(),
    }


def _cell(text: str) -> str:
    """Text in a table's cell, not taken for Markdown or HTML."""
    for sign in "\\`*_[]":
        text = text.replace(sign, "\\" + sign)
    for sign, entity in (("<", "&lt;"), (">", "&gt;"), ("|", "&#124;")):
        text = text.replace(sign, entity)
    return " ".join(text.split())


# ----------------------------------------------------------------------------------------------------------- commands


def _parsers() -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Every command with its purpose and its parser."""
    for name, command in (commands.verbs() | commands.own_commands()).items():
        yield name, command.help, commands.parser(name, command)


def _row(action: argparse.Action, formatter: argparse.HelpFormatter) -> str:
    value = action.metavar if isinstance(action.metavar, str) else None
    if action.nargs == 0:
        value = ""
    elif action.choices is not None:
        value = value or ", ".join(map(str, action.choices))
    elif value is None:
        value = "" if not action.option_strings else action.dest.upper()
    name = ", ".join(f"`{option}`" for option in action.option_strings) or f"`{action.metavar or action.dest}`"
    helped = formatter._expand_help(action) if action.help else ""
    return f"| {name} | {_cell(value or '') if action.option_strings else ''} | {_cell(helped)} |"


def _command(name: str, purpose: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"## {name}\n"
    described = " ".join((parser.description or "").split())
    yield (_cell(described) if described else f"{_cell(purpose[:1].upper() + purpose[1:])}.") + "\n"
    formatter = parser._get_formatter()
    for group in parser._action_groups:
        actions = [one for one in group._group_actions if one.help != argparse.SUPPRESS and one.dest != "help"]
        if actions:
            if group.title not in ("positional arguments", "options", "optional arguments"):
                yield f"**{_cell(group.title or '')}** {_cell(group.description or '')}\n"
            yield "| option | value | what |\n|---|---|---|"
            yield "\n".join(_row(action, formatter) for action in actions) + "\n"
    if parser.epilog:
        yield "```text\n" + parser.epilog.strip("\n") + "\n```\n"


def commands_page() -> str:
    """All commands with their options."""
    every = sorted(_parsers(), key=lambda one: (one[0] != "run", one[0]))
    lines = [
        "# Commands and options\n",
        "Written from the commands' own parsers; `lm-eval-bias COMMAND --help` prints the same. Bad usage or input is "
        "one line on standard error and exit status 2, and leaves nothing half-written.\n",
        "| command | what |\n|---|---|",
        "\n".join(f"| [`{name}`](#{name.replace(' ', '-')}) | {_cell(purpose)} |" for name, purpose, _ in every) + "\n",
    ]
    for one in every:
        lines += _command(*one)
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------------------- scores


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    return "∞" if value == math.inf else "-∞" if value == -math.inf else f"{value:g}"


def scores_page() -> str:
    """The headline scores of every benchmark, with what is needed to read them."""
    lines = [
        "# Scores\n",
        "Written from the catalogue; `lm-eval-bias ls --json` has the same as data. Breakdowns (by bias type, social "
        "value, context set, ...) have the names of these with a prefix, and are on the benchmarks' pages. Bold "
        "scores are main ones: comparisons and verdicts rest on them by default.\n",
    ]
    for benchmark in sorted(registry.benchmarks(), key=lambda one: one.name):
        lines.append(f"## {benchmark.title or benchmark.name}\n")
        tasks = [f"`{e.name}`" for e in catalog.entries().values() if e.benchmark == benchmark.name]
        if len(tasks) <= 12:
            lines.append(f"Tasks: {', '.join(tasks)}.\n")
        lines.append(
            "| score | what it is called | range | neutral | what it measures | direction |\n" + "|---" * 6 + "|"
        )
        for score in catalog.headline(benchmark.name):
            name = f"**`{score.name}`**" if score.name in benchmark.main else f"`{score.name}`"
            called = score_label(benchmark.name, score.name)
            called = "" if called.replace(" ", "_") == score.name else _cell(called)
            bounds = f"{_number(score.low)} … {_number(score.high)}"
            lines.append(
                f"| {name} | {called} | {bounds} | {_number(score.neutral)} | "
                f"{_cell(score.summary)} | {_cell(score.direction)} |"
            )
        lines.append("")
    return "\n".join(lines)


# -------------------------------------------------------------------------------------------------------------- cards


def cards_page() -> str:
    """The cards of all benchmarks, each as a section."""
    lines = [
        "# Cards\n",
        "What each benchmark measures, and what it can't say. `lm-eval-bias ls --card NAME` prints them.\n",
    ]
    for benchmark in sorted(registry.benchmarks(), key=lambda one: one.name):
        if benchmark.card is not None:
            lines.append(f"## {benchmark.title or benchmark.name}\n")
            lines += _card(benchmark.card)
    return "\n".join(lines)


def _card(card: Card) -> Iterator[str]:
    for field, label in listings._LABELS.items():
        sentences = [_cell(sentence) for sentence in listings.card_lines(card, field)]
        if field == "link":
            sentences = [f"<{sentence}>" for sentence in listings.card_lines(card, field)]
        if len(sentences) > 1:
            yield f"**{label}**\n\n" + "\n".join(f"- {sentence}" for sentence in sentences) + "\n"
        elif sentences:
            yield f"**{label}**: {sentences[0]}\n"
