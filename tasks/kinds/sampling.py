"""Chooses the items of the suites ``quick`` and ``quick-chat``.

Among items that are alike in what is balanced, those with the smallest hash of seed and name are taken: a random choice
that depends on nothing else, so that the translations of an item are chosen together, or not at all.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from lm_eval_bias.core import Facts, numbers
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.tasks.kinds.bbq_records import ROLE_ORDERS

Cell = tuple[object, ...]


def draw(seed: str, name: object) -> str:
    """Sort key that puts items in a reproducible random order."""
    return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()


def grouped(
    docs: Documents, key: Callable[[Facts], numbers.K]
) -> dict[numbers.K, list[int]]:
    """Group the indices of documents by what these have in common."""
    return numbers.grouped((key(doc), i) for i, doc in enumerate(docs))


def goes_along(docs: Documents) -> bool:
    """Tell whether the right answers to disambiguated items about the same persons are the biased ones."""
    told = next(doc for doc in docs if doc["context_type"] == "disambiguated")
    return told["label"] == told["biased_choice"]


def products(docs: Documents, seed: str, number: int, *, items: int) -> list[int]:
    """Choose templates, and occupations of each group, and of these the whole product, as crossed errors need it.

    Args:
        docs: Of one task.
        seed: Of the suite.
        number: How many templates; all where there are fewer.
        items: How many occupations of a group.
    """

    def first(names: Iterable[object], most: int) -> list[object]:
        return sorted(set(names), key=lambda name: draw(seed, name))[:most]

    names = first((doc["template"] for doc in docs), number)
    groups = grouped(docs, lambda doc: doc["group"])
    for members in groups.values():
        names += first((docs[i]["item"] for i in members), items)
    return [
        i for i, doc in enumerate(docs) if {doc["template"], doc["item"]} <= set(names)
    ]


def per_cell(
    docs: Documents, seed: str, number: int, *, cell: Sequence[str], name: str
) -> list[int]:
    """Choose as many items of every cell; the same ones in every language.

    Args:
        docs: Of one task.
        seed: Of the suite.
        number: How many of a cell; all where there are fewer.
        cell: The fields that documents of a cell share.
        name: The field with an item's name, which it has in every language.
    """
    groups = grouped(docs, lambda doc: tuple(str(doc[field]) for field in cell))
    chosen = []
    for members in groups.values():
        chosen += sorted(members, key=lambda i: draw(seed, docs[i][name]))[:number]
    return sorted(chosen)


def pairs_of_blocks(docs: Documents, seed: str, number: int) -> list[int]:
    """Choose pairs of blocks that go along and against stereotypes, and show their options at the same places.

    Every template gives as many pairs, of orders of the options that were taken least so far.

    Args:
        docs: MBBQ's, with the block and the pair in which each item stands.
        seed: Of the suite.
        number: How many pairs of a template; all where there are fewer.
    """
    templates: dict[str, dict[int, list[int]]] = {}
    for (template, pair), places in grouped(
        docs, lambda doc: (doc["template"], doc["pair"])
    ).items():
        ways = [
            (doc["control"], doc["label"] == doc["biased_choice"])
            for doc in (docs[i] for i in places)
            if doc["directed"] and doc["context_type"] == "disambiguated"
        ]
        if len(set(ways)) == 4:
            templates.setdefault(template, {})[pair] = places
    chosen = []
    taken = Counter[int]()
    # templates with one pair leave no choice and go first
    for pairs in sorted(templates.values(), key=len):
        left = sorted(pairs, key=lambda pair: draw(seed, pair))
        for _ in range(min(number, len(left))):
            pair = min(left, key=lambda pair: taken[pair % len(ROLE_ORDERS)])
            left.remove(pair)
            taken[pair % len(ROLE_ORDERS)] += 1
            chosen += pairs[pair]
    return sorted(chosen)


def swapped_pairs(docs: Documents, seed: str, number: int) -> list[int]:
    """Choose pairs of items of every term and test that show stereotype and anti-stereotype at swapped places.

    A model that always takes the same place prefers neither.

    Args:
        docs: StereoSet's, with the order in which prompts show the candidates.
        seed: Of the suite.
        number: How many pairs a term and test; where an item has no other to go with, its pair has any.
    """
    swapped = {"stereotype": "anti-stereotype", "anti-stereotype": "stereotype"}
    shown = [
        [doc["candidates"][place]["label"] for place in doc["order"]] for doc in docs
    ]
    chosen = []
    for group in grouped(docs, lambda doc: (doc["term"], doc["test"])).values():
        left = sorted(group, key=lambda i: draw(seed, docs[i]["id"]))
        for _ in range(min(number, len(left) // 2)):
            first = left.pop(0)
            wanted = [swapped.get(label, label) for label in shown[first]]
            second = next((i for i in left if shown[i] == wanted), left[0])
            left.remove(second)
            chosen += [first, second]
    return sorted(chosen)
