"""Plans prompts for an engine with a prefix cache, so that most tokens come from the cache.

Requests form a trie over token ids, and each of its tokens that belongs to a continuation is scored once. There are two
ways to ask. **Next tokens**: a prompt that ends where tokens branch off gives the log-probabilities of all of them.
This is cheapest where continuations are single words. **Rows**: a prompt gives the log-probabilities of its own last
tokens. This is cheapest where continuations are long. Tokens that come from the cache have no rows, so no row is asked
for right behind a block that another prompt may have left there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from lm_eval_bias.harness.internals import Pair
from lm_eval_bias.models.prefix_trie import Trie

Ids = tuple[int, ...]
MOST_CHILDREN = 128  # next tokens that vLLM gives log-probabilities of at a time


class PrefixPrompt(NamedTuple):
    """A prompt and the nodes of the trie that it answers.

    Attributes:
        tokens: The prompt.
        nodes: The nodes: children of its last token, or its own last tokens.
        children: Token ids of the children; empty if the prompt's own rows are asked.
    """

    tokens: Ids
    nodes: tuple[int, ...]
    children: Ids = ()

    @property
    def first(self) -> int:
        """The place of the first token whose row is wanted; fewer tokens than that may come from the cache."""
        return len(self.tokens) - (0 if self.children else len(self.nodes))


class Plan(NamedTuple):
    """All prompts for some requests.

    Attributes:
        prompts: Those of next tokens, then those of rows, each in the order of their tokens.
        scored: The nodes of each request's continuation.
    """

    prompts: list[PrefixPrompt]
    scored: list[list[int]]


def plan(pairs: Sequence[Pair], block: int) -> Plan:
    """Plan the prompts that answer requests.

    Args:
        pairs: Token ids of contexts and continuations, none of them empty.
        block: Tokens of a block of the engine's cache.

    >>> for prompt in plan([((1, 2), (3,)), ((1, 2), (4,)), ((1, 2), (5, 6))], 16).prompts:
    ...     print(prompt.tokens, prompt.children)
    (1, 2) (3, 4, 5)
    (1, 2, 5) (6,)
    """
    trie = Trie([(*context, *continuation) for context, continuation in pairs])
    paths = [path.tolist() for path in trie.paths]
    firsts = list(map(len, paths))
    for (context, _), k in zip(pairs, trie.sequence_of, strict=True):
        firsts[k] = min(firsts[k], len(context))
    covered = bytearray(len(trie))
    # by the last node of a context: the sequences scored behind it, each with its path, the first place that no other
    # sequence scores and how much it shares with a neighbour; and the scored tokens by what stands before them
    sequences = defaultdict(list)
    branches: dict[int, dict[Ids, dict[int, int]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for path, first, *neighbours in zip(
        paths, firsts, trie.shared.tolist(), [*trie.shared[1:].tolist(), 0], strict=True
    ):
        tokens = tuple(trie.tokens[path].tolist())
        fresh = [place for place in range(first, len(path)) if not covered[path[place]]]
        if fresh:
            sequences[path[first - 1]].append((tokens, path, fresh[0], max(neighbours)))
            for place in fresh:
                branches[path[first - 1]][tokens[:place]][tokens[place]] = path[place]
                covered[path[place]] = True
    children: dict[Ids, dict[int, int]] = defaultdict(dict)
    rows = []
    for node, members in sequences.items():
        if len(branches[node]) <= len(members):  # the fewest prompts
            for prefix, siblings in branches[node].items():
                children[prefix].update(siblings)
            continue
        for tokens, path, start, reached in members:
            # another prompt's block may end right before this row, whose predecessor would then come from the cache
            if start % block == 0 and reached >= start:
                children[tokens[:start]][tokens[start]] = path[start]
                start += 1
            if start < len(tokens):
                rows.append(PrefixPrompt(tokens, tuple(path[start:])))
    prompts = []
    for prefix, siblings in sorted(children.items()):
        tokens = tuple(siblings)
        nodes = tuple(siblings.values())
        for start in range(0, len(tokens), MOST_CHILDREN):
            asked = slice(start, start + MOST_CHILDREN)
            prompts.append(PrefixPrompt(prefix, nodes[asked], tokens[asked]))
    scored = [
        paths[k][len(context) :]
        for (context, _), k in zip(pairs, trie.sequence_of, strict=True)
    ]
    return Plan([*prompts, *sorted(rows)], scored)
