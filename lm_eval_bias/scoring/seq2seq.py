"""T5-like encoder-decoder models: the blank or the next sentence stands behind the sentinel ``<extra_id_0>``."""

from __future__ import annotations

import math
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.scoring import token_likelihoods
from lm_eval_bias.scoring.causal import closed
from lm_eval_bias.scoring.questions import (
    QuestionAnswers,
    clozes,
    next_sentences,
    refuse_foreign,
    reveal,
)

if TYPE_CHECKING:
    from lm_eval.api.model import TemplateLM
    from transformers import PreTrainedTokenizerBase

    from lm_eval_bias.harness.internals import Ids, Pair, Requests

SENTINEL = "<extra_id_0>"
_FAMILY = "an encoder-decoder model (which scores next sentences with inter=gen)"


def sentinel_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """Id of the first sentinel.

    Raises:
        BiasError: The tokenizer has none: the model is not T5-like.
    """
    ids = tokenizer.encode(SENTINEL, add_special_tokens=False)
    if len(ids) != 1 or ids[0] == tokenizer.unk_token_id:
        raise BiasError(
            f"the tokenizer has no {SENTINEL}: StereoSet's questions to encoder-decoder models need one trained on "
            "masked spans (T5, mT5)"
        )
    return int(ids[0])


def _with_sentinel(tokenizer: PreTrainedTokenizerBase, text: str, sentinel: int) -> Ids:
    """Encode a text with the sentinel in it.

    Some tokenizers (mT5's) don't see the sentinel behind letters: there it is put between the parts, encoded apart.
    """
    ids = tokenizer.encode(text)
    if sentinel in ids:
        return ids
    parts = [
        tokenizer.encode(part, add_special_tokens=False)
        for part in text.split(SENTINEL)
    ]
    joined = parts[0]
    for part in parts[1:]:
        joined = [*joined, sentinel, *part]
    return [*joined, tokenizer.eos_token_id]


def _behind_sentinel(model: TemplateLM, pairs: list[Pair]) -> list[float]:
    """Score the decoder's tokens after the sentinel, for pairs of encoder and decoder ids."""
    queries = [
        pair for ids, decoded in pairs for pair in ((ids, decoded[:1]), (ids, decoded))
    ]
    values = [value for value, _ in token_likelihoods.loglikelihoods(model, queries)]
    return [
        total - first for first, total in zip(values[::2], values[1::2], strict=True)
    ]


def cloze(model: TemplateLM, requests: Requests) -> QuestionAnswers:
    """Score words behind the sentinel: ``(arithmetic mean of their tokens' probabilities, number of tokens)`` (0..1).

    The decoder is forced to ``<extra_id_0>``; the word's tokens are revealed one by one in front of the sentinel.
    """
    questions = clozes(requests)
    refuse_foreign(questions, (), _FAMILY)
    sentinel = sentinel_id(model.tokenizer)
    words = [reveal(model.tokenizer, q.context, q.word, SENTINEL) for q in questions]
    values = iter(
        _behind_sentinel(
            model,
            [
                (_with_sentinel(model.tokenizer, text, sentinel), [sentinel, target])
                for steps in words
                for text, target in steps
            ],
        )
    )
    sizes = map(len, words)
    return [(fmean(map(math.exp, islice(values, size))), size) for size in sizes]


def next_sentence(model: TemplateLM, requests: Requests) -> QuestionAnswers:
    """Score candidates behind the sentinel: ``(Eq. 4 over the candidate's tokens and </s>, their number)`` (0..1).

    Encoder ``<context> <extra_id_0>``, decoder ``<pad> <extra_id_0> <candidate> </s>``; the sentinel is not scored.
    """
    questions = next_sentences(requests)
    refuse_foreign(questions, (), _FAMILY)
    sentinel = sentinel_id(model.tokenizer)
    pairs = []
    for q in questions:
        context = _with_sentinel(
            model.tokenizer, f"{closed(q.context)} {SENTINEL}", sentinel
        )
        candidate = model.tokenizer.encode(f"{SENTINEL} {q.candidate}")
        if candidate[0] != sentinel or candidate[-1] != model.tokenizer.eos_token_id:
            raise BiasError(
                f"the tokenizer puts {SENTINEL} and its end token elsewhere than T5's: {candidate[:3]}…"
            )
        pairs.append((context, candidate))
    values = _behind_sentinel(model, pairs)
    counts = [len(candidate) - 1 for _, candidate in pairs]
    return [
        (math.exp(value / count), count)
        for value, count in zip(values, counts, strict=True)
    ]


def sentence_likelihoods(model: TemplateLM, requests: Requests) -> QuestionAnswers:
    """Refuse: an encoder-decoder model has no likelihood of a context.

    Raises:
        BiasError: Always.
    """
    raise no_contexts()


contrast = sentence_likelihoods


def no_contexts() -> BiasError:
    """Make the error for questions that an encoder-decoder model can't answer."""
    return BiasError(
        "the task compares likelihoods of texts from their beginning, which an encoder-decoder model doesn't have: use "
        "a causal model, or of StereoSet run tasks whose names end in _inter"
    )
