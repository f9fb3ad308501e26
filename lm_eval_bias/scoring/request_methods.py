"""Our request types as methods of the harness's models: log-likelihoods of texts, and answers to questions.

The harness's ``hf`` backend mixes up requests that are the same tokens divided at different places (see
:func:`.token_likelihoods.mixes_up`); the methods added here ask for them apart. Its backends also return a
continuation's log-likelihood without its length; the count given here comes from the backend's own encoding of the
pair. Generative models answer questions from log-likelihoods, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.numbers import join_some
from lm_eval_bias.core.questions import EXACT, KINDS, WITH_LENGTH, WITH_LENGTH_IF_KNOWN
from lm_eval_bias.harness import distributed, internals, servers, tokenization_boundary
from lm_eval_bias.scoring import token_likelihoods
from lm_eval_bias.scoring.questions import QuestionAnswers

if TYPE_CHECKING:
    from lm_eval.api.model import LM, TemplateLM

    from lm_eval_bias.harness.internals import Requests

logger = logging.getLogger("lm_eval.bias")


def _tell(requests: Requests) -> None:
    """Print whose requests come next."""
    names = list(dict.fromkeys(str(request.task_name) for request in requests))
    if names and distributed.first():
        logger.info("%s: %s requests", join_some(names), f"{len(requests):,}")


def _exact(self: LM, requests: Requests) -> token_likelihoods.Likelihoods:
    """Answer ``(context, continuation)`` requests.

    Returns:
        One ``(log-likelihood in nats, is greedy)`` a request, as the backend's own ``loglikelihood`` gives it for that
        request alone. Answers come from the cache of ``--use_cache`` where it has them and go into it.

    Raises:
        BiasError: No distribution has such log-likelihoods.
    """
    _tell(requests)

    def run_batch(places: token_likelihoods.Places) -> token_likelihoods.Likelihoods:
        return self.loglikelihood([requests[i or 0] for i in places])

    def tokens(place: int) -> internals.Pair:
        return internals.encode_pair(self, *requests[place].args)

    keys = [request.args for request in requests]
    tokenization_boundary.check_tokenizer(
        self, prompt=str(requests[0].args[0]) if requests else ""
    )
    tokenization_boundary.find_cut(self, requests)
    return token_likelihoods.checked(self, keys, keys, run_batch, tokens)


def _with_length(self: TemplateLM, requests: Requests) -> list[tuple[float, bool, int]]:
    """Answer ``(context, continuation)`` requests.

    Returns:
        One ``(log-likelihood in nats, is greedy, number of continuation tokens)`` a request.
    """
    pairs = [request.args for request in requests]
    lengths = [len(internals.encode_pair(self, *pair)[1]) for pair in pairs]
    answers = getattr(self, EXACT)(requests)
    return [(*answer, n) for answer, n in zip(answers, lengths, strict=True)]


def _refuse(problem: str) -> Callable[..., QuestionAnswers]:
    def method(self: LM, requests: Requests) -> QuestionAnswers:
        raise BiasError(f"the model type {type(self).__name__} {problem}")

    setattr(method, internals.REFUSES, problem)
    return method


def _generative(kind: str) -> Callable[..., QuestionAnswers]:
    def method(self: LM, requests: Requests) -> QuestionAnswers:
        from lm_eval_bias.scoring import causal, seq2seq

        _tell(requests)
        tokenization_boundary.check_tokenizer(self)
        family = seq2seq if getattr(self, "backend", "causal") == "seq2seq" else causal
        return getattr(family, kind)(self, requests)

    return method


# what the harness's model base classes get: any, and those with log-likelihoods of tokens
METHODS: dict[str, servers.Method] = {
    kind: _refuse(
        f"cannot answer {kind!r} questions: it needs a backend with log-likelihoods and a tokenizer (hf, vllm, "
        "local-completions), or hf-mlm or hf-nsp"
    )
    for kind in KINDS
}
METHODS[EXACT] = METHODS[WITH_LENGTH_IF_KNOWN] = _exact
METHODS[WITH_LENGTH] = _refuse(
    "doesn't say how many tokens a word has, which the task's options need: use a backend with log-likelihoods and a "
    "tokenizer (hf, vllm)"
)
TOKEN_METHODS: dict[str, servers.Method] = {kind: _generative(kind) for kind in KINDS}
TOKEN_METHODS[WITH_LENGTH] = TOKEN_METHODS[WITH_LENGTH_IF_KNOWN] = _with_length
