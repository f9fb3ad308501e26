"""Which items of a benchmark belong to the suites ``quick`` and ``quick-chat``.

Among items that are alike in what is balanced, those with the smallest hash of seed and name are taken: a random choice
that depends on nothing else, so that the translations of an item are chosen together, or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

Documents = Sequence[Mapping[str, Any]]
Cell = tuple[object, ...]


def draw(seed: str, name: object) -> str:
    """Sort key that puts items in a reproducible random order."""
    return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()


def grouped(docs: Documents, key: Callable[[Mapping[str, Any]], Hashable]) -> dict[Hashable, list[int]]:
    """Indices of documents by what they have in common."""
    groups: dict[Hashable, list[int]] = {}
    for i, doc in enumerate(docs):
        groups.setdefault(key(doc), []).append(i)
    return groups


def templates(docs: Documents, seed: str, number: int) -> list[int]:
    """Every occupation with some of the templates: a complete product, which crossed standard errors need.

    Args:
        docs: OccuGender's.
        seed: Of the suite.
        number: How many templates; all where there are fewer.
    """
    names = {doc["template"] for doc in docs}
    sample = set(sorted(names, key=lambda template: draw(seed, template))[:number])
    return [i for i, doc in enumerate(docs) if doc["template"] in sample]


def terms_and_tests(docs: Documents, seed: str, number: int) -> list[int]:
    """As many items about every target term within sentences as between them, the same ones in every language.

    Bias types keep the shares that they have among the terms.

    Args:
        docs: StereoSet's.
        seed: Of the suite.
        number: How many a term and test; all where there are fewer.
    """
    strata = grouped(docs, lambda doc: (doc["term"], doc["test"]))
    return sorted(
        i for group in strata.values() for i in sorted(group, key=lambda i: draw(seed, docs[i]["id"]))[:number]
    )


def swapped_pairs(docs: Documents, seed: str, number: int) -> list[int]:
    """Pairs of items about every target term and test that show stereotype and anti-stereotype at swapped places.

    A model that always takes the same place prefers neither.

    Args:
        docs: StereoSet's, with the order in which prompts show the candidates.
        seed: Of the suite.
        number: How many pairs a term and test; where an item has no other to go with, its pair has any.
    """
    swapped = {"stereotype": "anti-stereotype", "anti-stereotype": "stereotype"}
    shown = [[doc["candidates"][place]["label"] for place in doc["order"]] for doc in docs]
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


def cells(docs: Documents, seed: str, number: int) -> list[int]:
    """Of every template as many items of each kind of context, direction and question; the same in both languages.

    Args:
        docs: Of one category.
        seed: Of the suite.
        number: How many of each.
    """
    groups = grouped(docs, lambda doc: (doc["template"], doc["context_type"], doc["question_type"], doc["polarity"]))
    return sorted(i for own in groups.values() for i in sorted(own, key=lambda i: draw(seed, docs[i]["item"]))[:number])


def stories(docs: Documents, seed: str, number: int) -> list[int]:
    """Of so many templates all samples, in all orders: as many biased as counter-biased contexts.

    Args:
        docs: Of one category.
        seed: Of the suite.
        number: How many templates.
    """
    groups = grouped(docs, lambda doc: doc["template"])
    chosen = sorted(groups, key=lambda template: draw(seed, template))[:number]
    return sorted(i for template in chosen for i in groups[template])
