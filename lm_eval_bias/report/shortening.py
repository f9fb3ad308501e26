"""Long names in little space: both ends say most, the organisation and the size or variant of a model."""

from __future__ import annotations


def shortened(name: str, limit: int = 32) -> str:
    """A name of at most ``limit`` characters: a long one loses its middle.

    >>> shortened("organisation/a-model-of-7B-instruct", 19), shortened("gpt2")
    ('organisat…-instruct', 'gpt2')
    """
    if len(name) <= limit:
        return name
    tail = (limit - 1) // 2
    return f"{name[: limit - 1 - tail]}…{name[len(name) - tail :]}"
