"""How many token sequences become few rows: the trie of their prefixes, laid out depth-first and cut.

Sorted sequences are the trie in depth-first order: what one has in common with the one before it stands there already.
A piece is a run of neighbours; it repeats only what its first sequence has in common with the sequence before. Token
``j`` of a piece is an ancestor of token ``i``, or ``i`` itself, where ``j <= i < end[j]``.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
WIDTHS = (64, 96, 128, 192, 256, 384, 512, 768, 1024)
WIDEST = 8192  # a mask is as large as its square
_CHUNK = 1 << 22  # tokens compared at a time
_SAMPLE = 20_000  # sequences that a width is chosen by


@dataclass(frozen=True)
class Sequences:
    """Distinct token sequences, sorted.

    Attributes:
        tokens: All ids, one sequence after another, shape (sum of lengths,).
        starts: Where each begins, and the end, shape (n + 1,).
    """

    tokens: npt.NDArray[np.int32]
    starts: Ints

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> Ints:
        """Tokens of each, shape (n,)."""
        return np.diff(self.starts)

    @cached_property
    def shared(self) -> Ints:
        """How many first tokens each has in common with the one before it, shape (n,)."""
        starts, lengths, flat = self.starts, self.lengths, self.tokens
        shared = np.zeros(len(lengths), np.int64)
        common = np.minimum(lengths[1:], lengths[:-1])
        ends = np.cumsum(common)
        first = 0
        while first < len(common):
            offset = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, offset + _CHUNK, side="right")))
            counts = common[first:last]
            heads = np.cumsum(counts) - counts
            inside = np.arange(int(counts.sum())) - np.repeat(heads, counts)
            before = flat[np.repeat(starts[first:last], counts) + inside]
            after = flat[np.repeat(starts[first + 1 : last + 1], counts) + inside]
            differs = np.where(before == after, np.repeat(counts, counts), inside)
            shared[first + 1 : last + 1] = np.minimum.reduceat(differs, heads)
            first = last
        return shared

    @property
    def trie_size(self) -> int:
        """Number of the trie's nodes: tokens that have to be run at least."""
        return int((self.lengths - self.shared).sum())

    def ids(self, k: int, since: int = 0) -> npt.NDArray[np.int32]:
        """The tokens of sequence ``k`` from position ``since`` on."""
        return self.tokens[self.starts[k] + since : self.starts[k + 1]]

    def subset(self, indices: Ints) -> Sequences:
        """Some of them, in the same order."""
        if len(indices) == len(self):
            return self
        tokens = [self.ids(k) for k in indices.tolist()]
        return Sequences(np.concatenate(tokens) if tokens else np.zeros(0, np.int32), bounds(self.lengths[indices]))


def bounds(lengths: Ints) -> Ints:
    """Where parts that stand one after another begin, and the end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def arrange(inputs: Iterable[Sequence[int]]) -> tuple[Sequences, Ints]:
    """The distinct ones among token sequences, sorted, and which of them each input is.

    Time and memory are linear in the number of tokens, sorting aside.

    >>> sequences, of = arrange([[5, 7], [5, 6, 9], [5, 7], [5]])
    >>> [sequences.ids(k).tolist() for k in range(len(sequences))], sequences.shared.tolist(), of.tolist()
    ([[5], [5, 6, 9], [5, 7]], [0, 1, 1], [2, 1, 2, 0])
    """
    # big-endian bytes sort as the numbers do, a beginning before what goes on
    keys = [struct.pack(f">{len(ids)}I", *ids) for ids in inputs]
    distinct = sorted(set(keys))
    rank = {key: k for k, key in enumerate(distinct)}
    sequence_of = np.fromiter((rank[key] for key in keys), np.int64, len(keys))
    lengths = np.fromiter((len(key) // 4 for key in distinct), np.int64, len(distinct))
    flat = np.frombuffer(b"".join(distinct), ">u4").astype(np.int32)
    return Sequences(flat, bounds(lengths)), sequence_of


class Piece(NamedTuple):
    """A run of neighbouring sequences: the first, one past the last, and their tokens."""

    first: int
    last: int
    size: int


def cut(lengths: Sequence[int], shared: Sequence[int], width: int) -> list[Piece]:
    """Cut sorted sequences into pieces of at most ``width`` tokens so that the fewest tokens are run twice.

    Dynamic programming over the cuts: one before sequence ``k`` costs its ``shared[k]`` tokens once more. The first
    cuts that still fit move forward only, so a sliding-window minimum does it in linear time.

    A sequence that is longer than the width is a piece of its own.

    >>> cut([3, 4, 4], [0, 3, 1], 5)
    [Piece(first=0, last=2, size=4), Piece(first=2, last=3, size=4)]
    """
    n = len(lengths)
    added = 0  # tokens that sequences 0..k add to the trie
    offset = [0] * n  # of a piece that starts at j: its tokens up to k are offset[j] + added
    price = [0] * (n + 1)  # tokens run twice, least, with a cut before k
    origin = [0] * (n + 1)
    window: deque[int] = deque()
    for k in range(n):
        offset[k] = shared[k] - added
        while window and price[window[-1]] >= price[k]:
            window.pop()
        window.append(k)
        added += lengths[k] - shared[k]
        while window[0] != k and offset[window[0]] + added > width:
            window.popleft()
        origin[k + 1] = window[0]
        price[k + 1] = price[window[0]] + (shared[k + 1] if k + 1 < n else 0)
    pieces = []
    end = n
    total = added
    while end > 0:
        start = origin[end]
        pieces.append(Piece(start, end, offset[start] + total))
        total = shared[start] - offset[start]
        end = start
    return pieces[::-1]


def fill(sizes: Sequence[int], width: int) -> list[list[int]]:
    """Put pieces into rows of ``width`` tokens, largest first, each into the fullest row that still has room.

    A piece that is larger gets a row of its own. Rows are given as indices of pieces, in the order in which they were
    opened.

    >>> fill([3, 7, 2, 5], 8)
    [[1], [3, 0], [2]]
    """
    rows: list[list[int]] = []
    room: list[list[int]] = [[] for _ in range(width + 1)]  # rows by tokens left
    for piece in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        size = sizes[piece]
        space = next((space for space in range(size, width + 1) if room[space]), None)
        if space is None:
            rows.append([])
            row, space = len(rows) - 1, max(width, size)
        else:
            row = room[space].pop()
        rows[row].append(piece)
        if space - size <= width:
            room[space - size].append(row)
    return rows


@dataclass(frozen=True)
class Cost:
    """What running tokens costs, in floating-point operations.

    Attributes:
        token: Of one token's matrix products, the output projection aside.
        pair: Of one token's attention to another.
    """

    token: float
    pair: float


@dataclass(frozen=True)
class PackedRow:
    """One row of a forward: pieces of the trie, one after another."""

    pieces: tuple[Piece, ...]

    @cached_property
    def size(self) -> int:
        """Tokens."""
        return sum(piece.size for piece in self.pieces)


def rows(sequences: Sequences, cost: Cost, widest: int = WIDEST) -> list[PackedRow]:
    """Lay sequences out in rows, widest first.

    The width is the one of :data:`WIDTHS` (and of once to eight times a long sequence) with the least cost: wide rows
    repeat less, narrow ones attend to less that is masked. Many sequences are judged by a part of them.

    Args:
        sequences: What to run.
        cost: Of tokens and attention.
        widest: Most tokens of a row that holds more than one sequence.
    """
    if not len(sequences):
        return []
    lengths, shared = sequences.lengths.tolist(), sequences.shared.tolist()
    longest = max(lengths)
    typical = int(np.quantile(sequences.lengths, 0.99))  # a few long ones get rows of their own
    widths = {width for width in WIDTHS if width >= 2 * typical} | {even(longest)}
    widths |= {even(times * typical) for times in (1, 2, 4, 8)}
    widths = {width for width in widths if width <= widest} or {max(1, widest // 8 * 8)}
    sample = slice(0, len(lengths))
    if len(lengths) > _SAMPLE:
        middle = (len(lengths) - _SAMPLE) // 2
        sample = slice(middle, middle + _SAMPLE)

    best = min(sorted(widths), key=lambda width: price(_rows(lengths[sample], [0, *shared[sample][1:]], width), cost))
    return _rows(lengths, shared, best)


def price(laid: Sequence[PackedRow], cost: Cost) -> float:
    """Floating-point operations of rows, as estimated."""
    return sum(even(row.size) * (cost.token + cost.pair * even(row.size)) for row in laid)


def _rows(lengths: Sequence[int], shared: Sequence[int], width: int) -> list[PackedRow]:
    pieces = cut(lengths, shared, width)
    filled = fill([piece.size for piece in pieces], width)
    return sorted((PackedRow(tuple(pieces[i] for i in sorted(row))) for row in filled), key=lambda row: -row.size)


def even(width: int) -> int:
    """Up to a multiple of 8: what attention kernels want of a mask."""
    return -(-width // 8) * 8


@dataclass(frozen=True)
class Preorder:
    """Neighbouring sequences as the nodes of their trie, depth-first; the first one has all its tokens.

    Attributes:
        ids: Token of each node, shape (nodes,).
        depths: Position of each in its sequences, same shape.
        ends: One past its last descendant, same shape.
        needed: Nodes that the requests of each sequence need, one sequence after another.
        bounds: Where each sequence's part of ``needed`` begins, and the end, shape (sequences + 1,).
    """

    ids: npt.NDArray[np.int32]
    depths: Ints
    ends: Ints
    needed: Ints
    bounds: Ints


def preorder(sequences: Sequences, first: int, last: int, needed: Ints) -> Preorder:
    """The nodes of sequences ``first`` to ``last - 1``; ``needed`` last tokens of each of all sequences are."""
    starts = sequences.starts[first:last]
    lengths, shared = sequences.lengths[first:last], sequences.shared[first:last].copy()
    shared[0] = 0
    fresh = lengths - shared
    tips = np.cumsum(fresh)
    heads = tips - fresh
    nodes = np.arange(int(tips[-1]))
    depths = nodes - np.repeat(heads - shared, fresh)
    ids = sequences.tokens[np.repeat(starts, fresh) + depths]
    ends = np.full(len(nodes), len(nodes))
    needed_bounds = bounds(needed[first:last])
    needed_nodes = np.zeros(int(needed_bounds[-1]), np.int64)
    path = np.zeros(int(lengths.max()), np.int64)
    before = 0
    for common, length, head, tip, low, high in zip(
        *(array.tolist() for array in (shared, lengths, heads, tips, needed_bounds[:-1], needed_bounds[1:])),
        strict=True,
    ):
        ends[path[common:before]] = head
        path[common:length] = nodes[head:tip]
        needed_nodes[low:high] = path[length - (high - low) : length]
        before = length
    return Preorder(ids, depths, ends, needed_nodes, needed_bounds)


@dataclass
class RowArrays:
    """Rows as arrays.

    Attributes:
        ids: Token ids, shape (rows, width), 0 where there is none.
        depths: Position of each token in its sequence, same shape.
        ends: One past the last descendant of each token, same shape.
        nodes: Per sequence, where the tokens that its requests need stand, as indices into the flattened rows.
    """

    ids: Ints
    depths: Ints
    ends: Ints
    nodes: dict[int, Ints]


def lay(sequences: Sequences, batch: Sequence[PackedRow], needed: Ints) -> RowArrays:
    """The rows of one forward as arrays; ``needed`` last tokens of each sequence are."""
    width = even(max(row.size for row in batch))
    ids = np.zeros((len(batch), width), np.int64)
    depths = np.zeros_like(ids)
    ends = np.tile(np.arange(1, width + 1), (len(batch), 1))  # padding sees itself: attention to nothing is nan
    nodes: dict[int, Ints] = {}
    for number, row in enumerate(batch):
        at = 0
        for first, last, size in row.pieces:
            piece = preorder(sequences, first, last, needed)
            ids[number, at : at + size] = piece.ids
            depths[number, at : at + size] = piece.depths
            ends[number, at : at + size] = at + piece.ends
            parts = np.split(number * width + at + piece.needed, piece.bounds[1:-1])
            nodes.update(zip(range(first, last), parts, strict=True))
            at += size
    return RowArrays(ids, depths, ends, nodes)
