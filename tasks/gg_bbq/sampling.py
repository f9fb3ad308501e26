"""Which of GG-BBQ's items belong to the suite ``quick``."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

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
    strata: dict[str, dict[bool, list[Hashable]]] = {}
    for name, indices in items.items():
        doc = next(docs[i] for i in indices if docs[i]["context_type"] == "disambiguated")
        direction = doc["label"] == doc["biased_choice"]
        strata.setdefault(doc["template"], {}).setdefault(direction, []).append(name)
    sample: list[Hashable] = []
    for directions in strata.values():
        for names in directions.values():
            orders = {name: tuple(docs[items[name][0]]["order"]) for name in names}
            sample += _balanced(sorted(names, key=lambda name: draw(seed, name)), orders, number // len(directions))
    return sorted(i for name in sample for i in items[name])


def _balanced(names: Sequence[Hashable], orders: Mapping[Hashable, tuple[int, ...]], number: int) -> list[Hashable]:
    """Names whose orders make up for one another, a row after the other; where that can't be, other orders first."""
    remaining = list(names)
    picks: list[Hashable] = []
    used_rows: list[tuple[tuple[int, ...], ...]] = []
    while remaining and len(picks) < number:
        available = {orders[name] for name in remaining}
        rows = [row for row in _ROWS if set(row) <= available] if number - len(picks) >= len(_ROWS[0]) else []
        if rows:
            rows.sort(key=lambda row: (row in used_rows, orders[remaining[0]] not in row))
            used_rows.append(rows[0])
            step = [next(name for name in remaining if orders[name] == order) for order in rows[0]]
        else:
            used_orders = {orders[name] for name in picks}
            step = [next((name for name in remaining if orders[name] not in used_orders), remaining[0])]
        picks += step
        remaining = [name for name in remaining if name not in step]
    return picks
