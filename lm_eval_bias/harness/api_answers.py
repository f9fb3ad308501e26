"""What an OpenAI-compatible server answered is looked at before it is believed.

The harness's clients (``TemplateAPI``, 0.4.13) take what they find. Log-probabilities of a server that doesn't echo
the prompt sum to 0, a probability of 1; a list that is one short leaves out the last token; one answer to two prompts
goes to the first of them, into the cache of ``--use_cache`` too; a chat reply without answers is an empty text. All of
these are errors here, before anything is kept. Retrying stays the harness's.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lm_eval_bias.harness import response_cache
from lm_eval_bias.harness.internals import shadowed

_CUT = -9999.0  # what servers write for minus infinity
_ROUNDING = 1e-3  # nats by which a sum of probabilities may exceed 1


@contextlib.contextmanager
def asking(model: Any) -> Iterator[None]:
    """While a model is asked: look at a server's answers, and have those that came on disk however it ends."""
    with contextlib.ExitStack() as stack:
        for name, (owner, check) in _CHECKS.items():
            method = getattr(model, name, None)
            if getattr(method, "__module__", "") == f"lm_eval.models.{owner}":  # not another protocol's own
                stack.enter_context(shadowed(model, name, functools.partial(check, method)))
        logging.getLogger("asyncio").addFilter(_of_interest)
        try:
            yield
        finally:
            response_cache.commit(model)


def _of_interest(record: logging.LogRecord) -> bool:
    """Not what asyncio says, at length, of requests that failed beside the one whose error ends the run."""
    return not any(phrase in record.getMessage() for phrase in ("never retrieved", "asyncio.run() shutdown"))


def _choices(outputs: Any, prompts: int | None) -> list[Any]:
    """The answers in a reply, in order.

    Args:
        outputs: The reply, alone or as a list of one.
        prompts: The number of prompts that were sent, where it is known.

    Raises:
        ValueError: Not one answer a prompt.
    """
    reply = outputs[0] if isinstance(outputs, list) and len(outputs) == 1 else outputs
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise ValueError(f"a reply without answers ('choices'): {_excerpt(reply)}")
    indices = [choice.get("index") for choice in choices]
    if prompts is not None and len(choices) != prompts:
        raise ValueError(f"{len(choices)} answers to {prompts} prompts")
    if not choices or any(isinstance(i, bool) or not isinstance(i, int) for i in indices):
        raise ValueError(f"answers without a number ('index'): {_excerpt(reply)}")
    if sorted(indices) != list(range(len(choices))):
        raise ValueError(f"answers to the prompts {indices}, not to 0 to {len(choices) - 1}")
    return sorted(choices, key=lambda choice: int(choice["index"]))


def _logprobs(parse: Callable[..., Any], outputs: Any, tokens: Any = None, ctxlens: Any = None, **kwargs: Any) -> Any:
    """The harness's ``parse_logprobs``, of log-probabilities that are complete and can be ones.

    Raises:
        ValueError: They aren't.
    """
    for choice, ids, start in zip(_choices(outputs, len(ctxlens)), tokens, ctxlens, strict=True):
        logprobs = choice.get("logprobs")
        fields = logprobs if isinstance(logprobs, dict) else {}
        lists = [fields.get(name) for name in ("token_logprobs", "top_logprobs")]
        lengths = {len(values) if isinstance(values, list) else -1 for values in lists}
        if -1 in lengths:
            raise ValueError(f"an answer without log-probabilities of the prompt's tokens: {_excerpt(choice)}")
        if lengths != {len(ids) + 1}:
            raise ValueError(
                f"log-probabilities of {' and '.join(map(str, sorted(lengths)))} tokens where {len(ids)} of the prompt "
                "and one more were asked for: the server has to echo prompts (echo=true with logprobs), and to split "
                "them as the tokenizer named here does"
            )
        values, top = (fields[name][start:-1] for name in ("token_logprobs", "top_logprobs"))
        wrong = [value for value in values if not _is_logprob(value)]
        if wrong:
            raise ValueError(f"{_excerpt(wrong[0])} where a log-probability should be")
        if not all(isinstance(best, dict) and best and all(map(_is_number, best.values())) for best in top):
            raise ValueError("no most probable tokens ('top_logprobs') beside a log-probability")
    return parse(outputs=outputs, tokens=tokens, ctxlens=ctxlens, **kwargs)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def _is_logprob(value: Any) -> bool:
    return _is_number(value) and _CUT < value <= _ROUNDING


def _texts(parse: Callable[..., Any], outputs: Any, contexts: Sequence[Any] | None = None, **kwargs: Any) -> Any:
    """The harness's ``parse_generations``, of one text (or none, as reasoning models and content filters do) a prompt.

    Raises:
        ValueError: Something else.
    """
    for choice in _choices(outputs, None if contexts is None else len(contexts)):
        message = choice.get("message", choice)
        is_reply = isinstance(message, dict) and ("message" in choice or "text" in choice)
        text = message.get("content" if "message" in choice else "text") if is_reply else 0
        if text is not None and not isinstance(text, str):
            raise ValueError(f"an answer without a text: {_excerpt(choice)}")
    return parse(outputs=outputs, contexts=contexts, **kwargs)


async def _concurrent(call: Callable[..., Any], *, messages: Sequence[Any], **kwargs: Any) -> Any:
    """The harness's ``amodel_call`` (``num_concurrent``), which alone knows how many texts were asked for.

    Raises:
        ValueError: Fewer came, or more.
    """
    answers = await call(messages=messages, **kwargs)
    if len(answers) != len(messages):
        raise ValueError(f"{len(answers)} answers to {len(messages)} prompts")
    return answers


_CHECKS: dict[str, tuple[str, Callable[..., Any]]] = {
    "parse_logprobs": ("openai_completions", _logprobs),
    "parse_generations": ("openai_completions", _texts),
    "amodel_call": ("api_models", _concurrent),
}


def _excerpt(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
