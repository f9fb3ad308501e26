"""The trie of token sequences' beginnings: sorted, they are its nodes in depth-first order.

What a sequence has in common with the one before it stands there already, the rest of it are nodes of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_CHUNK = 1 << 22  # tokens compared at a time


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
            before = flat[ranges(starts[first:last], counts)]
            after = flat[ranges(starts[first + 1 : last + 1], counts)]
            differs = np.where(before == after, np.repeat(counts, counts), ranges(np.zeros_like(counts), counts))
            shared[first + 1 : last + 1] = np.minimum.reduceat(differs, np.cumsum(counts) - counts)
            first = last
        return shared

    @cached_property
    def fresh(self) -> Ints:
        """How many nodes of the trie are each one's own, shape (n,)."""
        return self.lengths - self.shared

    @cached_property
    def heads(self) -> Ints:
        """The first node that is each one's own, shape (n,)."""
        return np.cumsum(self.fresh) - self.fresh

    @property
    def trie_size(self) -> int:
        """Number of the trie's nodes: tokens that have to be run at least."""
        return int(self.fresh.sum())

    def depths(self, nodes: Ints) -> Ints:
        """How many ancestors nodes have, which may be of any shape."""
        own = np.searchsorted(self.heads, nodes, side="right") - 1
        return nodes - self.heads[own] + self.shared[own]

    def ids(self, k: int) -> npt.NDArray[np.int32]:
        """Return the tokens of sequence ``k``."""
        return self.tokens[self.starts[k] : self.starts[k + 1]]

    def subset(self, indices: Ints) -> Sequences:
        """Some of them, in the same order."""
        if len(indices) == len(self):
            return self
        tokens = [self.ids(k) for k in indices.tolist()]
        return Sequences(np.concatenate(tokens) if tokens else np.zeros(0, np.int32), bounds(self.lengths[indices]))


def bounds(lengths: Ints) -> Ints:
    """Where parts that stand one after another begin, and the end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def ranges(starts: Ints, counts: Ints) -> Ints:
    """Count on from each start, one range after another.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    return np.arange(int(counts.sum())) + np.repeat(starts - (np.cumsum(counts) - counts), counts)


def arrange(inputs: Iterable[Sequence[int]]) -> tuple[Sequences, Ints]:
    """Sort the distinct token sequences, and tell which of them each input is.

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
