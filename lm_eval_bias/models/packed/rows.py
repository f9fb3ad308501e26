"""Rows of a trie's nodes: each holds some sequences, whose tokens see their ancestors alone.

What a row's sequences share is run once; what they share with those of earlier rows is run again, so that nothing has
to be kept between forwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from lm_eval_bias.models.prefix_trie import Ints, Trie

WIDTHS = (64, 128, 256, 512, 1024, 2048, 4096)  # nodes of a row, to choose from
Rows = list[tuple[int, int]]  # of each row the first sequence, and one past the last


def cut(trie: Trie, needed: npt.NDArray[np.bool_], width: int, most: int) -> Rows:
    """Cut sequences, in their order, into rows; a sequence that is too long has a row of its own.

    Args:
        trie: The sequences.
        needed: Whether each node needs logits, shape (nodes,).
        width: Most nodes of a row.
        most: Most nodes of a row that need logits.
    """
    needed_before = np.append(0, needed.cumsum())[trie.heads]
    rows: Rows = []
    first = 0
    while first < len(trie.shared):
        room = trie.heads[first] - trie.shared[first] + width
        last = min(
            np.searchsorted(trie.heads, room, "right"),
            np.searchsorted(needed_before, needed_before[first] + most, "right"),
        )
        rows.append((first, max(int(last) - 1, first + 1)))
        first = rows[-1][1]
    return rows


def sizes(trie: Trie, rows: Rows) -> Ints:
    """Return the number of nodes of each row."""
    firsts, lasts = np.transpose(rows)
    return trie.shared[firsts] + trie.heads[lasts] - trie.heads[firsts]


def lay_out(
    trie: Trie, needed: npt.NDArray[np.bool_], budget: int, most: int, pair: float
) -> Rows:
    """Cut sequences into the cheapest rows, the longest first.

    Args:
        trie: The sequences.
        needed: Whether each node needs logits, shape (nodes,).
        budget: Most tokens of a forward.
        most: Most nodes of a row that need logits.
        pair: What a token's attention to another costs, in matrix products of a token.
    """
    widths = [width for width in WIDTHS if width <= budget] or [budget]
    layouts = [cut(trie, needed, width, most) for width in widths]

    def price(rows: Rows) -> float:
        each = sizes(trie, rows)
        return float((each * (1.0 + pair * each)).sum())

    cheapest = min(layouts, key=price)
    order = np.argsort(-sizes(trie, cheapest), kind="stable")
    return [cheapest[place] for place in order]


def forwards(
    trie: Trie, needed: npt.NDArray[np.bool_], rows: Rows, budget: int, most: int
) -> Iterator[tuple[list[Ints], list[Ints]]]:
    """Yield the rows of each forward: the nodes of each row, and the places of those in it that need logits."""
    nodes: list[Ints] = []
    places: list[Ints] = []
    for first, last in rows:
        strand = trie.strand(first, last)
        # those before the first sequence's own nodes are answered in an earlier row
        inside = np.flatnonzero(needed[strand] & (strand >= trie.heads[first]))
        width = len(nodes[0] if nodes else strand)
        count = sum(map(len, places)) + len(inside)
        if nodes and ((len(nodes) + 1) * width > budget or count > most):
            yield nodes, places
            nodes, places = [], []
        nodes.append(strand)
        places.append(inside)
    if nodes:
        yield nodes, places


def layout_of(
    trie: Trie, nodes: Sequence[Ints]
) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """Return token ids and positions of rows, each (rows, width), and which token sees which, (rows, width, width).

    Rows are padded on the right; padding sees itself, as attention to nothing is nan.
    """
    # kernels want multiples of 8
    width = -(-max(map(len, nodes)) // 8) * 8
    ids, depths, ends = np.zeros((3, len(nodes), width), np.int64)
    at = np.arange(width)
    ends += at + 1
    for row, strand in enumerate(nodes):
        size = len(strand)
        ids[row, :size] = trie.tokens[strand]
        depths[row, :size] = trie.depths[strand]
        ends[row, :size] = np.searchsorted(strand, trie.ends[strand])
    visible = (at <= at[:, None]) & (at[:, None] < ends[:, None, :])
    return ids, depths, visible
