"""Ways to get a model's logits at the needed places of many token sequences, the most sharing one first.

``Trie``: all that fits in one forward, each token seeing its ancestors. ``Cached``: what several sequences begin with
is run once, its keys and values serve all of them; right for attention models, also those that know no position ids.
``Plain``: every sequence by itself, as the ``hf`` backend runs it; right for every model. All project only what
is needed to the vocabulary.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from lm_eval_bias.models.packed import attention_masks, trie_layout
from lm_eval_bias.models.packed.trie_layout import Cost, Ints, Sequences


@dataclass
class Network:
    """A causal model and how to call it.

    Attributes:
        model: The transformers model, perhaps with an adapter.
        call: Runs it without gradients on keyword arguments; returns what the model returns.
        device: Of its inputs.
        dtype: Of its activations.
        cost: What its tokens cost.
        vocabulary: Number of logits a position has.
    """

    model: Any
    call: Callable[..., Any]
    device: torch.device
    dtype: torch.dtype
    cost: Cost
    vocabulary: int


@dataclass
class Part:
    """What one forward did.

    Attributes:
        nodes: Per sequence, rows of ``logits``: its needed tokens in order.
        logits: Shape (needed tokens, vocabulary).
        tokens: How many tokens were run, padding aside.
    """

    nodes: dict[int, Ints]
    logits: torch.Tensor
    tokens: int


@contextlib.contextmanager
def gathered(model: Any, places: torch.Tensor, width: int) -> Iterator[list[bool]]:
    """Have the output projection run at some places only; what follows it (soft-caps, scales) is untouched.

    Args:
        model: A model with output embeddings.
        places: Indices into the flattened (rows, width) inputs.
        width: Tokens per row; a model may put virtual ones in front.

    Yields:
        A list that is no longer empty once the projection ran so.
    """
    done: list[bool] = []

    def pick(module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden = inputs[0]
        if hidden.dim() != 3 or hidden.shape[1] < width:
            return inputs
        done.append(True)
        here = places.to(hidden.device)
        if hidden.shape[1] > width:
            here = here // width * hidden.shape[1] + here % width + (hidden.shape[1] - width)
        return hidden.reshape(-1, hidden.shape[-1])[here][None], *inputs[1:]

    head = model.get_output_embeddings()
    if head is None:
        yield done
        return
    handle = head.register_forward_pre_hook(pick)
    try:
        yield done
    finally:
        handle.remove()


def logits_at(network: Network, places: Ints, width: int, **inputs: Any) -> torch.Tensor:
    """Run a network and project some places to the vocabulary.

    Args:
        network: The network.
        places: Indices into the flattened (rows, width) inputs.
        width: Tokens per row.
        inputs: Of the model.

    Returns:
        Shape (places, vocabulary).
    """
    at = torch.from_numpy(places).to(network.device)
    with gathered(network.model, at, width) as done:
        logits: torch.Tensor = network.call(**inputs).logits
    if done:
        return logits[0]
    front = logits.shape[1] - width
    return logits[:, front:].reshape(-1, logits.shape[-1])[at.to(logits.device)]


def numbered(nodes: dict[int, Ints]) -> tuple[Ints, dict[int, Ints]]:
    """Places that several sequences need, once each, and where each sequence finds its own."""
    places, back = np.unique(np.concatenate(list(nodes.values())), return_inverse=True)
    ends = np.cumsum([len(part) for part in nodes.values()])
    return places, dict(zip(nodes, np.split(back, ends[:-1]), strict=True))


def _batches(sizes: Sequence[int], needs: Sequence[int], budget: int, most: int) -> Iterator[list[int]]:
    """Neighbours together up to a budget of tokens, padding included, and a number of needed ones."""
    batch: list[int] = []
    width = need = 0
    for i, size in enumerate(sizes):
        width_then, need_then = max(width, size), need + needs[i]
        if batch and (width_then * (len(batch) + 1) > budget or need_then > most):
            yield batch
            batch, width_then, need_then = [], size, needs[i]
        batch.append(i)
        width, need = width_then, need_then
    if batch:
        yield batch


class Way(ABC):
    """One way of running sequences."""

    name = ""
    what = ""

    def __init__(self, network: Network) -> None:
        """Run on this network.

        ``widest`` caps the tokens that one attends over: a model's own window may count places in the row, which no
        mask can mend. ``seen`` is the most so far.
        """
        self.network = network
        self.widest = trie_layout.WIDEST
        self.seen = 0

    def hardest(self, tokens: int) -> Way:
        """This way as it is most likely to go wrong: for trials of so many tokens."""
        return self

    def limit(self, windows: list[int]) -> None:
        """Attend over no more than those of a model's windows that were not tried."""
        self.widest = min([self.widest, *(window for window in windows if window >= self.seen)])

    def price(self, sequences: Sequences, budget: int) -> float:
        """Floating-point operations, as estimated, of running sequences; infinite where nobody has to know."""
        return math.inf

    @abstractmethod
    def parts(self, sequences: Sequences, needed: Ints, budget: int, most: int) -> Iterator[Part]:
        """Run sequences, each in one part.

        Args:
            sequences: What to run.
            needed: How many last tokens of each sequence need logits.
            budget: Tokens of a forward.
            most: Needed tokens of a forward, as far as one row allows.
        """


class Trie(Way):
    """Common beginnings once, several pieces of the trie in a row, several rows in a forward."""

    name = "trie"
    what = "every common beginning runs once"

    def __init__(self, network: Network, style: str = "single") -> None:
        """Run on this network with masks of this style (:func:`lm_eval_bias.models.packed.attention_masks.styles`)."""
        super().__init__(network)
        self.style = style

    def hardest(self, tokens: int) -> Trie:
        """All in one row, where places and depths differ most."""
        way = Trie(replace(self.network, cost=trie_layout.Cost(1.0, 0.0)), self.style)
        way.widest = tokens
        return way

    def price(self, sequences: Sequences, budget: int) -> float:
        """See :meth:`Way.price`."""
        return trie_layout.price(self._rows(sequences, budget), self.network.cost)

    def _rows(self, sequences: Sequences, budget: int) -> list[trie_layout.Row]:
        return trie_layout.rows(sequences, self.network.cost, min(self.widest, budget))

    def parts(self, sequences: Sequences, needed: Ints, budget: int, most: int) -> Iterator[Part]:
        """See :meth:`Way.parts`."""
        rows = self._rows(sequences, budget)
        self.seen = max(self.seen, max((row.size for row in rows), default=0))
        needs = [sum(int(needed[first:last].sum()) for first, last, _ in row.pieces) for row in rows]
        sizes = [trie_layout.even(row.size) for row in rows]
        for batch in _batches(sizes, needs, budget, most):
            yield self._part(sequences, [rows[i] for i in batch], needed)

    def _part(self, sequences: Sequences, rows: list[trie_layout.Row], needed: Ints) -> Part:
        network = self.network
        laid = trie_layout.lay(sequences, rows, needed)
        places, nodes = numbered(laid.nodes)
        ids, depths, ends = (torch.from_numpy(a).to(network.device) for a in (laid.ids, laid.depths, laid.ends))
        mask = attention_masks.build(network.model.config, self.style, depths, ends, network.dtype)
        logits = logits_at(
            network,
            places,
            ids.shape[1],
            input_ids=ids,
            position_ids=depths,
            attention_mask=mask,
            use_cache=False,
        )
        return Part(nodes, logits, sum(row.size for row in rows))


class Plain(Way):
    """Each sequence by itself, right-padded; one that another goes on from is read off the longer one."""

    name = "rows"
    what = "logits at the needed places only, nothing shared"

    def __init__(self, network: Network, alone: bool = False) -> None:
        """Run on this network.

        Args:
            network: The network.
            alone: Whether each sequence gets a forward of its own.
        """
        super().__init__(network)
        self.alone = alone

    def parts(self, sequences: Sequences, needed: Ints, budget: int, most: int) -> Iterator[Part]:
        """See :meth:`Way.parts`."""
        lengths = sequences.lengths
        # the sequence after it begins with all of it
        inside = np.zeros(len(sequences), bool)
        if not self.alone:
            inside[:-1] = sequences.shared[1:] == lengths[:-1]
        last = np.flatnonzero(~inside)
        first = np.concatenate([[0], last[:-1] + 1]) if len(last) else last
        order = np.lexsort((last, -lengths[last])).tolist()
        sizes = [int(lengths[last[i]]) for i in order]
        needs = [int(needed[first[i] : last[i] + 1].sum()) for i in order]
        for batch in _batches(sizes, needs, 1 if self.alone else budget, most):
            yield self._part(sequences, [(int(first[order[i]]), int(last[order[i]])) for i in batch], needed)

    def _part(self, sequences: Sequences, chosen: list[tuple[int, int]], needed: Ints) -> Part:
        lengths = sequences.lengths
        width = max(int(lengths[last]) for _, last in chosen)
        ids = np.zeros((len(chosen), width), np.int64)
        nodes: dict[int, Ints] = {}
        for row, (first, last) in enumerate(chosen):
            ids[row, : lengths[last]] = sequences.ids(last)
            for k in range(first, last + 1):
                nodes[k] = row * width + np.arange(lengths[k] - needed[k], lengths[k])
        places, nodes = numbered(nodes)
        inputs = torch.from_numpy(ids).to(self.network.device)
        logits = logits_at(self.network, places, width, input_ids=inputs, use_cache=False)
        return Part(nodes, logits, sum(int(lengths[last]) for _, last in chosen))


class Cached(Way):
    """What several sequences begin with runs once; its keys and values are handed to each of them."""

    name = "cache"
    what = "common beginnings run once, through the key-value cache"

    def parts(self, sequences: Sequences, needed: Ints, budget: int, most: int) -> Iterator[Part]:
        """See :meth:`Way.parts`."""
        lengths = sequences.lengths
        groups = groups_of(lengths.tolist(), sequences.shared.tolist(), needed.tolist())
        order = sorted(range(len(groups)), key=lambda i: (-groups[i][2], i))
        batch: list[tuple[int, int, int]] = []
        for number, i in enumerate(order):
            batch.append(groups[i])
            following = groups[order[number + 1]] if number + 1 < len(order) else None
            if following is None or following[2] != batch[0][2] or self._size(lengths, [*batch, following]) > budget:
                yield from self._parts(sequences, batch, needed, budget, most)
                batch = []

    @staticmethod
    def _size(lengths: Ints, batch: list[tuple[int, int, int]]) -> int:
        members = sum(last - first for first, last, _ in batch)
        return members * max(int(lengths[first:last].max()) for first, last, _ in batch)

    def _parts(
        self, sequences: Sequences, batch: list[tuple[int, int, int]], needed: Ints, budget: int, most: int
    ) -> Iterator[Part]:
        common = batch[0][2]
        if not common:
            chosen = np.concatenate([np.arange(first, last) for first, last, _ in batch])
            alone = Plain(self.network)
            for part in alone.parts(sequences.subset(chosen), needed[chosen], budget, most):
                part.nodes = {int(chosen[k]): places for k, places in part.nodes.items()}
                yield part
            return
        network = self.network
        heads = torch.from_numpy(np.stack([sequences.ids(first)[:common] for first, *_ in batch]).astype(np.int64))
        with gathered(network.model, torch.zeros(1, dtype=torch.int64), common):
            cache = network.call(input_ids=heads.to(network.device), use_cache=True).past_key_values
        members = [(group, k) for group, (first, last, _) in enumerate(batch) for k in range(first, last)]
        width = max(int(sequences.lengths[k]) for _, k in members) - common
        ids = np.zeros((len(members), width), np.int64)
        nodes: dict[int, Ints] = {}
        for row, (_, k) in enumerate(members):
            tail = sequences.ids(k, common)
            ids[row, : len(tail)] = tail
            nodes[k] = row * width + np.arange(len(tail) - int(needed[k]), len(tail))
        cache.batch_select_indices(torch.tensor([group for group, _ in members], device=network.device))
        places, nodes = numbered(nodes)
        inputs = torch.from_numpy(ids).to(network.device)
        everything = torch.ones((len(members), common + width), dtype=torch.int64, device=network.device)
        logits = logits_at(
            network, places, width, input_ids=inputs, attention_mask=everything, past_key_values=cache, use_cache=True
        )
        tails = sum(int(sequences.lengths[k]) - common for _, k in members)
        yield Part(nodes, logits, tails + common * len(batch))


def groups_of(lengths: Sequence[int], shared: Sequence[int], needed: Sequence[int]) -> list[tuple[int, int, int]]:
    """Neighbours that save most with one common beginning, found by going on while the saving grows.

    No needed token is part of a common beginning, and every sequence goes on after it.

    Args:
        lengths: Tokens per sequence.
        shared: Tokens in common with the sequence before.
        needed: How many last tokens of each need logits.

    Returns:
        ``(first sequence, one past the last, common tokens)`` per group, in order.

    >>> groups_of([5, 5, 5, 4], [0, 4, 4, 1], [1, 1, 1, 1])
    [(0, 3, 4), (3, 4, 0)]
    """
    groups: list[tuple[int, int, int]] = []
    first, common = 0, 0
    for k in range(len(lengths)):
        free = lengths[k] - needed[k]
        if k > first:
            size = k - first
            before = min(lengths[first] - needed[first], lengths[first] - 1) if size == 1 else common
            then = min(before, shared[k], free)
            if then * size > (common * (size - 1) if size > 1 else 0):
                common = then
                continue
            groups.append((first, k, common if size > 1 else 0))
        first, common = k, 0
    if lengths:
        groups.append((first, len(lengths), common if len(lengths) - first > 1 else 0))
    return groups
