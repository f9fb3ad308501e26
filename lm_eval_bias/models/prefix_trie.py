"""The trie of token sequences: sorted sequences list its nodes in depth-first order.

The beginning that a sequence shares with the one before it is in the trie already; its other tokens are new nodes.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.harness.internals import Ids, Pair

logger = logging.getLogger("lm_eval.bias")
Ints = npt.NDArray[np.int64]
# key in the cache, context, continuation
Request = tuple[tuple[str, str] | None, Ids, Ids]
Answer = tuple[float, bool]  # log-likelihood, and whether the continuation is greedy
Answers = list[Answer]


class Trie:
    """The nodes of token sequences: each is a beginning that some of them have in common.

    Attributes:
        sequence_of: Which of the distinct sequences, sorted, each input is.
        starts: Where each of these begins in ``nodes``, and the end, shape (n + 1,).
        nodes: Node of each token, one sequence after another, shape (sum of lengths,).
        shared: How many first tokens each has in common with the one before it, shape (n,).
        heads: The first new node of each, and the number of nodes, shape (n + 1,).
        tokens: Token of each node, shape (nodes,).
        depths: Number of its ancestors, same shape.
        ends: One past its last descendant, same shape.
    """

    def __init__(self, inputs: Iterable[Sequence[int]]) -> None:
        """Sort the distinct sequences; time and memory are linear in the number of tokens, sorting aside.

        >>> trie = Trie([[5, 7], [5, 6, 9], [5, 7], [5]])
        >>> trie.tokens.tolist(), trie.depths.tolist(), trie.ends.tolist(), trie.sequence_of
        ([5, 6, 9, 7], [0, 1, 2, 1], [4, 3, 3, 4], [2, 1, 2, 0])
        """
        # big-endian bytes sort as the numbers do, a beginning before its continuations
        keys = [struct.pack(f">{len(ids)}I", *ids) for ids in inputs]
        distinct = sorted(set(keys))
        rank = {key: k for k, key in enumerate(distinct)}
        self.sequence_of = [rank[key] for key in keys]
        self.starts = np.cumsum([0, *(len(key) // 4 for key in distinct)])
        tokens = np.frombuffer(b"".join(distinct), ">u4")
        del keys, distinct, rank  # as large as the tokens
        self.nodes = np.empty(len(tokens), np.int32)
        shared, heads, before = [], [0], 0
        bounds = list(pairwise(self.starts.tolist()))
        for start, end in bounds:
            length = min(start - before, end - start)
            differs = tokens[before : before + length] != tokens[start : start + length]
            common = int(np.append(np.flatnonzero(differs), length)[0])
            heads.append(heads[-1] + end - start - common)
            self.nodes[start : start + common] = self.nodes[before : before + common]
            self.nodes[start + common : end] = np.arange(*heads[-2:])
            shared.append(common)
            before = start
        self.shared, self.heads = np.array(shared), np.array(heads)
        self.ends = np.empty(heads[-1], np.int64)
        for (start, end), tip in zip(bounds, heads[1:], strict=True):
            self.ends[self.nodes[start:end]] = tip  # the last one that has it counts
        lengths = np.diff(self.starts)
        self.depths = np.concatenate(list(map(np.arange, shared, lengths)))
        places = np.repeat(self.starts[:-1], np.diff(heads)) + self.depths
        self.tokens = tokens[places].astype(np.int32)

    def __len__(self) -> int:
        """Return the number of nodes: the fewest tokens that have to be run."""
        return len(self.tokens)

    def tails(self, counts: Sequence[int]) -> Ints:
        """Return the nodes of the last ``counts[i]`` tokens of each input ``i``, one input after another."""
        ends = self.starts[1:][self.sequence_of].tolist()
        return np.concatenate(
            [
                self.nodes[end - count : end]
                for end, count in zip(ends, counts, strict=True)
            ]
        )

    def strand(self, first: int, last: int) -> Ints:
        """Return the path to the first new node of ``first``, and all new nodes of sequences up to ``last - 1``."""
        start = self.starts[first]
        path = self.nodes[start : start + self.shared[first]]
        return np.append(path, np.arange(self.heads[first], self.heads[last]))


def fitted(requests: Sequence[Request], limit: int, unread: int = 0) -> list[Pair]:
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
