"""The trap of grammar: where what stands beside the blank fits only some of the candidates' words."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.data.stereoset import Item


def trap(item: Item, language: str) -> Iterator[tuple[str, str]]:
    """Part and text of what grammar can tell between the candidates of an item."""
    return iter(())
