"""Runs every node of the requests' trie once, in strands that are walked side by side.

A strand is a stretch of nodes in depth-first order. All ancestors of a strand's nodes are in the strand itself or on
the path to its first node. The keys and values of that path are kept, so that a window of a strand, of whatever width,
runs each of its nodes once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import Cache, DynamicLayer

from lm_eval_bias.models.packed import attention_masks
from lm_eval_bias.models.packed.packed_forwards import ForwardOutput, Network
from lm_eval_bias.models.prefix_trie import Ints, Sequences

WIDTHS = (32, 64, 128, 256, 512)  # of a strand's windows
WIDEST = 8192  # a mask has as many columns
_SLACK = 1 / 12  # of a strand's length, by which a cut may be moved
_COPY = 32  # what handing a kept token to attention costs, in pairs of attention
_KEPT_PER_TOKEN = 4  # most kept tokens of several strands per token of a forward


def even(width: int) -> int:
    """Round up to a multiple of 8, as attention kernels want masks."""
    return -(-width // 8) * 8


@dataclass(frozen=True)
class Layout:
    """Strands and their windows.

    Attributes:
        strands: ``(first sequence, one past the last)``, the longest first.
        width: Nodes of a window.
        columns: Length of the longest kept path, in tokens.
        trunk: Number of first tokens that all strands share; these run once.
        price: Estimated cost of all windows, in matrix products of a token.
    """

    strands: tuple[tuple[int, int], ...]
    width: int
    columns: int
    trunk: int
    price: float


def strands_of(
    sequences: Sequences, count: int, width: int, pair: float = 0.0
) -> Layout:
    """Cut the trie into at most ``count`` strands of similar length, with windows of ``width`` nodes.

    A strand begins with the path to its first node, so cuts are made where that path is short. ``pair`` is the cost of
    one token's attention to another, in matrix products of a token.
    """
    heads, size = sequences.heads, sequences.trie_size
    near = np.searchsorted(
        heads[:-1], (np.arange(1, count)[:, None] + [-_SLACK, _SLACK]) * size / count
    )
    cuts = [
        low + int(sequences.shared[low : high + 1].argmin())
        for low, high in near.tolist()
    ]
    firsts = np.unique([0, *cuts])
    repeated = sequences.shared[firsts]
    trunk = int(sequences.shared[1:].min()) if len(firsts) > 1 else 0
    lengths = np.append(heads[firsts[1:]], size) - heads[firsts] + repeated
    at = np.arange(trunk, int(lengths.max()), width)[:, None]
    depths = np.where(
        at < repeated,
        at,
        sequences.depths(np.minimum(heads[firsts] - repeated + at, size - 1)),
    )
    active = at < lengths
    columns = np.where(active, depths, 0).max(1)
    sizes = np.minimum(width, np.where(active, lengths - at, 0).max(1))
    price = trunk + float(
        (active.sum(1) * (sizes + pair * (sizes + _COPY) * (columns + sizes))).sum()
    )
    lasts = np.append(firsts[1:], len(sequences))
    order = np.lexsort((firsts, -lengths))
    strands = tuple((int(firsts[i]), int(lasts[i])) for i in order)
    return Layout(strands, width, int(columns.max()), trunk, price)


def lay_out(
    sequences: Sequences, needed: Ints, method: Walk, budget: int, most: int
) -> Layout:
    """Find the cheapest width of windows, with as many strands as the limits allow.

    Args:
        sequences: Sequences to run.
        needed: How many last tokens of each sequence need logits.
        method: The walk, which knows its widths, how far it may attend and what attention costs.
        budget: Most tokens of a forward.
        most: Most needed tokens of a forward.
    """
    size = sequences.trie_size
    dense = min(1.0, 2 * float(np.minimum(needed, sequences.fresh + 1).sum()) / size)
    layouts = []
    for width in sorted({min(width, budget, most) for width in method.widths}):
        count = max(1, min(budget, size) // width)
        while count:
            layout = strands_of(sequences, count, width, method.network.pair)
            rows, kept = len(layout.strands), layout.columns + width
            fits = rows == 1 or rows * kept <= _KEPT_PER_TOKEN * budget
            if fits and kept <= method.widest and rows * width * dense <= most:
                layouts.append(layout)
                break
            count //= 2
    return min(layouts, key=lambda layout: layout.price)


@dataclass
class _Paths:
    """The state of the rows' paths, which all layers share.

    Attributes:
        size: Rows and columns of the buffers.
        columns: Kept tokens in front of the current windows.
    """

    size: tuple[int, int]
    columns: int = 0


class _Layer(DynamicLayer):
    """Keys and values of each row's path, at their positions, followed by those of the windows."""

    keys: Any
    values: Any
    is_initialized: bool

    def __init__(self, paths: _Paths) -> None:
        super().__init__()
        self.paths = paths

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            rows, columns = self.paths.size
            self.keys, self.values = (
                states.new_zeros((rows, states.shape[1], columns, states.shape[3]))
                for states in (key_states, value_states)
            )
            self.is_initialized = True
        rows, start = key_states.shape[0], self.paths.columns
        end = start + key_states.shape[2]
        # a single row is the trunk of all, or the last one left
        written = slice(rows if rows > 1 else None)
        self.keys[written, :, start:end] = key_states
        self.values[written, :, start:end] = value_states
        return self.keys[:rows, :, :end], self.values[:rows, :, :end]

    def get_seq_length(self) -> int:
        return self.paths.columns

    def move(
        self, rows: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor
    ) -> None:
        """Move tokens from the windows to their positions in the paths."""
        for states in (self.keys, self.values):
            states[rows, :, targets] = states[rows, :, sources]


class Strand:
    """Neighbouring sequences as the nodes of their trie, depth-first.

    The first sequence contributes all its tokens. Node ``j`` is an ancestor of node ``i``, or ``i`` itself, where
    ``j <= i < ends[j]``.

    Attributes:
        ids: Token of each node, shape (nodes,).
        depths: Position of each in its sequences, same shape.
        ends: One past its last descendant, same shape.
        needed: Node of each slot of its sequences, ascending, shape (slots,).
        slots: These slots, same shape.
    """

    def __init__(
        self, sequences: Sequences, first: int, last: int, needed: Ints
    ) -> None:
        """Lay out ``sequences[first:last]``.

        Of sequence ``i`` the last ``needed[i]`` tokens need logits; ``needed`` covers all sequences.
        """
        starts, lengths = sequences.starts[first:last], sequences.lengths[first:last]
        shared = sequences.shared[first:last].copy()
        shared[0] = 0
        fresh = lengths - shared
        tips = np.cumsum(fresh)
        heads = tips - fresh
        nodes = np.arange(int(tips[-1]))
        self.depths = np.concatenate(list(map(np.arange, shared, lengths)))
        self.ids = sequences.tokens[np.repeat(starts, fresh) + self.depths]
        self.ends = np.full(len(nodes), len(nodes))
        path, before = np.zeros(int(lengths.max()), np.int64), 0
        needed_nodes = []
        arrays = (shared, lengths, heads, tips, needed[first:last])
        for common, length, head, tip, count in zip(
            *(array.tolist() for array in arrays), strict=True
        ):
            self.ends[path[common:before]] = head
            path[common:length] = nodes[head:tip]
            needed_nodes.append(path[length - count : length].copy())
            before = length
        unordered = np.concatenate(needed_nodes)
        order = np.argsort(unordered, kind="stable")
        self.needed = unordered[order]
        self.slots = int(needed[:first].sum()) + order

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.ids)


class Walk:
    """A way to run strands side by side: a window of each in a forward, the paths before them as keys and values.

    Attributes:
        widest: Most tokens that a token may attend over. A model's own window may count places in the row, which no
            mask can mend.
        attended: Most tokens that one has attended over so far.
        widths: Widths of windows to choose from.
    """

    def __init__(self, network: Network, style: str = "single") -> None:
        """Run on this network with masks of this style (:func:`lm_eval_bias.models.packed.attention_masks.build`)."""
        self.network = network
        self.style = style
        self.widest = WIDEST
        self.attended = 0
        self.widths = WIDTHS

    @property
    def reach(self) -> int:
        """The length of the longest sequence that can be run, in tokens."""
        return self.widest - min(self.widths)

    def limit(self, windows: list[int]) -> None:
        """Attend over no more than the model's smallest window that the trial didn't exceed."""
        self.widest = min(
            [self.widest, *(window for window in windows if window >= self.attended)]
        )

    def outputs(
        self, sequences: Sequences, needed: Ints, budget: int, most: int
    ) -> Iterator[ForwardOutput]:
        """Run each sequence once; none may be longer than :attr:`reach`.

        Args:
            sequences: Sequences to run.
            needed: How many last tokens of each sequence need logits.
            budget: Most tokens of a forward.
            most: Most needed tokens of a forward.
        """
        return self._run(
            sequences, needed, lay_out(sequences, needed, self, budget, most)
        )

    def trial_outputs(
        self, sequences: Sequences, needed: Ints
    ) -> Iterator[ForwardOutput]:
        """Run a trial: two strands, and windows that end within sequences.

        Unused places in front of the windows make every place in a row differ from the token's depth.
        """
        layout = strands_of(sequences, 2, 24)
        return self._run(sequences, needed, layout, apart=int(sequences.lengths.sum()))

    def _run(
        self, sequences: Sequences, needed: Ints, layout: Layout, apart: int = 0
    ) -> Iterator[ForwardOutput]:
        """Run the strands of a layout, with ``apart`` unused places between the paths and the windows."""
        strands = [
            Strand(sequences, first, last, needed) for first, last in layout.strands
        ]
        longest, width, trunk = len(strands[0]), layout.width, layout.trunk
        self.attended = max(self.attended, layout.columns + apart + width)
        paths = _Paths((len(strands), layout.columns + apart + even(width)))
        starts = [*range(0, trunk, width * len(strands)), *range(trunk, longest, width)]
        keeps = apart or len(starts) > 1
        cache = (
            Cache(layer_class_to_replicate=partial(_Layer, paths)) if keeps else None
        )
        for at, end in pairwise([*starts, longest]):
            active = [strand for strand in strands if len(strand) > at]
            paths.columns = apart + max(int(strand.depths[at]) for strand in active)
            rows = [0] * len(active) if at < trunk else range(len(active))
            yield self._forward(active, at, end, paths.columns, cache, rows)
            if cache is not None:
                self._move(active, at, end, paths.columns, cache)

    def _forward(
        self,
        active: list[Strand],
        at: int,
        end: int,
        columns: int,
        cache: Cache | None,
        rows: Sequence[int],
    ) -> ForwardOutput:
        """Run nodes ``at`` to ``end - 1`` of each strand in its row; several strands may share a row."""
        network = self.network
        sizes = [min(end, len(strand)) - at for strand in active]
        width = even(max(sizes))
        ids = np.zeros((max(rows) + 1, width), np.int64)
        depths, before = np.zeros_like(ids), np.zeros_like(ids)
        # padding sees itself: attention to nothing is nan
        last = np.tile(np.arange(1, width + 1), (len(ids), 1))
        slots, places = [], []
        for row, strand, size in zip(rows, active, sizes, strict=True):
            window = slice(at, at + size)
            ids[row, :size] = strand.ids[window]
            depths[row, :size] = strand.depths[window]
            before[row, :size] = np.minimum.accumulate(strand.depths[window])
            last[row, :size] = np.minimum(strand.ends[window] - at, size)
            inside = slice(*np.searchsorted(strand.needed, [at, at + size]))
            slots.append(strand.slots[inside])
            places.append(row * width + strand.needed[inside] - at)
        positions = network.tensor(depths)
        mask = attention_masks.build(
            network.model.config,
            self.style,
            positions,
            network.tensor(last),
            network.dtype,
            network.tensor(before),
            columns,
        )
        return network.forward(
            ids,
            np.concatenate(slots),
            np.concatenate(places),
            sum(sizes[: len(ids)]),
            position_ids=positions,
            attention_mask=mask,
            past_key_values=cache,
            use_cache=cache is not None,
        )

    def _move(
        self, active: list[Strand], at: int, end: int, columns: int, cache: Cache
    ) -> None:
        """Move those of the windows' nodes that are ancestors of the next windows to their places in the paths."""
        paths = [at + np.flatnonzero(strand.ends[at:end] > end) for strand in active]
        rows = np.repeat(np.arange(len(active)), [len(nodes) for nodes in paths])
        if not len(rows):
            return
        sources = columns - at + np.concatenate(paths)
        targets = np.concatenate(
            [strand.depths[nodes] for strand, nodes in zip(active, paths, strict=True)]
        )
        indices = [self.network.tensor(array) for array in (rows, sources, targets)]
        for layer in cache.layers:
            layer.move(*(index.to(layer.keys.device) for index in indices))
