"""The order in which requests go to a server: those with a common beginning next to each other.

The harness's clients (``TemplateAPI``, 0.4.13) send the longest first, which helps where batches are padded. A server
keeps the beginnings of what it has just read as long as there is room.
"""

from __future__ import annotations

import contextlib
from typing import Any

from lm_eval_bias.harness.internals import shadowed


def by_beginning(model: Any) -> contextlib.AbstractContextManager[None]:
    """While a model is asked: a client sends its requests in the order of their tokens or texts."""
    if "lm_eval.models.api_models" not in {owner.__module__ for owner in type(model).__mro__}:
        return contextlib.nullcontext()
    from lm_eval.models import api_models

    class InOrder(api_models.Collator):
        def __init__(self, arr: Any, sort_fn: Any = None, **kwargs: Any) -> None:
            super().__init__(arr, sort_fn=_beginning, **kwargs)

    return shadowed(api_models, "Collator", InOrder)


def _beginning(request: Any) -> Any:
    """The key to sort by: tokens of a context and its continuation, or the text of what is to be continued.

    >>> _beginning((("the", " end"), [1, 2], [3])), _beginning(("a text", {"until": []}, None))
    ((1, 2, 3), 'a text')
    """
    first, second, third = request
    return (*second, *third) if isinstance(second, list) else str(first)
