"""Answers that ``--use_cache`` keeps."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import Any

from lm_eval_bias.harness import internals

_WAIT = 0.2  # seconds of answers that a kill may cost beside the batch in work


def kept(model: Any, kind: str, arguments: Iterable[Any]) -> list[Any]:
    """What was answered before, ``None`` where nothing was.

    Args:
        model: A model of the harness, whose cache hook has the answers.
        kind: As which they are kept.
        arguments: Of each request.
    """
    cache = getattr(model.cache_hook, "dbdict", None)
    return [None if cache is None else cache.get(internals.request_key(kind, args)) for args in arguments]


def forget(model: Any, kind: str, arguments: Iterable[Any]) -> None:
    """Take answers out, as :func:`kept` names them."""
    cache = getattr(model.cache_hook, "dbdict", None)
    if cache is not None:
        for args in arguments:
            cache.pop(internals.request_key(kind, args), None)
        cache.commit()


def commit(model: Any) -> None:
    """Wait until what the cache hook was given is on the disk."""
    cache = getattr(model.cache_hook, "dbdict", None)
    if cache is not None:
        cache.commit()


class _Prompt:
    """A cache hook whose answers are on the disk a moment after they come."""

    def __init__(self, hook: Any) -> None:
        self._hook = hook
        self.dbdict = hook.dbdict
        self._last = time.monotonic()

    def add_partial(self, attr: str, req: Any, res: Any) -> None:
        """Keep an answer; wait, now and then, until the cache's own thread has written what it was given."""
        self._hook.add_partial(attr, req, res)
        if time.monotonic() - self._last > _WAIT:
            self.dbdict.commit()
            self._last = time.monotonic()


@contextlib.contextmanager
def promptly(model: Any) -> Iterator[None]:
    """Let a kill cost hardly more than the batch in work, while a request runs with ``--use_cache``."""
    hook = model.cache_hook
    if getattr(hook, "dbdict", None) is None:
        yield
        return
    model.set_cache_hook(_Prompt(hook))
    try:
        yield
    finally:
        model.set_cache_hook(hook)
