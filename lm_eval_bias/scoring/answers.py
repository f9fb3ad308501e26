"""Answers that ``--use_cache`` keeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def kept(model: Any, kind: str, arguments: Iterable[Any]) -> list[Any]:
    """What was answered before, ``None`` where nothing was.

    Args:
        model: A model of the harness, whose cache hook has the answers.
        kind: As which they are kept.
        arguments: Of each request.
    """
    from lm_eval.api.model import hash_args

    cache = getattr(model.cache_hook, "dbdict", None)
    return [None if cache is None else cache.get(hash_args(kind, own)) for own in arguments]


def commit(model: Any) -> None:
    """Wait until what the cache hook was given is on the disk."""
    cache = getattr(model.cache_hook, "dbdict", None)
    if cache is not None:
        cache.commit()
