"""The questions of tasks as methods of the harness's models: generative ones answer them from log-likelihoods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.scoring.questions import KINDS, Answer

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import LM

Method = Callable[[Any, Sequence[Any]], list[Answer]]


def _refuse(kind: str, needs: str) -> Method:
    def method(self: LM, requests: Sequence[Instance]) -> list[Answer]:
        raise BiasError(f"the model type {type(self).__name__} cannot answer {kind!r} questions: {needs}")

    return method


def _generative(kind: str) -> Method:
    def method(self: LM, requests: Sequence[Instance]) -> list[Answer]:
        from lm_eval_bias.scoring import causal, seq2seq

        family = seq2seq if getattr(self, "backend", "causal") == "seq2seq" else causal
        return getattr(family, kind)(self, requests)

    method.__doc__ = f"Answer ``{kind}`` questions from the log-likelihoods of a generative model."
    return method


def install() -> None:
    """Give the harness's model base classes a method per question; nothing that they have is replaced."""
    from lm_eval.api.model import LM, TemplateLM

    needs = "it needs a backend with log-likelihoods and a tokenizer (hf, vllm, local-completions), or hf-mlm or hf-nsp"
    for kind in KINDS:
        if not hasattr(LM, kind):
            setattr(LM, kind, _refuse(kind, needs))
            setattr(TemplateLM, kind, _generative(kind))
