"""What a server's reply tells of its answers: an error, another model's name, texts that are cut or hold the prompt."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.errors import printable
from lm_eval_bias.harness.api_calls import Fault

SERVED = "lm_eval_bias: the model that the server named"  # the key of --use_cache's file for it
_names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()  # by client, for runs without such a file


def check(model: Any, prompts: Sequence[Any], reply: Any, gen_kwargs: Mapping[str, Any] | None) -> None:
    """Look at what a reply tells, in whatever state its answers are.

    Args:
        model: A client of the harness.
        prompts: What was asked: texts, token ids or conversations.
        reply: The JSON that came.
        gen_kwargs: Options of a text; ``None`` where log-probabilities were asked for.

    Raises:
        Fault: The reply tells that its answers aren't what was asked for, or not of the model that answered before.
    """
    if not isinstance(reply, dict) or not isinstance(reply.get("choices"), list):
        return
    choices = [choice for choice in reply["choices"] if isinstance(choice, dict)]
    error = next((e for e in (reply.get("error"), *(choice.get("error") for choice in choices)) if e), None)
    if error or any(choice.get("finish_reason") == "error" for choice in choices):
        raise Fault(f"an error along with the answers: {printable(error or 'finish_reason is error')[:300]!r}")
    if gen_kwargs is not None:
        _check_length(reply, choices, gen_kwargs)
        _check_echo(model, prompts, choices)
    _check_name(model, reply.get("model"))


def _check_length(reply: Mapping[str, Any], choices: list[dict[str, Any]], gen_kwargs: Mapping[str, Any]) -> None:
    """Refuse texts that end for their length before the length that was asked for; one token more or less is none."""
    usage = reply.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    wanted = gen_kwargs.get("max_tokens", gen_kwargs.get("max_gen_toks"))
    full = sum(choice.get("finish_reason") == "length" for choice in choices)
    if not isinstance(tokens, int) or not isinstance(wanted, int) or tokens <= 0 or tokens >= full * (wanted - 1):
        return
    raise Fault(
        f"{full} texts of at most {tokens} tokens were cut off, although {wanted} tokens per text were requested: "
        "raise the server's token limit or its context length",
        False,
    )


def _check_echo(model: Any, prompts: Sequence[Any], choices: list[dict[str, Any]]) -> None:
    """Refuse texts that begin with their prompt: no model goes on with it glued to its own end.

    Answers in a conversation may repeat what they are to complete.
    """
    for place, choice in enumerate(choices):
        index, text = choice.get("index", place), choice.get("text")
        prompt = prompts[index] if isinstance(index, int) and 0 <= index < len(prompts) else None
        if isinstance(prompt, (list, tuple)) and prompt and isinstance(prompt[0], int):
            prompt = model.decode_batch([list(prompt)])[0]
        if isinstance(prompt, str) and isinstance(text, str) and prompt.strip() and text.startswith(prompt):
            raise Fault(
                f"a text that repeats its prompt ({printable(prompt)[:60]!r}): the server has to return only what "
                "follows the prompt (echo=false)",
                False,
            )


def _check_name(model: Any, name: Any) -> None:
    """Refuse a reply of a model with another name than the replies before, those in the file of --use_cache too."""
    if not isinstance(name, str) or not name:
        return
    cache = getattr(model.cache_hook, "dbdict", None)
    before = _names.get(model) or (None if cache is None else cache.get(SERVED))
    if before is None and cache is not None:
        cache[SERVED] = name
    _names.setdefault(model, before or name)
    if before not in (None, name):
        raise Fault(
            f"an answer of the model {printable(name)[:100]!r}, where {printable(before)[:100]!r} answered before: a "
            "run must be of one model (if both names are the same model, give --use_cache another file)",
            False,
        )
