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
Likelihood = tuple[
    float, bool
]  # log-likelihood, and whether the continuation is greedy
Likelihoods = list[Likelihood]


class Trie:
    """The nodes of token sequences: each is a beginning that some of them have in common.

    Attributes:
        sequence_of: Which of the distinct sequences, sorted, each input is.
        paths: Nodes of the tokens of each of these.
        shared: How many first tokens each has in common with the one before it, shape (n,).
        heads: The first new node of each, and the number of nodes, shape (n + 1,).
        tokens: Token of each node, shape (nodes,).
        depths: Number of its ancestors, same shape.
        ends: One past its last descendant, same shape.
    """

    def __init__(self, inputs: Iterable[Sequence[int]]) -> None:
        """Build the trie; time and memory are linear in the number of tokens, sorting aside.

        >>> trie = Trie([[5, 7], [5, 6, 9], [5, 7], [5]])
        >>> trie.tokens.tolist(), trie.depths.tolist(), trie.ends.tolist(), trie.sequence_of
        ([5, 6, 9, 7], [0, 1, 2, 1], [4, 3, 3, 4], [2, 1, 2, 0])
        """
        # big-endian bytes sort as the numbers do, a beginning before its continuations
        keys = [struct.pack(f">{len(ids)}I", *ids) for ids in inputs]
        distinct = sorted(set(keys))
        rank = {key: k for k, key in enumerate(distinct)}
        self.sequence_of = [rank[key] for key in keys]
        path = np.zeros(0, np.int32)
        paths = []
        tokens = []
        shared = []
        heads = [0]
        for before, key in pairwise([b"", *distinct]):
            earlier, ids = (np.frombuffer(each, ">u4") for each in (before, key))
            length = min(len(earlier), len(ids))
            differs = np.flatnonzero(earlier[:length] != ids[:length])
            common = int(np.append(differs, length)[0])
            heads.append(heads[-1] + len(ids) - common)
            fresh = np.arange(*heads[-2:], dtype=np.int32)
            path = np.append(path[:common], fresh)
            paths.append(path)
            tokens.append(ids[common:])
            shared.append(common)
        self.paths, self.shared, self.heads = paths, np.array(shared), np.array(heads)
        self.tokens = np.concatenate(tokens).astype(np.int32)
        lengths = list(map(len, paths))
        self.depths = np.concatenate(list(map(np.arange, shared, lengths)))
        self.ends = np.empty(heads[-1], np.int64)
        for path, tip in zip(paths, heads[1:], strict=True):
            self.ends[path] = tip  # the last one that has it counts

    def __len__(self) -> int:
        """Return the number of nodes: the fewest tokens that have to be run."""
        return len(self.tokens)

    def tails(self, counts: Sequence[int]) -> Ints:
        """Return the nodes of the last ``counts[i]`` tokens of each input ``i``, one input after another."""
        paths = [self.paths[k] for k in self.sequence_of]
        return np.concatenate(
            [
                path[len(path) - count :]
                for path, count in zip(paths, counts, strict=True)
            ]
        )

    def strand(self, first: int, last: int) -> Ints:
        """Return the path to the first new node of ``first``, and all new nodes of sequences up to ``last - 1``."""
        path = self.paths[first][: self.shared[first]]
        return np.append(path, np.arange(self.heads[first], self.heads[last]))


def fitted(requests: Sequence[Request], limit: int) -> list[Pair]:
    """Cut the beginnings of contexts that, with their continuations, are longer than a model's limit, and warn of it.

    Args:
        requests: The requests.
        limit: Most tokens that the model reads; a request's last one needn't be read.

    Raises:
        BiasError: A request without a context or continuation, or without room for a context.
    """
    pairs = []
    cut = 0
    for _, context, continuation in requests:
        room = limit + 1 - len(continuation)
        if room < 1 or not context or not continuation:
            raise BiasError(
                f"a request with {len(context)} context and {len(continuation)} continuation tokens; each needs at "
                f"least one, and the model reads at most {limit}"
            )
        if len(context) > room:
            context = context[-room:]
            cut += 1
        pairs.append((context, continuation))
    if cut:
        logger.warning(
            "%s requests are longer than the model's limit of %s tokens: their beginnings are cut off",
            cut,
            limit,
        )
    return pairs
