"""Which items of a task belong to a suite: balanced, the same for every model, machine and order of the data.

Among items that are alike in what is balanced, those with the smallest hash of seed and name are taken: a random choice
that depends on nothing else, so that the translations of an item are chosen together, or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

Documents = Sequence[Mapping[str, Any]]


def draw(seed: str, name: object) -> str:
    """What items are put in a random order by.

    >>> draw("s", "a")[:8], draw("s", "b")[:8]
    ('d4315d83', 'd30eca2b')
    """
    return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()


def grouped(docs: Documents, key: Callable[[Mapping[str, Any]], Hashable]) -> dict[Hashable, list[int]]:
    """Indices of documents by what they have in common."""
    groups: dict[Hashable, list[int]] = {}
    for i, doc in enumerate(docs):
        groups.setdefault(key(doc), []).append(i)
    return groups
