"""Another attribute on one instance for a while: the class, and every other instance, stay as they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def shadowed(instance: Any, name: str, value: Any) -> Iterator[None]:
    """Let an instance have another attribute while the context lasts; what was there before comes back."""
    before = dict(vars(instance))
    setattr(instance, name, value)
    try:
        yield
    finally:
        if name in before:
            setattr(instance, name, before[name])
        else:
            delattr(instance, name)
