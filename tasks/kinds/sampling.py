"""Chooses the items of the suites ``quick`` and ``quick-chat``.

Among items that are alike in what is balanced, those with the smallest hash of seed and name are taken: a random choice
that depends on nothing else, so that the translations of an item are chosen together, or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence

from lm_eval_bias.core import Facts, numbers
from lm_eval_bias.core.benchmark import Documents

Cell = tuple[object, ...]


def draw(seed: str, name: object) -> str:
    """Sort key that puts items in a reproducible random order."""
    return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()


def grouped(
    docs: Documents, key: Callable[[Facts], Hashable]
) -> dict[Hashable, list[int]]:
    """Group the indices of documents by what these have in common."""
    return numbers.grouped((key(doc), i) for i, doc in enumerate(docs))


def goes_along(docs: Documents) -> bool:
    """Tell whether the right answers to disambiguated items about the same persons are the biased ones."""
    told = next(doc for doc in docs if doc["context_type"] == "disambiguated")
    return told["label"] == told["biased_choice"]


def templates(docs: Documents, seed: str, number: int) -> list[int]:
    """Choose some templates, and of these every document.

    Of OccuGender that is a complete product of occupations and templates, which crossed standard errors need; of KoBBQ
    all samples in all orders, with as many biased as counter-biased contexts.

    Args:
        docs: Of one task.
        seed: Of the suite.
        number: How many templates; all where there are fewer.
    """
    names = sorted(
        {doc["template"] for doc in docs}, key=lambda template: draw(seed, template)
    )
    return [i for i, doc in enumerate(docs) if doc["template"] in names[:number]]


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
    groups = grouped(docs, lambda doc: tuple(doc[field] for field in cell))
    chosen = []
    for members in groups.values():
        chosen += sorted(members, key=lambda i: draw(seed, docs[i][name]))[:number]
    return sorted(chosen)


def blocks(docs: Documents, seed: str, number: int) -> list[int]:
    """Choose blocks of directed items that share persons: of every template as many along as against stereotypes.

    Args:
        docs: MBBQ's, with the block in which each item stands.
        seed: Of the suite.
        number: How many blocks of a template and direction; all where there are fewer.
    """
    alike = []
    for block in grouped(docs, lambda doc: (doc["template"], doc["block"])).values():
        if all(docs[i]["directed"] for i in block):
            kind = docs[block[0]]["template"], goes_along([docs[i] for i in block])
            alike.append((kind, block))
    chosen = []
    for members in numbers.grouped(alike).values():
        members.sort(key=lambda block: draw(seed, docs[block[0]]["block"]))
        for block in members[:number]:
            chosen += block
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
