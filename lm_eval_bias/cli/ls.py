"""``lm-eval-bias ls``: tasks, groups and suites with what they measure, and benchmarks' cards."""

from __future__ import annotations

from json import dumps

from lm_eval_bias.cli.signatures import Names
from lm_eval_bias.core.errors import BiasError


def ls(
    name: str | None = None,
    *,
    all: bool = False,
    language: Names = (),
    json: bool = False,
    suites: bool = False,
    card: str | None = None,
) -> None:
    """List tasks, scores and suites, or print a benchmark's card.

    Args:
        name (NAME): benchmark, task or group whose benchmark's tasks and scores are listed
        all: list every task, the harness's own included
        language (CODE): only the tasks in these languages: de, or de,en (default: all)
        json: print JSON, with each score's range and neutral value
        suites: list the suites of run --suite with their tasks, items and requests
        card (NAME): print the card of a benchmark (or of a task's benchmark): purpose, size, licence, flaws, misuse
    """
    from lm_eval_bias.core import catalog
    from lm_eval_bias.report import listings

    asked = {"NAME": name, "--all": all, "--suites": suites, "--card": card}
    given = [flag for flag, value in asked.items() if value not in (None, False)]
    if len(given) > 1:
        raise BiasError(f"{' and '.join(given)} can't be combined: give one of them")
    if language and (card is not None or suites):
        raise BiasError("--language is for lists of tasks: leave it out")
    made: object
    if card is not None:
        benchmark, found = listings.with_card(card)
        made = listings.card_data(benchmark, found)
        if not json:
            from lm_eval_bias.report import citing

            cited = citing.bibtex(citing.of_benchmarks([benchmark]))
            made = f"{listings.card_text(benchmark, found)}\n{cited}"
    elif suites:
        from lm_eval_bias.evaluation.suites import listing

        made = listing() if json else listings.suites(listing())
    elif json or given or language:
        entries = listings.entries(name or "", language)
        made = listings.tasks(entries)
        if json:
            names = {entry.name for entry in entries}
            made = [one for one in catalog.listing() if one["name"] in names]
    else:
        made = listings.benchmarks()
    print(dumps(made, indent=2, ensure_ascii=False) if json else made)
