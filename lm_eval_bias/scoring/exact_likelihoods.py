"""Log-likelihoods of texts, each its own, and on request with the number of tokens they sum over.

The harness's ``hf`` backend mixes up requests that are the same tokens divided at different places (see
:func:`.token_likelihoods.rounds`); the methods added here ask for them apart. Its backends also return a
continuation's log-likelihood without its length; the count given here comes from the backend's own encoding of the
pair.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lm_eval_bias.errors import BiasError
from lm_eval_bias.scoring import api_answers, response_cache, token_likelihoods
from lm_eval_bias.scoring.batch_encoding import encoded_once

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import LM, TemplateLM

EXACT = "exact_loglikelihood"
WITH_LENGTH = "loglikelihood_with_length"


def _ids(model: TemplateLM, context: str, continuation: str) -> tuple[list[int], list[int]]:
    """A pair's token ids as the harness makes them."""
    if context:
        return model._encode_pair(context, continuation)
    return [model.prefix_token_id], model.tok_encode(continuation, add_special_tokens=False)


def _exact(self: LM, requests: Sequence[Instance]) -> list[tuple[float, bool]]:
    """Answer ``(context, continuation)`` requests.

    Returns:
        One ``(log-likelihood in nats, is greedy)`` a request, as the backend's own ``loglikelihood`` gives it for that
        request alone. Answers come from the cache of ``--use_cache`` where it has them and go into it.
    """
    answers = response_cache.kept(self, "loglikelihood", (request.args for request in requests))
    asked = [i for i, answer in enumerate(answers) if answer is None]
    parts = token_likelihoods.portions(self, asked)
    with contextlib.ExitStack() as stack:
        stack.enter_context(api_answers.asking(self))
        if token_likelihoods.shares_forwards(self):
            stack.enter_context(encoded_once(self, [requests[i].args for i in asked]))
            parts = token_likelihoods.rounds((i, *_ids(self, *requests[i].args)) for i in asked)
        token_likelihoods.ask_in_parts(self, "loglikelihood", requests, parts, requests[0], answers)
    return [(float(answer[0]), bool(answer[1])) for answer in answers]


def _with_length(self: TemplateLM, requests: Sequence[Instance]) -> list[tuple[float, bool, int]]:
    """Answer ``(context, continuation)`` requests.

    Returns:
        One ``(log-likelihood in nats, is greedy, number of continuation tokens)`` a request.
    """
    answers = getattr(self, EXACT)(requests)
    return [
        (*answer, len(self._encode_pair(*request.args)[1])) for answer, request in zip(answers, requests, strict=True)
    ]


def _without_tokens(self: LM, requests: Sequence[Instance]) -> list[tuple[float, bool, int]]:
    raise BiasError(
        f"the model type {type(self).__name__} does not tell how many tokens a word has, which "
        "word_probability=geometric_mean needs: use a backend with log-likelihoods and a tokenizer (hf, vllm)"
    )


def install() -> None:
    """Add the methods to the harness's model base classes; nothing that they have is replaced."""
    from lm_eval.api.model import LM, TemplateLM

    if not hasattr(LM, EXACT):
        setattr(LM, EXACT, _exact)
        setattr(LM, WITH_LENGTH, _without_tokens)
        setattr(TemplateLM, WITH_LENGTH, _with_length)
