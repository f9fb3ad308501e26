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


def cut(trie: Trie, width: int) -> Rows:
    """Cut sequences, in their order, into rows of at most ``width`` nodes; one that is longer has a row of its own."""
    rows: Rows = []
    first = 0
    while first < len(trie.shared):
        room = trie.heads[first] - trie.shared[first] + width
        last = int(np.searchsorted(trie.heads, room, "right")) - 1
        rows.append((first, max(last, first + 1)))
        first = rows[-1][1]
    return rows


def sizes(trie: Trie, rows: Rows) -> Ints:
    """Return the number of nodes of each row."""
    firsts, lasts = np.transpose(rows)
    return trie.shared[firsts] + trie.heads[lasts] - trie.heads[firsts]


def lay_out(trie: Trie, budget: int, pair: float) -> Iterator[Rows]:
    """Yield the rows of each forward, the longest first, cut as costs least.

    Args:
        trie: The sequences.
        budget: Most tokens of a forward.
        pair: What a token's attention to another costs, in matrix products of a token.
    """
    widths = [width for width in WIDTHS if width <= budget] or [budget]
    layouts = [cut(trie, width) for width in widths]

    def price(rows: Rows) -> float:
        each = sizes(trie, rows)
        return float((each * (1.0 + pair * each)).sum())

    rows = min(layouts, key=price)
    lengths = sizes(trie, rows)
    order = np.argsort(-lengths, kind="stable").tolist()
    while order:
        count = max(1, budget // int(lengths[order[0]]))
        yield [rows[place] for place in order[:count]]
        del order[:count]


def layout_of(
    trie: Trie, strands: Sequence[Ints]
) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """Return token ids and positions of rows, each (rows, width), and which token sees which, (rows, width, width).

    Rows are padded on the right; padding sees itself, as attention to nothing is nan.
    """
    # kernels want multiples of 8
    width = -(-max(map(len, strands)) // 8) * 8
    ids, depths, ends = np.zeros((3, len(strands), width), np.int64)
    at = np.arange(width)
    ends += at + 1
    for row, strand in enumerate(strands):
        size = len(strand)
        ids[row, :size] = trie.tokens[strand]
        depths[row, :size] = trie.depths[strand]
        ends[row, :size] = np.searchsorted(strand, trie.ends[strand])
    visible = (at <= at[:, None]) & (at[:, None] < ends[:, None, :])
    return ids, depths, visible
