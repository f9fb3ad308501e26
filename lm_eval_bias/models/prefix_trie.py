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
        shared = np.zeros(len(self), np.int64)
        for k in range(1, len(self)):
            length = min(self.lengths[k - 1], self.lengths[k])
            differs = np.flatnonzero(self.ids(k - 1)[:length] != self.ids(k)[:length])
            shared[k] = differs[0] if len(differs) else length
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
    starts = np.cumsum([0, *(len(key) // 4 for key in distinct)])
    flat = np.frombuffer(b"".join(distinct), ">u4").astype(np.int32)
    return Sequences(flat, starts), sequence_of
