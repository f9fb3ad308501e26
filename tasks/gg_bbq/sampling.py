"""Which of GG-BBQ's items belong to the suite ``quick``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_eval_bias.evaluation.sampling import Documents, draw, grouped

# in three orders of a row, every choice is once at every place: whoever always takes one place gets no bias from it
_ROWS = (((0, 1, 2), (1, 2, 0), (2, 0, 1)), ((1, 0, 2), (0, 2, 1), (2, 1, 0)))


def quadruples(docs: Documents, seed: str, number: int) -> list[int]:
    """Whole quadruples (both questions, both contexts), of every template as many, half of them in biased contexts.

    A template that has biased or counter-biased contexts only gives that many of these, one that has too few gives
    all. Those of a template and direction show their choices in orders that make up for one another.

    Args:
        docs: GG-BBQ's, in one or several wordings.
        seed: Of the suite.
        number: How many a template, a multiple of 6 for orders that make up for one another exactly.
    """
    items = grouped(docs, lambda doc: (doc["template"], doc["item"] // 2))
    strata: dict[Any, dict[bool, list[Any]]] = {}
    for name, own in items.items():
        known = next(docs[i] for i in own if docs[i]["context_type"] == "disambiguated")
        direction = known["label"] == known["biased_choice"]
        strata.setdefault(known["template"], {}).setdefault(direction, []).append(name)
    chosen: list[Any] = []
    for directions in strata.values():
        for own in directions.values():
            orders = {name: tuple(docs[items[name][0]]["order"]) for name in own}
            chosen += _in_turn(sorted(own, key=lambda name: draw(seed, name)), orders, number // len(directions))
    return sorted(i for name in chosen for i in items[name])


def _in_turn(names: list[Any], orders: Mapping[Any, tuple[int, ...]], number: int) -> list[Any]:
    """Names whose orders make up for one another, a row after the other; where that can't be, other orders first."""
    left = list(names)
    found: list[Any] = []
    used: list[Any] = []
    while left and len(found) < number:
        there = {orders[name] for name in left}
        rows = [row for row in _ROWS if set(row) <= there] if number - len(found) >= len(_ROWS[0]) else []
        if rows:
            rows.sort(key=lambda row: (row in used, orders[left[0]] not in row))
            used.append(rows[0])
            take = [next(name for name in left if orders[name] == order) for order in rows[0]]
        else:
            seen = {orders[name] for name in found}
            take = [next((name for name in left if orders[name] not in seen), left[0])]
        found += take
        left = [name for name in left if name not in take]
    return found
