"""Checks of answers before they are scored or kept: of servers' replies, and of any model's log-likelihoods.

The harness's clients believe every reply: log-probabilities of a server that doesn't echo prompts sum to 0, and a list
that is one short leaves out the last token.
"""

from __future__ import annotations

import math
import operator
import re
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from lm_eval_bias.core import Data, Facts, answers

if TYPE_CHECKING:
    from lm_eval.models.api_models import JsonChatStr, TemplateAPI

    Prompt: TypeAlias = "str | list[int] | JsonChatStr"
Continuation = TypeVar("Continuation", str, tuple[int, ...])
_MOST = 1.1  # of probabilities: half precision rounds a half by as much as 6%, in every forward anew


def check(
    client: TemplateAPI, reply: object, prompts: Sequence[Prompt], generate: bool
) -> None:
    """Refuse an impossible reply to these prompts; turn its texts into plain ones with finish reasons.

    Args:
        client: The harness's client that asked.
        reply: What the server sent, as JSON.
        prompts: Texts, conversations or token ids.
        generate: Whether texts were asked for, else log-probabilities.

    Raises:
        ValueError: There isn't an answer to each prompt, or one of them is none.
    """
    fields: Data = reply if isinstance(reply, dict) else {}
    choices: Any = fields.get("choices")
    is_list = isinstance(choices, list)
    if not is_list or not all(isinstance(choice, dict) for choice in choices):
        raise ValueError(f"a reply without answers ('choices'): {reply!r:.200}")
    for part in (fields, *choices):
        if part.get("error") or part.get("finish_reason") == "error":
            raise ValueError(
                f"an error along with the answers: {fields.get('error') or choices!r:.200}"
            )
    numbers = [choice.get("index") for choice in choices]
    if sorted(map(repr, numbers)) != sorted(map(repr, range(len(prompts)))):
        raise ValueError(
            f"{len(choices)} answers to {len(prompts)} prompts, with the numbers {numbers!r:.200}"
        )
    choices = sorted(choices, key=operator.itemgetter("index"))
    check_answers = _check_texts if generate else _check_logprobs
    check_answers(client, choices, prompts)


def _check_texts(
    client: TemplateAPI, choices: Sequence[Data], prompts: Sequence[Prompt]
) -> None:
    """Refuse answers that aren't texts; join parts, and use a refusal's text."""
    for choice, prompt in zip(choices, prompts, strict=True):
        finish = str(choice.get("finish_reason") or "")
        is_blocked = answers.ended(answers.Text("", finish)) == answers.BLOCKED
        if is_blocked and "text" not in choice and not choice.get("message"):
            choice["message"] = {}
        message = choice.get("message", choice)
        field = "content" if "message" in choice else "text"
        try:
            text = _joined(message.get(field))
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"an answer without a text: {choice!r:.200}") from error
        if not text and message.get("refusal"):
            text = str(message["refusal"])
            finish = "refusal"
        if isinstance(prompt, list) and all(isinstance(token, int) for token in prompt):
            (prompt,) = client.decode_batch([prompt])
        if isinstance(prompt, str) and prompt.strip() and text.startswith(prompt):
            raise ValueError(
                f"a text that repeats its prompt ({prompt[:60]!r}); the server must not echo it"
            )
        message[field] = answers.with_finish(text, finish if client.marks else "")


def has_form(reply: Facts) -> bool:
    """Return whether all answers of a checked reply end with JSON that has an ``answer``.

    >>> has_form({"choices": [{"text": '{"answer": "B"}'}]}), has_form({"choices": [{"text": "B"}]})
    (True, False)
    """
    texts = [
        choice.get("message", {}).get("content") or choice.get("text")
        for choice in reply["choices"]
    ]
    return all(
        re.search(r'"answer"\s*:[^{}]*}\W*$', answers.apart(str(text)))
        for text in texts
    )


def _check_logprobs(
    client: TemplateAPI, choices: Sequence[Data], prompts: Sequence[Prompt]
) -> None:
    by_token: dict[object, str] = {}
    for choice, ids in zip(choices, prompts, strict=True):
        logprobs = choice.get("logprobs") or {}
        values = logprobs.get("token_logprobs") or []
        top = logprobs.get("top_logprobs") or []
        if {len(values), len(top)} != {len(ids) + 1}:
            raise ValueError(
                f"log-probabilities of {min(len(values), len(top))} tokens instead of {len(ids)} and one more: "
                "the server has to echo prompts as they were split (echo=true, logprobs)"
            )
        for value, likeliest in zip(values[1:-1], top[1:-1], strict=True):
            _check_logprob(value, likeliest or {})
        _check_tokens(client, logprobs.get("tokens") or [], ids)
        by_token.update(zip(ids[1:], map(repr, values[1:-1]), strict=True))
    count = len(by_token)
    different = len(set(by_token.values()))
    # servers may round
    if count >= 5 and (different == 1 or count >= 20 * different):
        raise ValueError(
            f"only {different} log-probabilities for {count} different tokens: "
            "no language model gives such values"
        )


def _check_tokens(client: TemplateAPI, served: Sequence[object], ids: Prompt) -> None:
    """Refuse a reply about other tokens than those sent; only plain words are compared.

    Servers write spaces in their own ways.
    """
    if not served or client.tokenizer_backend != "huggingface":
        return
    words = client.decode_batch([[token] for token in ids])
    for word, name in zip(words, served, strict=False):
        sent = word.strip().casefold()
        got = str(name).strip(" \t\n▁Ġ").casefold()
        is_plain = sent.isascii() and sent.isalnum() and got.isalnum()
        if is_plain and sent != got:
            raise ValueError(
                f"the log-probability of {name!r} instead of {word!r}: "
                "the server has to split prompts as the tokenizer named here does"
            )


def _check_logprob(value: object, likeliest: Facts) -> None:
    """Refuse impossible log-probabilities, or ones above those of the likeliest tokens."""
    # -9999 stands for minus infinity
    if not isinstance(value, int | float) or not -9999 < value <= 1e-3:
        raise ValueError(f"{value!r:.200} in place of a log-probability")
    numbers = [v for v in likeliest.values() if isinstance(v, int | float)]
    largest = max(numbers, default=-math.inf)
    if not value <= largest + 0.1:  # where servers round one of them
        raise ValueError(
            f"a token has the log-probability {value}, the most probable one {largest}: "
            "the server's token_logprobs and top_logprobs don't match"
        )


def _joined(content: object) -> str:
    """Join the parts of a message; parts that aren't text are thoughts before it.

    >>> _joined([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "B"}])
    '<think>Hm.</think>B'

    Raises:
        TypeError: It is no text; a KeyError or AttributeError for a part that is none.
    """
    if not isinstance(content, list):
        return operator.add("", content or "")
    thoughts = ""
    text = ""
    for part in content:
        kind = part["type"]
        inner = _joined(part[kind if kind in part else "text"])
        if kind.endswith("text") or kind == "refusal":
            text += inner
        else:
            thoughts += inner
    end = "</think>" if text else ""
    return f"<think>{thoughts}{end}{text}" if thoughts else text


def largest_sum(probabilities: Mapping[Continuation, float]) -> float:
    """Return the largest sum of probabilities over prefix-free continuations.

    Continuations are texts or tuples of token ids.
    """
    # each continuation with the larger of its probability and the sum of those that it begins
    sums: list[tuple[Continuation, float]] = []
    # in this order those that it begins stand right before it
    for continuation in sorted(probabilities, reverse=True):
        longer = 0.0
        while sums and sums[-1][0][: len(continuation)] == continuation:
            longer += sums.pop()[1]
        sums.append((continuation, max(probabilities[continuation], longer)))
    return sum(value for _, value in sums)


def _folded(text: Continuation) -> Continuation:
    """Fold case, accents and spaces of a text, which tokenizers may merge; token ids stay as they are."""
    if not isinstance(text, str):
        return text
    characters = unicodedata.normalize("NFKD", text.casefold())
    letters = [c for c in characters if not unicodedata.combining(c)]
    return " ".join("".join(letters).split())


def impossible_likelihoods(
    found: Iterable[tuple[Hashable, Continuation, float]],
) -> str:
    """Explain why log-likelihoods can't come from a distribution; empty if they can.

    Each has its context, its continuation and its value in nats. Contexts and continuations are texts or tuples of
    token ids. Of continuations none of which begins another, at most one can follow a context: their probabilities sum
    to at most 1.
    """
    groups: dict[Hashable, dict[Continuation, float]] = {}
    for context, continuation, value in found:
        if value > math.log(_MOST):
            return f"a log-likelihood of {value:.6g}, above 0: a probability of more than 1"
        group = groups.setdefault(context, {})
        key = _folded(continuation)
        if not math.isnan(value):
            group[key] = max(math.exp(value), group.get(key, 0.0))
    for group in groups.values():
        total = largest_sum(group)
        if total > _MOST:
            names = [
                name if isinstance(name, str) else f"tokens {name[:8]}"
                for name in list(group)[:3]
            ]
            some = ", ".join(names)
            return f"continuations that exclude each other ({some}) with probabilities that sum to {total:.0%}"
    return ""
