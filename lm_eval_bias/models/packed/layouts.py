"""How the trie is run: as strands that are walked side by side, or as pieces that are one window each.

Nodes in depth-first order that follow each other have all their ancestors among themselves or on the path to the first
of them. With the keys and values of that path at hand, a window of a strand runs each of its nodes once, whatever its
width. A piece is a run of sequences that is a window of its own: it repeats what its first sequence has in common with
the one before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lm_eval_bias.models.prefix_trie import Ints, Sequences

WIDTHS = (32, 64, 128, 256, 512)  # of a strand's windows
PIECE_WIDTHS = (64, 96, 128, 192, 256, 384, 512, 768, 1024)
WIDEST = 8192  # a mask is as large as its square
_SAMPLE = 20_000  # sequences that a width of pieces is chosen by
_SLACK, _FAR = 0.25, 1 / 16  # how far from equal parts a cut may be, in parts; what a token of it weighs
_CACHED_PER_TOKEN = 4  # kept tokens per token of a forward, at most


@dataclass(frozen=True)
class Cost:
    """What running tokens costs, in floating-point operations.

    Attributes:
        token: Of one token's matrix products, the output projection aside.
        pair: Of one token's attention to another.
    """

    token: float
    pair: float


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
        price: Floating-point operations of all windows, as estimated.
    """

    strands: tuple[tuple[int, int], ...]
    width: int
    columns: int
    price: float


def cut_strands(sequences: Sequences, count: int) -> Ints:
    """Cut the trie into up to ``count`` strands of similar length, where few tokens are run again."""
    heads, part = sequences.heads, sequences.trie_size / count
    starts = [0]
    for i in range(1, count):
        low, high = np.searchsorted(heads, [part * (i - _SLACK), part * (i + _SLACK)])
        low = min(int(low), len(sequences) - 1)
        near = slice(low, max(int(high), low + 1))
        starts.append(low + int(np.argmin(sequences.shared[near] + _FAR * np.abs(heads[near] - part * i))))
    return np.unique(starts)


def strands_of(sequences: Sequences, count: int, width: int, cost: Cost) -> Layout:
    """Lay out at most ``count`` strands with windows of ``width`` nodes."""
    heads, size = sequences.heads, sequences.trie_size
    firsts = cut_strands(sequences, count)
    repeated = np.where(firsts > 0, sequences.shared[firsts], 0)
    lasts = np.append(firsts[1:], len(sequences))
    lengths = np.append(heads[firsts[1:]], size) - heads[firsts] + repeated
    at = np.arange(0, int(lengths.max()), width)[:, None]
    active = at < lengths
    first = np.where(at < repeated, at, sequences.depths(np.minimum(heads[firsts] - repeated + at, size - 1)))
    columns = np.where(active, first, 0).max(1)
    sizes = even(np.minimum(width, np.where(active, lengths - at, 0).max(1)))
    price = float((active.sum(1) * sizes * (cost.token + cost.pair * (columns + sizes))).sum())
    order = np.lexsort((firsts, -lengths))
    strands = tuple((int(firsts[i]), int(lasts[i])) for i in order)
    return Layout(strands, width, int(columns.max()), price)


def cheapest_strands(
    sequences: Sequences, needed: Ints, cost: Cost, budget: int, most: int, widest: int
) -> Layout | None:
    """Find the cheapest strands and windows within limits; ``None`` if there are none.

    Args:
        sequences: What to run.
        needed: How many last tokens of each need logits.
        cost: Of tokens and attention.
        budget: Tokens of a forward.
        most: Needed tokens of a forward.
        widest: Most tokens that a window may have with the path before it.
    """
    size = sequences.trie_size
    dense = min(1.0, 2 * float(np.minimum(needed, sequences.fresh + 1).sum()) / size)
    longest = int(needed.max())
    layouts = []
    for width in sorted({min(width, budget) for width in WIDTHS}):
        layout = strands_of(sequences, max(1, min(budget // width, size // width)), width, cost)
        rows = len(layout.strands)
        if (
            layout.columns + width <= widest
            and rows * (layout.columns + width) <= _CACHED_PER_TOKEN * budget
            and rows * max(longest, width * dense) <= most
        ):
            layouts.append(layout)
    return min(layouts, key=lambda layout: layout.price, default=None)


class Piece(NamedTuple):
    """A run of neighbouring sequences: the first, one past the last, and their tokens."""

    first: int
    last: int
    size: int


def cut_pieces(lengths: Sequence[int], shared: Sequence[int], width: int) -> list[Piece]:
    """Cut sorted sequences into pieces of at most ``width`` tokens so that the fewest tokens are run twice.

    Dynamic programming over the cuts: one before sequence ``k`` costs its ``shared[k]`` tokens once more. The first
    cuts that still fit move forward only, so a sliding-window minimum does it in linear time.

    A sequence that is longer than the width is a piece of its own. The widest come first.

    >>> cut_pieces([3, 4, 4], [0, 3, 1], 5)
    [Piece(first=0, last=2, size=4), Piece(first=2, last=3, size=4)]
    """
    n = len(lengths)
    added = 0  # tokens that sequences 0..k add to the trie
    offset = [0] * n  # of a piece that starts at j: its tokens up to k are offset[j] + added
    price = [0] * (n + 1)  # tokens run twice, least, with a cut before k
    origin = [0] * (n + 1)
    window: deque[int] = deque()
    for k in range(n):
        offset[k] = shared[k] - added
        while window and price[window[-1]] > price[k]:
            window.pop()
        window.append(k)
        added += lengths[k] - shared[k]
        while window[0] != k and offset[window[0]] + added > width:
            window.popleft()
        origin[k + 1] = window[0]
        price[k + 1] = price[window[0]] + (shared[k + 1] if k + 1 < n else 0)
    pieces = []
    end = n
    total = added
    while end > 0:
        start = origin[end]
        pieces.append(Piece(start, end, offset[start] + total))
        total = shared[start] - offset[start]
        end = start
    return sorted(reversed(pieces), key=lambda piece: -piece.size)


def batches(sizes: Sequence[int], counts: Sequence[int], budget: int, most: int) -> Iterator[list[int]]:
    """Group neighbours, longest first, up to a budget of tokens with padding and ``most`` needed ones."""
    batch: list[int] = []
    width = count = 0
    for i, size in enumerate(sizes):
        if batch and (width * (len(batch) + 1) > budget or count + counts[i] > most):
            yield batch
            batch = []
        if not batch:
            width, count = size, 0
        batch.append(i)
        count += counts[i]
    if batch:
        yield batch


def pieces_of(sequences: Sequences, cost: Cost, budget: int, widest: int = WIDEST) -> list[Piece]:
    """Cut the trie into pieces, widest first.

    The width is the one of :data:`PIECE_WIDTHS` (and of once to eight times a long sequence) with the least cost: wide
    pieces repeat less, narrow ones attend to less that is masked. Many sequences are judged by a part of them.

    Args:
        sequences: What to run.
        cost: Of tokens and attention.
        budget: Tokens of a forward.
        widest: Most tokens of a piece that holds more than one sequence.
    """
    if not len(sequences):
        return []
    lengths, shared = sequences.lengths.tolist(), sequences.shared.tolist()
    typical = int(np.quantile(sequences.lengths, 0.99))  # a few long ones are pieces of their own
    widths = {width for width in PIECE_WIDTHS if width >= 2 * typical} | {even(max(lengths))}
    widths |= {even(times * typical) for times in (1, 2, 4, 8)}
    widest = min(widest, budget)
    widths = {width for width in widths if width <= widest} or {max(1, widest // 8 * 8)}
    start = max(0, len(lengths) - _SAMPLE) // 2
    sample = lengths[start : start + _SAMPLE], [0, *shared[start + 1 : start + _SAMPLE]]
    best = min(sorted(widths), key=lambda width: price(cut_pieces(*sample, width), cost, budget))
    return cut_pieces(lengths, shared, best)


def price(pieces: Sequence[Piece], cost: Cost, budget: int) -> float:
    """Estimate the floating-point operations of pieces, widest first, with their padding."""
    widths = [even(piece.size) for piece in pieces]
    forwards = ((len(batch), widths[batch[0]]) for batch in batches(widths, [0] * len(widths), budget, 0))
    return sum(count * width * (cost.token + cost.pair * width) for count, width in forwards)
