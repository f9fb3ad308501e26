"""The releases of GG-BBQ, and the wordings of its prompts."""

from __future__ import annotations

from string import Formatter

from lm_eval_bias.core import Facts
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.shared.bbq_like import PromptWordings, keeps_released_order

PAPER = "paper"
LATEST = "latest"  # releases
NUMBERS = PromptWordings("wording", 2, "gg_bbq_prompts")
PLACEHOLDERS = ["choices", "context", "question"]


def wordings(metadata: Facts) -> list[int] | list[str]:
    """List a task's wordings: numbers, or the user's own text.

    Raises:
        BiasError: There is no such wording, a text has other placeholders, or the order of the options is no such.
    """
    text = metadata.get("wording")
    keeps_released_order(metadata)
    if not isinstance(text, str) or "wording" in (metadata.get("fixed") or {}):
        return NUMBERS.chosen(metadata)
    try:
        parts = [part for part in Formatter().parse(text) if part[1] is not None]
    except ValueError as error:
        raise BiasError(f"--metadata wording: {error}") from error
    fields = [f"{name}{spec}{conversion or ''}" for _, name, spec, conversion in parts]
    if sorted(fields) != PLACEHOLDERS:
        raise BiasError(
            "--metadata wording: must have {context}, {question} and {choices}, each once, and no other braces; "
            f"it has {', '.join(map(repr, fields)) or 'none'}"
        )
    return [text]
