"""Objects of JSON that name each key once: the parser would quietly take the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lm_eval_bias.errors import BiasError


def unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The ``object_pairs_hook`` of ``json.loads`` that refuses an object with a key twice.

    Raises:
        BiasError: Names the key.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        doubled = next(key for key in keys if keys.count(key) > 1)
        raise BiasError(f"the key {doubled[:100]!r} appears twice in one object")
    return content
