"""Rows of token sequences: what a row's sequences begin with alike is run once, and each token sees its own ancestors.

What they share with those of earlier rows is run again, so that nothing has to be kept between forwards.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lm_eval_bias.harness.internals import Ids

WIDTHS = (64, 128, 256, 512, 1024, 2048, 4096)  # tokens of a row, to choose from
Ints = npt.NDArray[np.int64]
Spans = list[tuple[int, int]]  # of each row the first sequence, and one past the last


class PackedRow:
    """The trie of some sequences: its nodes are the tokens after which they differ, in depth-first order.

    Attributes:
        tokens: Token of each node, shape (nodes,).
        depths: Number of its ancestors, same shape.
        ends: One past its last descendant, same shape.
        paths: The nodes of each sequence.
    """

    def __init__(self, sequences: Sequence[Ids]) -> None:
        """Build the row of sorted sequences.

        >>> row = PackedRow([[5], [5, 6, 9], [5, 7]])
        >>> row.tokens.tolist(), row.depths.tolist(), row.ends.tolist()
        ([5, 6, 9, 7], [0, 1, 2, 1], [4, 3, 3, 4])
        """
        tokens: Ids = []
        depths: list[int] = []
        path = np.zeros(0, np.int64)
        self.paths = []
        for before, ids in pairwise([[], *sequences]):
            common = shared(before, ids)
            fresh = np.arange(len(tokens), len(tokens) + len(ids) - common)
            tokens += ids[common:]
            depths += range(common, len(ids))
            path = np.append(path[:common], fresh)
            self.paths.append(path)
        self.tokens = np.array(tokens)
        self.depths = np.array(depths)
        self.ends = np.zeros(len(tokens), np.int64)
        for path in self.paths:
            self.ends[path] = path[-1] + 1  # the last one that has it counts


def shared(first: Ids, second: Ids) -> int:
    """Return the number of tokens with which both begin."""
    return len(os.path.commonprefix([first, second]))  # of any lists


def cut(lengths: Ints, begins: Ints, width: int) -> Spans:
    """Cut sorted sequences into rows of at most ``width`` nodes; one that is longer has a row of its own.

    Args:
        lengths: Of the sequences.
        begins: How many first tokens each has in common with the one before.
        width: Most nodes of a row.
    """
    spans: Spans = []
    first = size = 0
    for place, (length, begin) in enumerate(zip(lengths, begins, strict=True)):
        size += length - begin
        if size > width and place > first:
            spans.append((first, place))
            first, size = place, length
    return [*spans, (first, len(lengths))]


def lay_out(
    sequences: Sequence[Ids], budget: int, pair: float
) -> Iterator[list[tuple[int, PackedRow]]]:
    """Yield the rows of each forward, each behind the place of its first sequence, the longest rows first.

    Args:
        sequences: Sorted, none twice.
        budget: Most tokens of a forward.
        pair: What a token's attention to another costs, in matrix products of a token.
    """
    lengths = np.array(list(map(len, sequences)))
    begins = np.array([shared(*two) for two in pairwise([[], *sequences])])
    fresh = np.append(0, (lengths - begins).cumsum())

    def sizes(spans: Spans) -> Ints:
        firsts, lasts = np.transpose(spans)
        return begins[firsts] + fresh[lasts] - fresh[firsts]

    def price(spans: Spans) -> float:
        each = sizes(spans)
        return float((each * (1.0 + pair * each)).sum())

    # what costs least
    widths = [width for width in WIDTHS if width <= budget] or [budget]
    spans = min((cut(lengths, begins, width) for width in widths), key=price)
    left = [spans[place] for place in np.argsort(-sizes(spans), kind="stable")]
    while left:
        count = max(1, budget // int(sizes(left[:1])[0]))
        yield [
            (first, PackedRow(sequences[first:last])) for first, last in left[:count]
        ]
        del left[:count]


def layout_of(rows: Sequence[PackedRow]) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """Return token ids and positions of rows, each (rows, width), and which token sees which, (rows, width, width).

    Rows are padded on the right; padding sees itself, as attention to nothing is nan.
    """
    # kernels want multiples of 8
    width = -(-max(len(row.tokens) for row in rows) // 8) * 8
    ids, depths, ends = np.zeros((3, len(rows), width), np.int64)
    at = np.arange(width)
    ends += at + 1
    for number, row in enumerate(rows):
        size = len(row.tokens)
        ids[number, :size] = row.tokens
        depths[number, :size] = row.depths
        ends[number, :size] = row.ends
    visible = (at <= at[:, None]) & (at[:, None] < ends[:, None, :])
    return ids, depths, visible
