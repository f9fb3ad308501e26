"""Runs every node of the requests' trie once, as strands that are walked side by side.

Nodes in depth-first order that follow each other have all their ancestors among themselves or on the path to the first
of them. With the keys and values of that path at hand, a window of a strand runs each of its nodes once, whatever its
width.
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
_KEPT_PER_TOKEN = 4  # kept tokens of several strands per token of a forward, at most


def even(width: int) -> int:
    """Round up to a multiple of 8, as attention kernels want masks."""
    return -(-width // 8) * 8


@dataclass(frozen=True)
class Layout:
    """Strands and their windows.

    Attributes:
        strands: ``(first sequence, one past the last)``, the longest first.
        width: Nodes of a window.
        columns: Most tokens of a path that is kept.
        trunk: So many first tokens are all strands' and run once.
        price: What all windows cost, as estimated, in tokens' matrix products.
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

    A strand begins with the path to its first node, so cuts are made where that is short. ``pair`` is what a token's
    attention to another costs, in a token's matrix products.
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
    """Find the cheapest windows, and as many strands as there can be, within limits.

    Args:
        sequences: What to run.
        needed: How many last tokens of each need logits.
        method: Its windows' widths, how far they may attend, and what attention costs in its network.
        budget: Tokens of a forward.
        most: Needed tokens of a forward.
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
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if self.keys is None:
            self.dtype, self.device, self.is_initialized = (
                key_states.dtype,
                key_states.device,
                True,
            )
            rows, columns = self.paths.size
            self.keys, self.values = (
                state.new_zeros((rows, state.shape[1], columns, state.shape[3]))
                for state in (key_states, value_states)
            )
        rows, since = key_states.shape[0], self.paths.columns
        end = since + key_states.shape[2]
        into = slice(
            rows if rows > 1 else None
        )  # a single row is the trunk of all, or the last one left
        self.keys[into, :, since:end] = key_states
        self.values[into, :, since:end] = value_states
        return self.keys[:rows, :, :end], self.values[:rows, :, :end]

    def get_seq_length(self) -> int:
        return self.paths.columns

    def move(
        self, rows: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor
    ) -> None:
        """Move tokens of the windows to their positions in the paths."""
        for states in (self.keys, self.values):
            states[rows, :, targets] = states[rows, :, sources]


class Strand:
    """Neighbouring sequences as the nodes of their trie, depth-first.

    The first sequence has all its tokens. Node ``j`` is an ancestor of node ``i``, or ``i`` itself, where
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
        """Sequences ``first`` to ``last - 1``; ``needed`` last tokens of each of all sequences are."""
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
        """Number of nodes."""
        return len(self.ids)


class Walk:
    """Strands of the trie side by side, a window of each in a forward, the paths before them as keys and values.

    Attributes:
        widest: Most tokens that one attends over: a model's own window may count places in the row, which no mask can
            mend.
        attended: The most so far.
        widths: Of its windows, the cheapest of which is taken.
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
        """Tokens of the longest sequence that can be run."""
        return self.widest - min(self.widths)

    def limit(self, windows: list[int]) -> None:
        """Attend over no more than those of a model's windows that were not tried."""
        self.widest = min(
            [self.widest, *(window for window in windows if window >= self.attended)]
        )

    def outputs(
        self, sequences: Sequences, needed: Ints, budget: int, most: int
    ) -> Iterator[ForwardOutput]:
        """Run sequences, none longer than :attr:`reach`, each once.

        Args:
            sequences: What to run.
            needed: How many last tokens of each sequence need logits.
            budget: Tokens of a forward.
            most: Needed tokens of a forward.
        """
        return self._run(
            sequences, needed, lay_out(sequences, needed, self, budget, most)
        )

    def trial_outputs(
        self, sequences: Sequences, needed: Ints
    ) -> Iterator[ForwardOutput]:
        """Two strands, windows that end within sequences, and so many unused places that none agrees with a depth."""
        layout = strands_of(sequences, 2, 24)
        return self._run(sequences, needed, layout, apart=int(sequences.lengths.sum()))

    def _run(
        self, sequences: Sequences, needed: Ints, layout: Layout, apart: int = 0
    ) -> Iterator[ForwardOutput]:
        """Run strands; ``apart`` places between the paths and the windows stay unused."""
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
        """Run the strands' nodes ``at`` to ``end - 1`` in these rows, of which several strands may share one."""
        network = self.network
        sizes = [min(end, len(strand)) - at for strand in active]
        width = even(max(sizes))
        ids = np.zeros((max(rows) + 1, width), np.int64)
        depths, before = np.zeros_like(ids), np.zeros_like(ids)
        last = np.tile(
            np.arange(1, width + 1), (len(ids), 1)
        )  # padding sees itself: attention to nothing is nan
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
        sees = (
            positions,
            network.tensor(last),
            network.dtype,
            network.tensor(before),
            columns,
        )
        mask = attention_masks.build(network.model.config, self.style, *sees)
        inputs = {
            "position_ids": positions,
            "attention_mask": mask,
            "past_key_values": cache,
        }
        inputs["use_cache"] = cache is not None
        return network.forward(
            ids,
            np.concatenate(slots),
            np.concatenate(places),
            sum(sizes[: len(ids)]),
            **inputs,
        )

    def _move(
        self, active: list[Strand], at: int, end: int, columns: int, cache: Cache
    ) -> None:
        """Move the windows' nodes on the paths to the next windows to their places in front."""
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
            layer.move(*(index.to(layer.device) for index in indices))
