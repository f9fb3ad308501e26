"""Log-likelihoods of texts, each its own, and on request with the number of tokens they sum over.

The harness's ``hf`` backend mixes up requests that are the same tokens divided at different places (see
:func:`.token_likelihoods.rounds`); the methods added here ask for them apart. Its backends also return a
continuation's log-likelihood without its length; the count given here comes from the backend's own encoding of the
pair.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.harness import api_answers, internals
from lm_eval_bias.harness.internals import shadowed
from lm_eval_bias.scoring import token_likelihoods

EXACT = "exact_loglikelihood"
WITH_LENGTH = "loglikelihood_with_length"


@contextlib.contextmanager
def _encoding_once(model: Any, requests: Sequence[Any]) -> Iterator[list[tuple[list[int], list[int]]]]:
    """The requests' token ids, which the model's ``loglikelihood`` then takes as well while the context lasts.

    Encoding is most of the time before a small model's first forward pass. The requests of a document share their
    context, which is encoded once too.
    """
    known: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
    with shadowed(model, "tok_encode", functools.lru_cache(maxsize=8)(model.tok_encode)):
        for context, continuation in (request.args for request in requests):
            if (context, continuation) not in known:
                known[context, continuation] = internals.encode_pair(model, context, continuation)
    encode_pair = getattr(model, internals.ENCODE_PAIR)
    with shadowed(model, internals.ENCODE_PAIR, lambda *pair: known[pair] if pair in known else encode_pair(*pair)):
        yield [known[request.args] for request in requests]


def _exact(self: Any, requests: Sequence[Any]) -> list[tuple[float, bool]]:
    """Answer ``(context, continuation)`` requests.

    Returns:
        One ``(log-likelihood in nats, is greedy)`` a request, as the backend's own ``loglikelihood`` gives it for that
        request alone. Answers come from the cache of ``--use_cache`` where it has them and go into it.
    """

    def ask(places: list[int | None]) -> list[Any]:
        answers: list[Any] = self.loglikelihood([requests[i or 0] for i in places])
        return answers

    with contextlib.ExitStack() as stack:
        stack.enter_context(api_answers.asking(self))

        def divide(asked: list[int]) -> list[list[Any]]:
            pairs = stack.enter_context(_encoding_once(self, [requests[i] for i in asked]))
            return token_likelihoods.rounds((i, *pair) for i, pair in zip(asked, pairs, strict=True))

        apart = divide if token_likelihoods.shares_forwards(self) else None
        keys = [request.args for request in requests]
        answers = token_likelihoods.in_step(self, "loglikelihood", keys, ask, apart)
    return [(float(answer[0]), bool(answer[1])) for answer in answers]


def _with_length(self: Any, requests: Sequence[Any]) -> list[tuple[float, bool, int]]:
    """Answer ``(context, continuation)`` requests.

    Returns:
        One ``(log-likelihood in nats, is greedy, number of continuation tokens)`` a request.
    """
    found = getattr(self, EXACT)(requests)
    return [
        (*answer, len(internals.encode_pair(self, *request.args)[1]))
        for answer, request in zip(found, requests, strict=True)
    ]


def _without_tokens(self: Any, requests: Sequence[Any]) -> list[Any]:
    raise BiasError(
        f"the model type {type(self).__name__} does not tell how many tokens a word has, which "
        "word_probability=geometric_mean needs: use a backend with log-likelihoods and a tokenizer (hf, vllm)"
    )


# what the harness's model base classes get: any, and those with log-likelihoods of tokens
METHODS = {EXACT: _exact, WITH_LENGTH: _without_tokens}
TOKEN_METHODS = {WITH_LENGTH: _with_length}
