"""Long names in little space: both ends say most, the organisation and the size or variant of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def shortened(name: str, limit: int = 32) -> str:
    """A name of at most ``limit`` characters: a long one loses its middle.

    >>> shortened("organisation/a-model-of-7B-instruct", 19), shortened("gpt2")
    ('organisat…-instruct', 'gpt2')
    """
    if len(name) <= limit:
        return name
    tail = (limit - 1) // 2
    return f"{name[: limit - 1 - tail]}…{name[len(name) - tail :]}"


def shortened_apart(names: Iterable[str], limit: int = 32) -> dict[str, str]:
    """Short forms by name, all different: names that would look alike keep more of their middle.

    >>> list(shortened_apart(["an-organisation/base-7B-chat", "an-organisation/base-9B-chat"], 12).values())
    ['an-organ…7B-chat', 'an-organ…9B-chat']
    """
    limits = dict.fromkeys(names, limit)
    while True:
        forms = {name: shortened(name, own) for name, own in limits.items()}
        counts = Counter(forms.values())
        alike = [name for name, form in forms.items() if counts[form] > 1]
        if not alike:
            return forms
        limits |= {name: limits[name] + 4 for name in alike}
