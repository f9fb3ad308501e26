"""Methods that run the trie, each token seeing its ancestors.

``Walk`` runs every node once: depth-first, keys and values of the path so far at hand. ``Trie`` keeps none, and runs
pieces of the trie that are one window each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import Cache, DynamicLayer

from lm_eval_bias.models.packed import attention_masks, layouts
from lm_eval_bias.models.packed.layouts import Layout
from lm_eval_bias.models.packed.packed_forwards import (
    ForwardOutput,
    Method,
    Network,
    Plain,
    numbered,
    trial_size,
)
from lm_eval_bias.models.prefix_trie import Ints, Sequences, bounds


@dataclass
class _Paths:
    """What all layers have to know of the rows' paths.

    Attributes:
        size: Rows and columns of the buffers.
        columns: Kept tokens in front of the current windows.
    """

    size: tuple[int, int]
    columns: int = 0


class _Layer(DynamicLayer):
    """Keys and values of each row's path, at their positions, with the windows' behind them."""

    def __init__(self, paths: _Paths) -> None:
        super().__init__()
        self.paths = paths
        self.keys: Any = None
        self.values: Any = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if self.keys is None:
            self.dtype, self.device, self.is_initialized = key_states.dtype, key_states.device, True
            rows, columns = self.paths.size
            self.keys, self.values = (
                state.new_zeros((rows, state.shape[1], columns, state.shape[3])) for state in (key_states, value_states)
            )
        rows, since = key_states.shape[0], self.paths.columns
        end = since + key_states.shape[2]
        self.keys[:rows, :, since:end] = key_states
        self.values[:rows, :, since:end] = value_states
        return self.keys[:rows, :, :end], self.values[:rows, :, :end]

    def get_seq_length(self) -> int:
        return self.paths.columns

    def move(self, rows: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor) -> None:
        """Move tokens of the windows to their positions in the paths."""
        for states in (self.keys, self.values):
            states[rows, :, targets] = states[rows, :, sources]


class Strand:
    """Neighbouring sequences as the nodes of their trie, depth-first, and where the walk along them stands.

    The first sequence has all its tokens. Node ``j`` is an ancestor of node ``i``, or ``i`` itself, where
    ``j <= i < ends[j]``.

    Attributes:
        first: The first sequence.
        ids: Token of each node, shape (nodes,).
        depths: Position of each in its sequences, same shape.
        ends: One past its last descendant, same shape.
        needed: Nodes that the requests of each sequence need, one sequence after another.
        bounds: Where each sequence's part of ``needed`` begins, and the end, shape (sequences + 1,).
        at: First node of the next window.
        completed: Sequences answered.
        pending: Earlier nodes whose logits are still needed.
    """

    def __init__(self, sequences: Sequences, first: int, last: int, needed: Ints) -> None:
        """Sequences ``first`` to ``last - 1``; ``needed`` last tokens of each of all sequences are."""
        starts, lengths = sequences.starts[first:last], sequences.lengths[first:last]
        shared = sequences.shared[first:last].copy()
        shared[0] = 0
        fresh = lengths - shared
        tips = np.cumsum(fresh)
        heads = tips - fresh
        nodes = np.arange(int(tips[-1]))
        self.first = first
        self.depths = nodes - np.repeat(heads - shared, fresh)
        self.ids = sequences.tokens[np.repeat(starts, fresh) + self.depths]
        self.ends = np.full(len(nodes), len(nodes))
        self.bounds = bounds(needed[first:last])
        self.needed = np.zeros(int(self.bounds[-1]), np.int64)
        path, before = np.zeros(int(lengths.max()), np.int64), 0
        arrays = (shared, lengths, heads, tips, self.bounds[:-1], self.bounds[1:])
        for common, length, head, tip, low, high in zip(*(array.tolist() for array in arrays), strict=True):
            self.ends[path[common:before]] = head
            path[common:length] = nodes[head:tip]
            self.needed[low:high] = path[length - (high - low) : length]
            before = length
        self.at = self.completed = 0
        self.pending = np.zeros(0, np.int64)
        self._last_use = np.full(len(nodes), -1)
        np.maximum.at(self._last_use, self.needed, np.repeat(np.arange(last - first), np.diff(self.bounds)))
        self._tips = self.needed[self.bounds[1:] - 1]

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self.ids)

    def needed_nodes(self, end: int) -> Ints:
        """Nodes from the current window whose logits are needed."""
        return self.at + np.flatnonzero(self._last_use[self.at : end] >= 0)

    def on_path(self, end: int) -> Ints:
        """Nodes of the current window on the path to the next one."""
        return self.at + np.flatnonzero(self.ends[self.at : end] > end)

    def finish(self, end: int, fresh: Ints, pending_at: int, fresh_at: int) -> tuple[dict[int, Ints], Ints]:
        """Go on to the window that begins at a node.

        The logits of ``self.pending`` begin at ``pending_at``, those of the fresh nodes at ``fresh_at``. Returned are,
        per sequence that is complete, where the logits are that it needs, and where those are that later ones need.
        """
        nodes = np.concatenate([self.pending, fresh])
        places = np.concatenate([pending_at + np.arange(len(self.pending)), fresh_at + np.arange(len(fresh))])
        completed = int(np.searchsorted(self._tips, end))
        parts_at = self.bounds[self.completed : completed + 1]
        needed_places = places[np.searchsorted(nodes, self.needed[parts_at[0] : parts_at[-1]])]
        parts = np.split(needed_places, parts_at[1:-1] - parts_at[0]) if completed > self.completed else []
        complete = dict(zip(range(self.first + self.completed, self.first + completed), parts, strict=True))
        later = self._last_use[nodes] >= completed
        self.at, self.completed, self.pending = end, completed, nodes[later]
        return complete, places[later]


class TrieMethod(Method):
    """A method of running stretches of the trie side by side, a window of each in a forward."""

    def __init__(self, network: Network, style: str = "single") -> None:
        """Run on this network with masks of this style (:func:`lm_eval_bias.models.packed.attention_masks.build`)."""
        super().__init__(network)
        self.style = style

    def _run(self, sequences: Sequences, needed: Ints, layout: Layout, apart: int = 0) -> Iterator[ForwardOutput]:
        """Run strands; ``apart`` places between the paths and the windows stay unused."""
        active = [Strand(sequences, first, last, needed) for first, last in layout.strands]
        columns = layout.columns + apart
        self.attended = max(self.attended, columns + layout.width)
        paths = _Paths((len(active), columns + layouts.even(layout.width)))
        keeps = apart or len(active[0]) > layout.width  # the longest one
        cache = Cache(layer_class_to_replicate=partial(_Layer, paths)) if keeps else None
        pending: torch.Tensor | None = None
        tokens = 0
        while active:
            ends = [min(strand.at + layout.width, len(strand)) for strand in active]
            fresh = [strand.needed_nodes(end) for strand, end in zip(active, ends, strict=True)]
            paths.columns = apart + max(int(strand.depths[strand.at]) for strand in active)
            logits = self._forward(active, ends, fresh, paths.columns, cache)
            tokens += sum(end - strand.at for strand, end in zip(active, ends, strict=True))
            if cache is not None:
                self._move(active, ends, paths.columns, cache)
            complete: dict[int, Ints] = {}
            later_places = []
            count = 0 if pending is None else len(pending)
            pending_at, fresh_at = 0, count
            for strand, end, nodes in zip(active, ends, fresh, strict=True):
                before = len(strand.pending)
                finished, places = strand.finish(end, nodes, pending_at, fresh_at)
                complete |= finished
                later_places.append(places)
                pending_at, fresh_at = pending_at + before, fresh_at + len(nodes)
            recent = {k: places - count for k, places in complete.items() if places[0] >= count}
            spanning = {k: places for k, places in complete.items() if k not in recent}
            if recent:
                yield ForwardOutput(recent, logits, tokens)
                tokens = 0
            if spanning:
                places, nodes_of = numbered(spanning)
                yield ForwardOutput(nodes_of, _pick(pending, logits, places), tokens)
                tokens = 0
            pending = _pick(pending, logits, np.concatenate(later_places))
            active = [strand for strand in active if strand.at < len(strand)]

    def _forward(
        self, active: list[Strand], ends: list[int], fresh: list[Ints], columns: int, cache: Cache | None
    ) -> torch.Tensor:
        """Logits of the windows' needed nodes, one strand after another."""
        network = self.network
        width = layouts.even(max(end - strand.at for strand, end in zip(active, ends, strict=True)))
        ids = np.zeros((len(active), width), np.int64)
        depths, before = np.zeros_like(ids), np.zeros_like(ids)
        last = np.tile(np.arange(1, width + 1), (len(active), 1))  # padding sees itself: attention to nothing is nan
        places = []
        for row, (strand, end, nodes) in enumerate(zip(active, ends, fresh, strict=True)):
            window, size = slice(strand.at, end), end - strand.at
            ids[row, :size] = strand.ids[window]
            depths[row, :size] = strand.depths[window]
            before[row, :size] = np.minimum.accumulate(strand.depths[window])
            last[row, :size] = np.minimum(strand.ends[window] - strand.at, size)
            places.append(row * width + nodes - strand.at)
        positions = network.tensor(depths)
        sees = positions, network.tensor(last), network.dtype, network.tensor(before), columns
        mask = attention_masks.build(network.model.config, self.style, *sees)
        inputs = {"position_ids": positions, "attention_mask": mask, "past_key_values": cache}
        return network.logits_at(np.concatenate(places), ids, use_cache=cache is not None, **inputs)

    def _move(self, active: list[Strand], ends: list[int], columns: int, cache: Cache) -> None:
        """Move the paths to the next windows' first nodes to the front."""
        paths = [strand.on_path(end) for strand, end in zip(active, ends, strict=True)]
        rows = np.repeat(np.arange(len(active)), [len(nodes) for nodes in paths])
        if not len(rows):
            return
        sources = np.concatenate([columns + nodes - s.at for s, nodes in zip(active, paths, strict=True)])
        targets = np.concatenate([s.depths[nodes] for s, nodes in zip(active, paths, strict=True)])
        at = [self.network.tensor(array) for array in (rows, sources, targets)]
        for layer in cache.layers:
            layer.move(*(index.to(layer.device) for index in at))


class Trie(TrieMethod):
    """Pieces of the trie, several in a forward; each runs its common beginnings once."""

    name = "trie"
    description = "every shared prefix runs once"

    def price(self, sequences: Sequences, budget: int) -> float:
        """See :meth:`Method.price`."""
        cost = self.network.cost
        return layouts.price(layouts.pieces_of(sequences, cost, budget, self.widest), cost, budget)

    def outputs(self, sequences: Sequences, needed: Ints, budget: int, most: int) -> Iterator[ForwardOutput]:
        """See :meth:`Method.outputs`."""
        pieces = layouts.pieces_of(sequences, self.network.cost, budget, self.widest)
        counts = [int(needed[first:last].sum()) for first, last, _ in pieces]
        for batch in layouts.batches([layouts.even(piece.size) for piece in pieces], counts, budget, most):
            strands = tuple(pieces[i][:2] for i in batch)
            yield from self._run(sequences, needed, Layout(strands, pieces[batch[0]].size, 0, 0.0))

    def trial_outputs(self, sequences: Sequences, needed: Ints) -> Iterator[ForwardOutput]:
        """All in one piece, where places and depths differ most."""
        return self._run(sequences, needed, Layout(((0, len(sequences)),), sequences.trie_size, 0, 0.0))


class Walk(TrieMethod):
    """Strands of the trie, the paths before their windows as keys and values."""

    name = "walk"
    description = "every shared token runs once"

    def __init__(self, network: Network, style: str = "single") -> None:
        """See :class:`TrieMethod`; ``instead`` is another method, for requests that it suits better."""
        super().__init__(network, style)
        self.instead: Method = Plain(network)

    def limit(self, windows: list[int]) -> None:
        """See :meth:`Method.limit`."""
        super().limit(windows)
        self.instead.limit(windows)

    def outputs(self, sequences: Sequences, needed: Ints, budget: int, most: int) -> Iterator[ForwardOutput]:
        """See :meth:`Method.outputs`."""
        layout = layouts.cheapest_strands(sequences, needed, self.network.cost, budget, most, self.widest)
        if layout is None or self.instead.price(sequences, budget) < layout.price:
            return self.instead.outputs(sequences, needed, budget, most)
        return self._run(sequences, needed, layout)

    def trial_outputs(self, sequences: Sequences, needed: Ints) -> Iterator[ForwardOutput]:
        """Two strands, windows that end within sequences, and so many unused places that none agrees with a depth."""
        layout = layouts.strands_of(sequences, 2, 24, self.network.cost)
        return self._run(sequences, needed, layout, apart=trial_size(sequences) // 8)


def _pick(pending: torch.Tensor | None, logits: torch.Tensor, places: Ints) -> torch.Tensor:
    """Pick rows of two tensors, numbered one after the other."""
    count = 0 if pending is None else len(pending)
    picked = logits.new_empty((len(places), logits.shape[-1]))
    is_pending = places < count
    for rows, indices, source in ((is_pending, places, pending), (~is_pending, places - count, logits)):
        if source is not None and rows.any():
            at, of = (torch.from_numpy(a).to(logits.device) for a in (np.flatnonzero(rows), indices[rows]))
            picked[at] = source[of]
    return picked
