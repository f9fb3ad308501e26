"""What to ask an engine with a prefix cache for log-likelihoods: few prompts, of which its cache serves most tokens.

Requests form a trie over token ids, and each of its tokens that belongs to a continuation is scored once. There are two
ways to ask. **Next tokens**: a prompt that ends where tokens branch off gives the log-probabilities of all of them,
which takes least where continuations are single words. **Rows**: a prompt gives the log-probabilities of its own last
tokens, which takes least where continuations are long. Rows of tokens that come from the cache are missing: no row is
asked right behind a block that another prompt may have left there.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

Ids = tuple[int, ...]
MOST_CHILDREN = 128  # next tokens that vLLM gives log-probabilities of at a time
# what a prompt and a row cost, in tokens that are run: on a CPU, with a small model
_PROMPT, _ROW = 8.0, 0.5


class PrefixPrompt(NamedTuple):
    """What is asked at once.

    Attributes:
        tokens: The prompt.
        nodes: The trie's nodes that are answered: children of its last token, or its own last tokens.
        children: Token ids of the children; empty where the prompt's own rows are asked.
    """

    tokens: Ids
    nodes: tuple[int, ...]
    children: Ids = ()

    @property
    def first(self) -> int:
        """The place of the first token whose row is asked: so many tokens less one may come from the cache."""
        return len(self.tokens) - (0 if self.children else len(self.nodes))


class Plan(NamedTuple):
    """All prompts for some requests.

    Attributes:
        prompts: Those of next tokens, then those of rows, each in the order of their tokens.
        scored: The nodes of each request's continuation.
        nodes: Number of the trie's nodes: tokens that have to be run at least.
    """

    prompts: list[PrefixPrompt]
    scored: list[list[int]]
    nodes: int


class _Sequence(NamedTuple):
    """A distinct sequence of tokens.

    Attributes:
        tokens: The tokens.
        path: The trie's node of each.
        shared: How many tokens it has in common with the sequence before it.
        first: The place of the first token that is scored.
    """

    tokens: Ids
    path: list[int]
    shared: int
    first: int


def _sequences(pairs: Sequence[tuple[Ids, Ids]]) -> tuple[list[_Sequence], int]:
    """The distinct sequences in order, and the number of nodes of their trie."""
    first_by_tokens: dict[Ids, int] = {}
    for context, continuation in pairs:
        tokens = (*context, *continuation)
        first_by_tokens[tokens] = min(len(context), first_by_tokens.get(tokens, len(context)))
    sequences: list[_Sequence] = []
    before: Ids = ()
    path: list[int] = []
    number = 0
    for tokens in sorted(first_by_tokens):
        shared = len(os.path.commonprefix([tokens, before]))
        path = [*path[:shared], *range(number, number + len(tokens) - shared)]
        number += len(tokens) - shared
        sequences.append(_Sequence(tokens, path, shared, first_by_tokens[tokens]))
        before = tokens
    return sequences, number


def _run(length: int, known: int, block: int) -> int:
    """Tokens of a prompt that are run: the cache holds whole blocks, and never the last token."""
    return length - min(known, length - 1) // block * block


class _Branches:
    """What is scored behind one context: pairs of a sequence and the first place in it that no other one scores."""

    def __init__(self) -> None:
        self.rows: list[tuple[_Sequence, int]] = []
        self.children: dict[Ids, dict[int, int]] = defaultdict(dict)  # by prefix: node by token
        self._cost_of_rows = self._cost_of_children = 0.0

    def add(self, sequence: _Sequence, start: int, fresh: Sequence[int], block: int) -> None:
        """Add a sequence.

        Args:
            sequence: The sequence.
            start: The first place of what is scored in it.
            fresh: The places of all that is.
            block: Tokens of a block of the cache.
        """
        self.rows.append((sequence, start))
        known = min(sequence.shared, start - 1)
        self._cost_of_rows += _PROMPT + (1 + _ROW) * _run(len(sequence.tokens), known, block)
        for place in fresh:
            siblings = self.children[sequence.tokens[:place]]
            siblings[sequence.tokens[place]] = sequence.path[place]
            if len(siblings) % MOST_CHILDREN == 1:
                known = sequence.shared if place == start else place - 1
                self._cost_of_children += _PROMPT + _ROW + _run(place, known, block)

    @property
    def is_cheaper_by_rows(self) -> bool:
        """Whether prompts of rows cost less than those of next tokens."""
        return self._cost_of_rows < self._cost_of_children


def _branches(sequences: Sequence[_Sequence], nodes: int, block: int) -> Iterator[_Branches]:
    covered = bytearray(nodes)
    by_context: dict[int, _Branches] = defaultdict(_Branches)
    for sequence in sequences:
        fresh = [i for i in range(sequence.first, len(sequence.tokens)) if not covered[sequence.path[i]]]
        if fresh:
            by_context[sequence.path[sequence.first - 1]].add(sequence, fresh[0], fresh, block)
            for place in fresh:
                covered[sequence.path[place]] = True
    yield from by_context.values()


def plan(pairs: Sequence[tuple[Ids, Ids]], block: int) -> Plan:
    """The prompts that answer requests.

    Args:
        pairs: Token ids of contexts and continuations, none of them empty.
        block: Tokens of a block of the engine's cache.

    >>> for prompt in plan([((1, 2), (3,)), ((1, 2), (4,)), ((1, 2), (5, 6))], 16).prompts:
    ...     print(prompt.tokens, prompt.children)
    (1, 2) (3, 4, 5)
    (1, 2, 5) (6,)
    """
    sequences, nodes = _sequences(pairs)
    reached = {one.tokens: max(one.shared, other.shared) for one, other in zip(sequences, sequences[1:], strict=False)}
    children: dict[Ids, dict[int, int]] = defaultdict(dict)
    rows = []
    for branches in _branches(sequences, nodes, block):
        if not branches.is_cheaper_by_rows:
            for prefix, siblings in branches.children.items():
                children[prefix].update(siblings)
            continue
        for sequence, start in branches.rows:
            # another prompt's blocks may end right before this row: its token's predecessor would come from the cache
            if start % block == 0 and reached.get(sequence.tokens, sequence.shared) >= start:
                children[sequence.tokens[:start]][sequence.tokens[start]] = sequence.path[start]
                start += 1
            if start < len(sequence.tokens):
                rows.append(PrefixPrompt(sequence.tokens, tuple(sequence.path[start:])))
    prompts = [
        PrefixPrompt(prefix, nodes_of, tokens)
        for prefix, siblings in sorted(children.items())
        for tokens, nodes_of in _portions(siblings)
    ]
    path_by_tokens = {one.tokens: one.path for one in sequences}
    scored = [path_by_tokens[(*context, *continuation)][len(context) :] for context, continuation in pairs]
    return Plan([*prompts, *sorted(rows)], scored, nodes)


def _portions(siblings: dict[int, int]) -> Iterator[tuple[Ids, tuple[int, ...]]]:
    """Children and their nodes, so many at a time as can be asked."""
    tokens, nodes = list(siblings), list(siblings.values())
    for start in range(0, len(tokens), MOST_CHILDREN):
        yield tuple(tokens[start : start + MOST_CHILDREN]), tuple(nodes[start : start + MOST_CHILDREN])


def summed(answers: Sequence[tuple[float, bool]]) -> tuple[float, bool]:
    """A continuation's log-likelihood from those of its tokens, and whether each is the greedy one."""
    return math.fsum(answer[0] for answer in answers), all(answer[1] for answer in answers)
