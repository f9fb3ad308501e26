"""The trie of token sequences: sorted sequences list its nodes in depth-first order.

The beginning that a sequence shares with the one before it is in the trie already; its other tokens are new nodes.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lm_eval_bias.core.errors import BiasError

logger = logging.getLogger("lm_eval.bias")
Ints = npt.NDArray[np.int64]
# key in the cache, context, continuation
Request = tuple[tuple[str, str] | None, list[int], list[int]]
Answer = tuple[float, bool]  # log-likelihood, and whether the continuation is greedy


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
        """Return the number of sequences."""
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
        """How many new nodes each adds to the trie, shape (n,)."""
        return self.lengths - self.shared

    @cached_property
    def heads(self) -> Ints:
        """The first new node of each, shape (n,)."""
        return np.cumsum(self.fresh) - self.fresh

    @property
    def trie_size(self) -> int:
        """Number of the trie's nodes: the fewest tokens that have to be run."""
        return int(self.fresh.sum())

    def depths(self, nodes: Ints) -> Ints:
        """Count the ancestors of each of some nodes, an array of any shape."""
        sequence = np.searchsorted(self.heads, nodes, side="right") - 1
        return nodes - self.heads[sequence] + self.shared[sequence]

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
    # big-endian bytes sort as the numbers do, a beginning before its continuations
    keys = [struct.pack(f">{len(ids)}I", *ids) for ids in inputs]
    distinct = sorted(set(keys))
    rank = {key: k for k, key in enumerate(distinct)}
    sequence_of = np.fromiter((rank[key] for key in keys), np.int64, len(keys))
    starts = np.cumsum([0, *(len(key) // 4 for key in distinct)])
    flat = np.frombuffer(b"".join(distinct), ">u4").astype(np.int32)
    return Sequences(flat, starts), sequence_of


def fitted(
    requests: Sequence[Request], limit: int, unread: int = 0
) -> list[tuple[list[int], list[int]]]:
    """Cut the beginnings of contexts that, with their continuations, are longer than a model's limit, and warn of it.

    Args:
        requests: The requests.
        limit: Most tokens that the model reads.
        unread: How many last tokens of a request needn't be read.

    Raises:
        BiasError: A request without a context or continuation, or without room for a context.
    """
    pairs, cut = [], 0
    for _, context, continuation in requests:
        room = limit + unread - len(continuation)
        if room < 1 or not context or not continuation:
            raise BiasError(
                f"a request with {len(context)} context and {len(continuation)} continuation tokens; each needs at "
                f"least one, and the model reads at most {limit}"
            )
        if len(context) > room:
            context, cut = context[-room:], cut + 1
        pairs.append((context, continuation))
    if cut:
        logger.warning(
            "%s requests are longer than the model's limit of %s tokens: their beginnings are cut off",
            cut,
            limit,
        )
    return pairs
