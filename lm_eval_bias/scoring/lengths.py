"""Log-likelihoods together with the number of tokens they sum over.

The harness's backends return a continuation's log-likelihood without its length in tokens. The method added here
answers a request with both; the count comes from the backend's own encoding of the pair, so it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lm_eval_bias.errors import BiasError

REQUEST = "loglikelihood_with_length"


def _with_length(self: Any, requests: Sequence[Any]) -> list[tuple[float, bool, int]]:
    """Answer ``(context, continuation)`` requests.

    Returns:
        One ``(log-likelihood in nats, is greedy, number of continuation tokens)`` a request. Log-likelihoods come from
        the cache of ``--use_cache`` where it has them and go into it.
    """
    from lm_eval.api.model import hash_args

    answers: list[Any] = [None] * len(requests)
    cache = getattr(self.cache_hook, "dbdict", None)
    if cache is not None:
        for i, request in enumerate(requests):
            answers[i] = cache.get(hash_args("loglikelihood", request.args))
    asked = [i for i, answer in enumerate(answers) if answer is None]
    batch = [requests[i] for i in asked]
    batch += [requests[0]] * _missing(self, len(batch))
    if batch:
        fresh = self.loglikelihood(batch)
        for i, answer in zip(asked, fresh[: len(asked)], strict=True):
            answers[i] = answer
            self.cache_hook.add_partial("loglikelihood", requests[i].args, answer)
        if cache is not None:
            cache.commit()
    return [
        (float(answer[0]), bool(answer[1]), len(self._encode_pair(*request.args)[1]))
        for answer, request in zip(answers, requests, strict=True)
    ]


def _missing(model: Any, here: int) -> int:
    """How many requests this rank lacks to the rank with most (the harness evens out only its own request types)."""
    if model.world_size == 1:
        return 0
    import torch

    everywhere = model.all_gather(torch.tensor(here, device=model.device))
    return int(everywhere.max().item()) - here


def _without_tokens(self: Any, requests: Sequence[Any]) -> list[Any]:
    raise BiasError(
        f"the model type {type(self).__name__} does not tell how many tokens a word has, which "
        "word_probability=geometric_mean needs: use a backend with log-likelihoods and a tokenizer (hf, vllm)"
    )


def install() -> None:
    """Add the method to the harness's model base classes; nothing that they have is replaced."""
    from lm_eval.api.model import LM, TemplateLM

    if not hasattr(LM, REQUEST):
        setattr(LM, REQUEST, _without_tokens)
        setattr(TemplateLM, REQUEST, _with_length)
