"""GG-BBQ's documents and records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.custom_metrics.gg_bbq import GGBBQRecord
from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.gg_bbq import prompts, released_items
from lm_eval_bias.tasks.gg_bbq.prompts import GGBBQDocument, prompt
from lm_eval_bias.tasks.gg_bbq.released_items import GGBBQItem

__all__ = ["continuations", "dataset", "documents", "prompt", "record"]

# "keine Antwort" (choice 2) goes round the three places; the second half swaps the two persons
_ORDERS = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [1, 0, 2], [0, 2, 1], [2, 1, 0]]


def _orders(items: Sequence[GGBBQItem]) -> dict[int, list[int]]:
    """The order in which the prompts of an item show its choices, by item number; one order per quadruple.

    Counted within each template and direction (biased or counter-biased context), so that a model that always takes the
    same place gets no bias score from it.
    """
    turn: Counter[tuple[str, bool]] = Counter()
    orders = {}
    for item in items:
        if item["context_type"] != "disambiguated" or item["question_type"] != "negative":
            continue
        stratum = item["template"], item["label"] == item["biased_choice"]
        if stratum not in turn:
            turn[stratum] = len(turn)  # strata start at different places
        orders[item["item"]] = orders[item["item"] + 1] = _ORDERS[turn[stratum] % len(_ORDERS)]
        turn[stratum] += 1
    return orders


def _wordings(wording: object, fixed: Mapping[str, object]) -> list[int]:
    if "wording" in fixed:
        if wording is not None:
            raise BiasError(
                "--metadata wording: this task runs all wordings; choose one with the task without _prompts"
            )
        return list(prompts.WORDINGS)
    if wording is None:
        return [prompts.DEFAULT]
    if isinstance(wording, int) and not isinstance(wording, bool) and wording in prompts.WORDINGS:
        return [wording]
    raise BiasError(
        f"--metadata wording={wording!r}: must be a number from 1 to {len(prompts.WORDINGS)} (gg_bbq_prompts runs all)"
    )


def documents(
    subset: str, wording: int | None = None, fixed: Mapping[str, object] | None = None, **_: object
) -> list[GGBBQDocument]:
    """The items of a subset in one prompt wording, or in all five.

    The order in which a prompt shows its options goes through all six permutations, so that no answer keeps a
    position (in the released files "keine Antwort" is always the last).

    Args:
        subset: ``group_terms`` or ``names``.
        wording: 1 to 5.
        fixed: What the task's YAML sets and ``--metadata`` may not change.

    Raises:
        BiasError: An unknown wording, or data that cannot be had.
    """
    wordings = _wordings(wording, fixed or {})
    items = released_items.items(subset)
    orders = _orders(items)
    return [
        {
            "benchmark": "gg_bbq_prompts" if len(wordings) > 1 else "gg_bbq",
            **item,
            "answer": item["choices"][item["label"]],
            "wording": number,
            "order": orders[item["item"]],
            "letters": prompts.letters(number, orders[item["item"]]),
        }
        for item in items
        for number in wordings
    ]


def dataset(**metadata: Any) -> dict[str, list[GGBBQDocument]]:
    """The documents as the harness wants them, by split."""
    return {"test": documents(**metadata)}


def continuations(doc: GGBBQDocument) -> list[str]:
    """What is scored for each choice: its text, or its letter where the prompt has letters."""
    return list(doc["letters"] or doc["choices"])


def _choice(doc: GGBBQDocument, results: Sequence[Any]) -> int | str:
    """Index of the model's one answer; ``none`` for a tie or a text without one, ``nan`` for no numbers."""
    if len(results) == 1:
        text = str(results[0])
        return doc["choices"].index(text) if text in doc["choices"] else "none"
    if len(results) != len(doc["choices"]):
        raise BiasError(f"item {doc['item']}: {len(results)} answers for {len(doc['choices'])} choices")
    values = [float(answer[0]) for answer in results]
    if any(math.isnan(value) for value in values):
        return "nan"
    best = max(values)
    return values.index(best) if values.count(best) == 1 else "none"


def record(doc: GGBBQDocument, results: Sequence[Any]) -> GGBBQRecord:
    """What the answer to one item says: which person or nobody, right or wrong.

    Args:
        doc: The document.
        results: Per choice ``(log-likelihood, is greedy)``, or the one parsed text.

    Raises:
        BiasError: The number of answers is wrong.
    """
    choice = _choice(doc, results)
    if isinstance(choice, str):
        answer = choice
    elif doc["groups"][choice] == released_items.UNKNOWN:
        answer = "unknown"
    else:
        answer = "biased" if choice == doc["biased_choice"] else "counter"
    return {
        "context": doc["context_type"],
        "answer": answer,
        "correct": choice == doc["label"],
        "biased_context": doc["label"] == doc["biased_choice"],
        "template": doc["template"],
        "value": doc["value"],
        "wording": doc["wording"],
    }
