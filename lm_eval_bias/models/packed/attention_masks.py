"""Which token sees which: ancestors in the trie, and of those what a model's window lets through."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

import torch
from torch import Tensor
from transformers import PretrainedConfig

FULL = "full_attention"
SLIDING = "sliding_attention"
Mask: TypeAlias = "Tensor | dict[str, Tensor]"
_WINDOW_NAME = re.compile(r"window|chunk|local|block_size|block_length")


def windows(config: PretrainedConfig) -> list[int]:
    """List the lengths at which a model's attention windows end, from its configuration.

    Any integer whose name speaks of a window, a chunk or local attention counts: a model must prove itself on longer
    sequences.
    """
    return sorted(
        {
            value
            for name, value in config.get_text_config().to_dict().items()
            if type(value) is int and value > 1 and _WINDOW_NAME.search(name)
        }
    )


def beyond(config: PretrainedConfig, tested: int, longest: int) -> int:
    """Return a length beyond the windows that no trial has exceeded and ``longest`` does; 0 without such windows."""
    untested = [window for window in windows(config) if tested <= window < longest]
    return max(untested, default=0) * 5 // 4


def long_from(config: PretrainedConfig) -> int | None:
    """Return the length above which rotary positions depend on the input's length; ``None`` without such a length.

    Longer sequences can't share a forward.
    """
    text = config.get_text_config()
    scaling = (
        getattr(text, "rope_parameters", None)
        or getattr(text, "rope_scaling", None)
        or {}
    )
    kinds = [scaling, *(part for part in scaling.values() if isinstance(part, Mapping))]
    limits = [
        kind.get("original_max_position_embeddings")
        or getattr(text, "original_max_position_embeddings", None)
        or getattr(text, "max_position_embeddings", None)
        for kind in kinds
        if kind.get("rope_type", kind.get("type")) in ("dynamic", "longrope")
    ]
    return min((int(limit) for limit in limits if limit), default=None)


def build(
    config: PretrainedConfig,
    style: str,
    depths: Tensor,
    ends: Tensor,
    dtype: torch.dtype,
    columns: int,
) -> Mask:
    """Build the attention mask of a forward.

    Args:
        config: The model's configuration.
        style: How the mask is handed over: ``by_type`` (a dict per kind of layer) or ``single``.
        depths: Position of each token in its sequence, shape (rows, width).
        ends: One past each token's last descendant, same shape.
        dtype: Of the model's activations.
        columns: Number of kept tokens that each row has in front, at their positions.

    Returns:
        What is added to attention scores, 0 or the dtype's lowest number, shape (rows, 1, width, columns + width); a
        dict of these per kind of layer with ``by_type``.
    """
    text = config.get_text_config()
    width = depths.shape[1]
    at = torch.arange(width, device=depths.device)
    visible = (at[None, :] <= at[:, None])[None] & (
        at[None, :, None] < ends[:, None, :]
    )
    cached = torch.arange(columns, device=depths.device)
    # a kept token is an ancestor as long as all that comes before is deeper
    before = depths.cummin(1).values
    visible = torch.cat([cached < before[:, :, None], visible], -1)
    places = torch.cat([cached.expand(len(depths), -1), depths], -1)
    window = getattr(text, "sliding_window", None)
    kinds = set(getattr(text, "layer_types", None) or ())
    if style == "single" and len(kinds) != 1:
        kinds = {SLIDING if window and not kinds else FULL}
    masks = {}
    for kind in sorted(kinds):
        windowed = visible
        if kind == SLIDING and window:
            windowed = visible & (depths[:, :, None] - places[:, None, :] < window)
        bias = torch.zeros(windowed.shape, dtype=dtype, device=depths.device)
        masks[kind] = bias.masked_fill_(~windowed, torch.finfo(dtype).min)[:, None]
    return masks if style == "by_type" else next(iter(masks.values()))
