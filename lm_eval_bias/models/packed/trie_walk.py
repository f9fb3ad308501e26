"""Runs every node of the requests' trie once, in strands that are walked side by side.

A strand is a stretch of nodes in depth-first order. All ancestors of a strand's nodes are in the strand itself or on
the path to its first node. The keys and values of that path are kept, so that a window of a strand, of whatever width,
runs each of its nodes once.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer
from transformers.modeling_outputs import BaseModelOutputWithPast

from lm_eval_bias.models.packed import attention_masks
from lm_eval_bias.models.packed.packed_forwards import ForwardOutput, Network
from lm_eval_bias.models.prefix_trie import Ints, Trie

# of transformers from release 5.24 on
_IS_RENAMED = "cache" in BaseModelOutputWithPast.__dataclass_fields__
WIDTHS = (32, 64, 128, 256, 512)  # of a strand's windows
WIDEST = 8192  # a mask has as many columns
_SLACK = 1 / 12  # of a strand's length, by which a cut may be moved
_COPY = 32  # what handing a kept token to attention costs, in pairs of attention
_KEPT_PER_TOKEN = 4  # most kept tokens of several strands per token of a forward


def _cache_name(model: torch.nn.Module) -> str:
    """Return the name of a model's cache argument, also of an adapter's or of custom code."""
    keeps_old = "past_key_values" in inspect.signature(model.forward).parameters
    return "cache" if _IS_RENAMED and not keeps_old else "past_key_values"


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


def strands_of(trie: Trie, count: int, width: int, pair: float = 0.0) -> Layout:
    """Cut the trie into at most ``count`` strands of similar length, with windows of ``width`` nodes.

    A strand begins with the path to its first node, so cuts are made where that path is short. ``pair`` is the cost of
    one token's attention to another, in matrix products of a token.
    """
    size = len(trie)
    shared = trie.shared
    near = np.searchsorted(
        trie.heads[:-2],
        (np.arange(1, count)[:, None] + [-_SLACK, _SLACK]) * size / count,
    )
    cuts = [low + int(shared[low : high + 1].argmin()) for low, high in near.tolist()]
    firsts = np.unique([0, *cuts])
    trunk = int(shared[1:].min()) if len(firsts) > 1 else 0
    lasts = np.append(firsts[1:], len(shared))
    offsets = trie.heads[firsts] - shared[firsts]
    lengths = trie.heads[lasts] - offsets
    longest = int(lengths.max())
    at = np.arange(trunk, longest, width)[:, None]
    depths = trie.depths[np.minimum(offsets + at, size - 1)]
    depths = np.where(at < shared[firsts], at, depths)
    active = at < lengths
    columns = np.where(active, depths, 0).max(1)
    sizes = np.minimum(width, longest - at[:, 0])
    price = trunk + float(
        (active.sum(1) * (sizes + pair * (sizes + _COPY) * (columns + sizes))).sum()
    )
    order = np.argsort(-lengths, kind="stable")
    strands = tuple(zip(firsts[order].tolist(), lasts[order].tolist(), strict=True))
    return Layout(strands, width, int(columns.max()), trunk, price)


def lay_out(trie: Trie, needed: Ints, method: Walk, budget: int, most: int) -> Layout:
    """Find the cheapest width of windows, with as many strands as the limits allow.

    Args:
        trie: Nodes to run.
        needed: Nodes that need logits.
        method: The walk, which knows its widths, how far it may attend and what attention costs.
        budget: Most tokens of a forward.
        most: Most needed tokens of a forward.
    """
    size = len(trie)
    deepest = int(trie.depths.max())
    dense = min(1.0, 2 * len(np.unique(needed)) / size)
    layouts: list[Layout] = []
    for width in sorted({min(width, budget, most) for width in method.widths}):
        kept = deepest + width
        if not layouts or kept <= method.widest:
            rows = min(budget, size, int(most / dense)) // width
            count = max(1, min(rows, _KEPT_PER_TOKEN * budget // kept))
            layouts.append(
                strands_of(trie, count, width, method.network.attention_cost)
            )
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

    keys: Tensor
    values: Tensor
    is_initialized: bool

    def __init__(self, paths: _Paths) -> None:
        super().__init__()
        self.paths = paths

    def update(
        self,
        key_states: Tensor,
        value_states: Tensor,
        *args: object,
        **kwargs: object,
    ) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            rows, columns = self.paths.size
            self.keys, self.values = (
                states.new_zeros((rows, states.shape[1], columns, states.shape[3]))
                for states in (key_states, value_states)
            )
            self.is_initialized = True
        rows = key_states.shape[0]
        start = self.paths.columns
        end = start + key_states.shape[2]
        # a single row is the trunk of all, or the last one left
        written = slice(rows if rows > 1 else None)
        self.keys[written, :, start:end] = key_states
        self.values[written, :, start:end] = value_states
        return self.keys[:rows, :, :end], self.values[:rows, :, :end]

    def get_seq_length(self) -> int:
        return self.paths.columns


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

    def outputs(
        self, trie: Trie, needed: Ints, layout: Layout, apart: int = 0
    ) -> Iterator[ForwardOutput]:
        """Run each node; none may be deeper than :attr:`widest`, less a window.

        Args:
            trie: Nodes to run.
            needed: Nodes that need logits.
            layout: Their strands.
            apart: Number of unused places between the paths and the windows.
        """
        strands = [trie.strand(first, last) for first, last in layout.strands]
        wanted = np.zeros(len(trie), bool)
        wanted[needed] = True
        longest = len(strands[0])
        width = layout.width
        trunk = layout.trunk
        self.attended = max(self.attended, layout.columns + apart + width)
        paths = _Paths((len(strands), layout.columns + apart + even(width)))
        starts = [*range(0, trunk, width * len(strands)), *range(trunk, longest, width)]
        cache = Cache(layer_class_to_replicate=partial(_Layer, paths))
        for at, end in pairwise([*starts, longest]):
            windows = [strand[at:end] for strand in strands if len(strand) > at]
            paths.columns = apart + max(int(trie.depths[nodes[0]]) for nodes in windows)
            if at < trunk:  # the same nodes in all strands
                windows = windows[:1]
            yield self._forward(trie, windows, wanted, paths.columns, cache)
            following = [
                strand[at : end + 1] for strand in strands if len(strand) > end
            ]
            if following:
                self._move(trie, following, paths.columns, cache)

    def _forward(
        self,
        trie: Trie,
        windows: Sequence[Ints],
        wanted: npt.NDArray[np.bool_],
        columns: int,
        cache: Cache,
    ) -> ForwardOutput:
        """Run a window of nodes in each row; those that are wanted need logits, and aren't wanted again."""
        network = self.network
        width = even(max(map(len, windows)))
        ids, depths, last = np.zeros((3, len(windows), width), np.int64)
        last += np.arange(
            1, width + 1
        )  # padding sees itself: attention to nothing is nan
        needed = []
        places = []
        for row, nodes in enumerate(windows):
            size = len(nodes)
            ids[row, :size] = trie.tokens[nodes]
            depths[row, :size] = trie.depths[nodes]
            last[row, :size] = np.searchsorted(nodes, trie.ends[nodes])
            inside = np.flatnonzero(wanted[nodes])
            needed.append(nodes[inside])
            places.append(row * width + inside)
            wanted[nodes] = False
        positions = network.tensor(depths)
        mask = attention_masks.build(
            network.model.config,
            self.style,
            positions,
            network.tensor(last),
            network.dtype,
            columns,
        )
        return network.forward(
            ids,
            np.concatenate(needed),
            np.concatenate(places),
            sum(map(len, windows)),
            position_ids=positions,
            attention_mask=mask,
            use_cache=True,
            **{_cache_name(self.network.model): cache},
        )

    def _move(
        self, trie: Trie, windows: Sequence[Ints], columns: int, cache: Cache
    ) -> None:
        """Move the ancestors of each last node, with which the next windows begin, to their places in the paths."""
        paths = [np.flatnonzero(trie.ends[nodes[:-1]] > nodes[-1]) for nodes in windows]
        rows = np.repeat(np.arange(len(paths)), list(map(len, paths)))
        sources = columns + np.concatenate(paths)
        targets = np.concatenate(
            [
                trie.depths[nodes[path]]
                for nodes, path in zip(windows, paths, strict=True)
            ]
        )
        indices = [self.network.tensor(array) for array in (rows, sources, targets)]
        for layer in cache.layers:
            row, source, target = (index.to(layer.keys.device) for index in indices)
            for states in (layer.keys, layer.values):
                states[row, :, target] = states[row, :, source]
