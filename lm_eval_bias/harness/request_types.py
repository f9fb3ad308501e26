"""The request types that this package adds to the harness's models: the names of methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EXACT = "exact_loglikelihood"
WITH_LENGTH = "loglikelihood_with_length"
WITH_LENGTH_IF_KNOWN = "loglikelihood_with_length_if_known"
GENERATED = "generated_text"


def is_greedy(gen_kwargs: Mapping[str, Any]) -> bool:
    """Whether options ask for the likeliest texts.

    >>> is_greedy({"do_sample": False}), is_greedy({"temperature": 0.0}), is_greedy({"temperature": 0.7})
    (True, True, False)
    """
    return gen_kwargs.get("do_sample") in (False, "false", "False") or gen_kwargs.get("temperature") == 0
