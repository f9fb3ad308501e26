"""T5-like encoder-decoder models: the blank or the next sentence stands behind the sentinel ``<extra_id_0>``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.scoring import masked, token_likelihoods
from lm_eval_bias.scoring.causal import closed
from lm_eval_bias.scoring.questions import Answer, clozes, next_sentences, refuse_foreign

SENTINEL = "<extra_id_0>"
_FAMILY = "an encoder-decoder model (whose inter is gen)"


def sentinel_id(tokenizer: Any) -> int:
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


def _with_sentinel(tokenizer: Any, text: str, sentinel: int) -> list[int]:
    """A text with the sentinel in it as token ids.

    Some tokenizers (mT5's) don't see the sentinel behind letters: there it is put between the parts, encoded apart.
    """
    ids = list(tokenizer.encode(text))
    if sentinel in ids:
        return ids
    parts = [list(tokenizer.encode(part, add_special_tokens=False)) for part in text.split(SENTINEL)]
    joined = parts[0]
    for part in parts[1:]:
        joined = [*joined, sentinel, *part]
    return [*joined, tokenizer.eos_token_id]


def cloze(model: Any, requests: Sequence[Any]) -> list[Answer]:
    """Score words behind the sentinel: ``(arithmetic mean of their tokens' probabilities, number of tokens)`` (0..1).

    The decoder is forced to ``<extra_id_0>``; the word's tokens are revealed one by one in front of the sentinel.
    """
    questions = clozes(requests)
    refuse_foreign(questions, (), _FAMILY)
    sentinel = sentinel_id(model.tokenizer)
    pairs: list[tuple[list[int], list[int]]] = []
    lengths = []
    for q in questions:
        steps = masked.reveal(model.tokenizer, q.context, q.word, SENTINEL)
        lengths.append(len(steps))
        for text, target in steps:
            ids = _with_sentinel(model.tokenizer, text, sentinel)
            pairs += [(ids, [sentinel]), (ids, [sentinel, target])]
    values = iter(token_likelihoods.loglikelihoods(model, pairs))
    answers: list[Answer] = []
    for count in lengths:
        found = []
        for _ in range(count):
            behind, through = next(values)[0], next(values)[0]
            found.append(math.exp(through - behind))
        answers.append((math.fsum(found) / count, count))
    return answers


def next_sentence(model: Any, requests: Sequence[Any]) -> list[Answer]:
    """Score candidates behind the sentinel: ``(Eq. 4 over the candidate's tokens and </s>, their number)`` (0..1).

    Encoder ``<context> <extra_id_0>``, decoder ``<pad> <extra_id_0> <candidate> </s>``; the sentinel is not scored.
    """
    questions = next_sentences(requests)
    refuse_foreign(questions, (), _FAMILY)
    sentinel = sentinel_id(model.tokenizer)
    pairs: list[tuple[list[int], list[int]]] = []
    counts = []
    for q in questions:
        context = _with_sentinel(model.tokenizer, f"{closed(q.context)} {SENTINEL}", sentinel)
        candidate = model.tokenizer.encode(f"{SENTINEL} {q.candidate}")
        if candidate[0] != sentinel or candidate[-1] != model.tokenizer.eos_token_id:
            raise BiasError(f"the tokenizer puts {SENTINEL} and its end token elsewhere than T5's: {candidate[:3]}…")
        pairs += [(context, [sentinel]), (context, candidate)]
        counts.append(len(candidate) - 1)
    values = iter(token_likelihoods.loglikelihoods(model, pairs))
    answers: list[Answer] = []
    for count in counts:
        behind, through = next(values)[0], next(values)[0]
        answers.append((math.exp((through - behind) / count), count))
    return answers


def sentence_likelihoods(model: Any, requests: Sequence[Any]) -> list[Answer]:
    """Refuse: an encoder-decoder model has no likelihood of a context.

    Raises:
        BiasError: Always.
    """
    raise no_contexts()


def no_contexts() -> BiasError:
    """The error for variants that an encoder-decoder model doesn't have."""
    return BiasError(
        "the generative variants compare likelihoods of contexts, which an encoder-decoder model doesn't have: run "
        "stereoset_<language>_inter, or a causal model"
    )
