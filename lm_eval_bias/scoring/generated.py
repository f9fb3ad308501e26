"""Texts that models write, asked as the harness does, and looked at where a server wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lm_eval_bias.scoring import servers, tokens

GENERATED = "generated_text"


def _generated(self: Any, requests: Sequence[Any]) -> list[str]:
    """Answer ``(context, options)`` requests.

    Returns:
        One text a request. Answers come from the cache of ``--use_cache`` where it has them and go into it; sampled
        ones (``do_sample``) do not, since equal requests want different texts.
    """
    from lm_eval.api.model import hash_args

    cache = getattr(self.cache_hook, "dbdict", None)
    found: list[Any] = [None] * len(requests)
    keys = [None if r.args[1].get("do_sample") else hash_args("generate_until", r.args) for r in requests]
    if cache is not None:
        found = [None if key is None else cache.get(key) for key in keys]
    asked = [i for i, text in enumerate(found) if text is None]
    with servers.asking(self):
        missing = tokens.everywhere(self, len(asked)) - len(asked)
        if asked or missing:
            fresh = self.generate_until([requests[i] for i in asked] + [requests[0]] * missing)
            for i, text in zip(asked, fresh[: len(asked)], strict=True):
                found[i] = text
                if cache is not None and keys[i] is not None:
                    cache[keys[i]] = text
    return found


def install() -> None:
    """Add the method to the harness's model base class; nothing that it has is replaced."""
    from lm_eval.api.model import LM

    if not hasattr(LM, GENERATED):
        setattr(LM, GENERATED, _generated)
