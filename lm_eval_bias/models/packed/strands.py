"""The trie as strands: stretches of it that are walked side by side, a window of nodes of each in every forward.

Nodes in depth-first order that follow each other have all their ancestors among themselves or on the path to the first
of them. With the keys and values of that path at hand, a window runs each of its nodes once, whatever its width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lm_eval_bias.models.packed.trie_layout import Cost, Ints, Sequences, even

WIDTHS = (32, 64, 128, 256, 512)
_SLACK, _FAR = 0.25, 1 / 16  # how far from equal parts a cut may be, in parts; what a token of it weighs
_CACHED_PER_TOKEN = 4  # kept tokens per token of a forward, at most


@dataclass(frozen=True)
class Layout:
    """Strands and their windows.

    Attributes:
        strands: ``(first sequence, one past the last)``, the longest first.
        width: Nodes of a window.
        columns: Most tokens of a path that is kept.
        price: Floating-point operations of all windows, as estimated.
    """

    strands: tuple[tuple[int, int], ...]
    width: int
    columns: int
    price: float


class Nodes:
    """The trie's nodes in depth-first order: each sequence's own follow those of the sequence before.

    Attributes:
        sequences: What to run.
        size: How many nodes there are.
        heads: Each sequence's first node of its own, ``[sequences]``.
        depths: How many ancestors each node has, ``[size]``.
    """

    def __init__(self, sequences: Sequences) -> None:
        fresh = sequences.lengths - sequences.shared
        self.sequences = sequences
        self.size = int(fresh.sum())
        self.heads = np.cumsum(fresh) - fresh
        self.depths = np.arange(self.size, dtype=np.int32)
        self.depths -= np.repeat((self.heads - sequences.shared).astype(np.int32), fresh)


def cut(nodes: Nodes, count: int) -> Ints:
    """First sequences of at most so many strands of about the same length, cut where few tokens are run again."""
    sequences, heads = nodes.sequences, nodes.heads
    part = nodes.size / count
    starts = [0]
    for i in range(1, count):
        low, high = np.searchsorted(heads, [part * (i - _SLACK), part * (i + _SLACK)])
        low = min(int(low), len(sequences) - 1)
        near = slice(low, max(int(high), low + 1))
        starts.append(low + int(np.argmin(sequences.shared[near] + _FAR * np.abs(heads[near] - part * i))))
    return np.unique(starts)


def of(nodes: Nodes, count: int, width: int, cost: Cost) -> Layout:
    """At most so many strands, with windows of so many nodes."""
    sequences, heads, size = nodes.sequences, nodes.heads, nodes.size
    firsts = cut(nodes, count)
    repeated = np.where(firsts > 0, sequences.shared[firsts], 0)
    lasts = np.append(firsts[1:], len(sequences))
    lengths = np.append(heads[firsts[1:]], size) - heads[firsts] + repeated
    at = np.arange(0, int(lengths.max()), width)[:, None]
    active = at < lengths
    first = np.where(at < repeated, at, nodes.depths[np.minimum(heads[firsts] - repeated + at, size - 1)])
    columns = np.where(active, first, 0).max(1)
    sizes = even(np.minimum(width, np.where(active, lengths - at, 0).max(1)))
    price = float((active.sum(1) * sizes * (cost.token + cost.pair * (columns + sizes))).sum())
    order = np.lexsort((firsts, -lengths))
    strands = tuple((int(firsts[i]), int(lasts[i])) for i in order)
    return Layout(strands, width, int(columns.max()), price)


def lay(sequences: Sequences, needed: Ints, cost: Cost, budget: int, most: int, widest: int) -> Layout | None:
    """The cheapest strands and windows within some limits; ``None`` if there are none.

    Args:
        sequences: What to run.
        needed: How many last tokens of each need logits.
        cost: Of tokens and attention.
        budget: Tokens of a forward.
        most: Needed tokens of a forward.
        widest: Most tokens that a window may have with the path before it.
    """
    nodes = Nodes(sequences)
    fresh = sequences.lengths - sequences.shared
    dense = min(1.0, 2 * float(np.minimum(needed, fresh + 1).sum()) / nodes.size)
    longest = int(needed.max())
    layouts = []
    for width in sorted({min(width, budget) for width in WIDTHS}):
        layout = of(nodes, max(1, min(budget // width, nodes.size // width)), width, cost)
        rows = len(layout.strands)
        if (
            layout.columns + width <= widest
            and rows * (layout.columns + width) <= _CACHED_PER_TOKEN * budget
            and rows * max(longest, width * dense) <= most
        ):
            layouts.append(layout)
    return min(layouts, key=lambda layout: layout.price, default=None)
