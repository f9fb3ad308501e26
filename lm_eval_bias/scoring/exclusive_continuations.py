"""Log-likelihoods that no distribution over texts has: nothing may be scored with them.

Of continuations of one context none of which begins another, at most one can follow: their probabilities sum to at
most 1. One that begins another (" he", " hers") may follow together with it, so that of such a family the likelier
side counts: the one at the beginning, or all the longer ones together. Texts are compared without case, accents and
the number of spaces, since a tokenizer may not tell these apart; token ids as they are.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.harness import response_cache

if TYPE_CHECKING:
    from lm_eval.api.model import LM

Continuation = str | tuple[int, ...]
# half precision rounds a probability of 1/2 by as much as 6%, in every forward anew
MOST = 1.1


def _folded(text: Continuation) -> Continuation:
    if not isinstance(text, str):
        return text
    letters = unicodedata.normalize("NFKD", text.casefold())
    return " ".join("".join(letter for letter in letters if not unicodedata.combining(letter)).split())


def largest_sum(probabilities: Mapping[Any, float]) -> float:
    """The largest sum of probabilities over continuations none of which begins another.

    Args:
        probabilities: By continuation: all texts, or all tuples of token ids.

    >>> largest_sum({"he": 0.5, "her": 0.25, "hers": 0.125, "she": 0.25}), largest_sum({(1,): 0.25, (1, 2): 0.5})
    (0.75, 0.5)
    """
    families: list[list[Any]] = [["", 0.0, 0.0]]  # a beginning, its own probability, the sum of the longer ones
    total = 0.0

    def close() -> None:
        nonlocal total
        _, own, longer = families.pop()
        if len(families) > 1:
            families[-1][2] += max(own, longer)
        else:
            total += max(own, longer)

    for continuation in sorted(probabilities):  # whatever begins alike stands together, the shortest first
        while len(families) > 1 and continuation[: len(families[-1][0])] != families[-1][0]:
            close()
        families.append([continuation, probabilities[continuation], 0.0])
    while len(families) > 1:
        close()
    return total


def problem(answers: Iterable[tuple[Hashable, Continuation, float]]) -> str:
    """Why log-likelihoods are none; empty where they may be some.

    Args:
        answers: Each with its context and its continuation, both texts or both token ids.
    """
    groups: dict[Hashable, dict[Continuation, float]] = {}
    for context, continuation, value in answers:
        if value > math.log(MOST):
            return f"a log-likelihood of {value:.6g}, above 0: a probability of more than 1"
        if not math.isnan(value):
            groups.setdefault(context, {})[continuation] = math.exp(value)
    for group in groups.values():
        if sum(group.values()) <= MOST:
            continue
        probabilities: dict[Continuation, float] = {}
        for continuation, probability in group.items():
            key = _folded(continuation)
            probabilities[key] = max(probability, probabilities.get(key, 0.0))
        total = largest_sum(probabilities)
        if total > MOST:
            ids = "" if isinstance(next(iter(group)), str) else "the tokens "
            names = [repr(name) if isinstance(name, str) else " ".join(map(str, name[:8])) for name in list(group)[:3]]
            return (
                f"the probabilities of continuations that exclude each other ({ids}{', '.join(names)}"
                f"{', …' if len(group) > 3 else ''}) sum to {total:.0%} after the same context"
            )
    return ""


def refuse(model: LM, kind: str, keys: Sequence[Any], answers: Iterable[tuple[Hashable, Continuation, float]]) -> None:
    """Stop a run before it scores such answers, and take them out of the cache of ``--use_cache``.

    Args:
        model: That gave them.
        kind: As which they are kept.
        keys: How they are named in the cache.
        answers: As of :func:`problem`.

    Raises:
        BiasError: They can't be probabilities.
    """
    wrong = problem(answers)
    if wrong:
        response_cache.forget(model, kind, keys)
        raise BiasError(
            f"the model type {type(model).__name__} gives {wrong}: check its log-probabilities (nothing was saved, and "
            "--use_cache keeps none of these answers)"
        )
