"""The questions of tasks as methods of the harness's models: generative ones answer them from log-likelihoods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import KINDS
from lm_eval_bias.scoring.questions import Answer

if TYPE_CHECKING:
    from lm_eval.api.model import LM

    from lm_eval_bias.harness.internals import Instance


def _refuse(kind: str) -> Callable[..., list[Answer]]:
    def method(self: LM, requests: Sequence[Instance]) -> list[Answer]:
        raise BiasError(
            f"the model type {type(self).__name__} cannot answer {kind!r} questions: it needs a backend with "
            "log-likelihoods and a tokenizer (hf, vllm, local-completions), or hf-mlm or hf-nsp"
        )

    return method


def _generative(kind: str) -> Callable[..., list[Answer]]:
    def method(self: LM, requests: Sequence[Instance]) -> list[Answer]:
        from lm_eval_bias.scoring import causal, seq2seq

        family = seq2seq if getattr(self, "backend", "causal") == "seq2seq" else causal
        return getattr(family, kind)(self, requests)

    return method


# what the harness's model base classes get: any, and those with log-likelihoods of tokens
METHODS = {kind: _refuse(kind) for kind in KINDS}
TOKEN_METHODS = {kind: _generative(kind) for kind in KINDS}
