"""Causal language models: Eq. 4, the exponential of the mean log-likelihood of a token.

With ``bos=first`` (what produced the published numbers) the start token is the context of the first token alone, and
the rest is conditioned on the text alone; with ``bos=all`` (Eq. 4 read literally), and with any tokenizer that puts a
start token there by itself, it stays in front throughout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, TypeAlias

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import NextSentence
from lm_eval_bias.scoring import token_likelihoods
from lm_eval_bias.scoring.generative_scores import next_sentence_scores
from lm_eval_bias.scoring.questions import (
    QuestionAnswers,
    clozes,
    contrasts,
    next_sentences,
    refuse_foreign,
)

if TYPE_CHECKING:
    from lm_eval.api.model import TemplateLM

    from lm_eval_bias.harness.internals import Ids, Pair, Requests

Pairs: TypeAlias = "list[Pair]"
_ENDS = (".", "!", "?")
_OPTIONS = ("bos", "inter")
_FAMILY = "a causal language model"
# which of the context, the candidate after it, and the candidate alone a score compares
_NEEDED = {
    "gen": (1,),
    "gen_full": (0, 1),
    "gen_orig": (0, 2),
    "gen_pmi": (1, 2),
    "gen_full_ratio": (0, 1, 2),
}


def pieces(front: Ids, ids: Ids, start: int, bos: str) -> Pairs:
    """Split a text into pairs of context and continuation that give its log-likelihood, token by token.

    Args:
        front: Start tokens that the tokenizer puts in front by itself: always context, never scored.
        ids: The text's tokens, with an end token where the tokenizer appends one.
        start: The start token, which is used where the tokenizer puts none.
        bos: ``first`` or ``all``.

    >>> pieces([], [5, 6, 7], 0, "first"), pieces([], [5, 6, 7], 0, "all")
    ([([0], [5]), ([5], [6, 7])], [([0], [5, 6, 7])])
    >>> pieces([1], [5, 6], 0, "first")
    [([1], [5, 6])]
    """
    if front or bos == "all":
        return [(front or [start], ids)]
    return [([start], ids[:1])] + ([(ids[:1], ids[1:])] if len(ids) > 1 else [])


def _encode(model: TemplateLM, text: str, front: Ids) -> Pair:
    """Return the prefix of a text and its tokens, given the tokenizer's own prefix."""
    ids = token_likelihoods.encode(model, text)
    if front and ids[: len(front)] == front:
        ids = ids[len(front) :]
    elif ids[:1] == [model.prefix_token_id]:  # the user's add_bos_token
        front = ids[:1]
        ids = ids[1:]
    if not ids:
        raise BiasError(f"the tokenizer makes no tokens of {text!r}")
    return front, ids


def _sums(model: TemplateLM, texts: Sequence[Pairs]) -> QuestionAnswers:
    """Compute log-likelihood and number of tokens per text, from its pieces."""
    flat = [pair for pairs in texts for pair in pairs]
    answers = iter(token_likelihoods.loglikelihoods(model, flat))
    sums: QuestionAnswers = []
    for pairs in texts:
        values = [value for value, _ in islice(answers, len(pairs))]
        sums.append((math.fsum(values), sum(len(scored) for _, scored in pairs)))
    return sums


def cloze(model: TemplateLM, requests: Requests) -> QuestionAnswers:
    """Score whole sentences: ``(exp of the mean log-likelihood of a token, number of tokens)`` (0..1)."""
    questions = clozes(requests)
    refuse_foreign(questions, _OPTIONS, _FAMILY)
    front = token_likelihoods.prefix_ids(model)
    start = model.prefix_token_id
    texts = [
        pieces(*_encode(model, q.sentence, front), start, q.options["bos"])
        for q in questions
    ]
    return [(math.exp(total / count), count) for total, count in _sums(model, texts)]


def contrast(model: TemplateLM, requests: Requests) -> QuestionAnswers:
    """Score texts that differ from another in a few words: ``(log-likelihood in nats, number of tokens)``.

    Of the whole text, or from the first token in which the two differ to the end. Where one text's tokens begin the
    other's, from the last token that they share, so that both have one.
    """
    questions = contrasts(requests)
    front = token_likelihoods.prefix_ids(model)
    start = model.prefix_token_id
    texts = []
    for q in questions:
        (lead, ids), cut = _encode(model, q.text, front), 0
        if not q.whole:
            _, other = _encode(model, q.other, front)
            shorter = min(len(ids), len(other))
            same = (ids[i] == other[i] for i in range(shorter))
            cut = min(sum(takewhile(bool, same)), shorter - 1)
        texts.append([((lead or [start]) + ids[:cut], ids[cut:])])
    return _sums(model, texts)


def closed(context: str) -> str:
    """End a context with a full stop where it has no final punctuation.

    >>> closed("She is a nurse"), closed("Is she?")
    ('She is a nurse.', 'Is she?')
    """
    return context if context.endswith(_ENDS) else f"{context}."


def _split(
    model: TemplateLM, context: str, candidate: str, bos: str, front: Ids
) -> tuple[Pairs, Pairs, Pairs]:
    """Make requests for the context, the candidate after it, and the candidate alone.

    Both are encoded together; the candidate's tokens start where the context's own encoding ends.
    """
    start = model.prefix_token_id
    joint_front, joint = _encode(model, f"{context} {candidate}", front)
    cut = len(_encode(model, context, front)[1])
    before = joint[:cut]
    after = joint[cut:]
    if not after:
        raise BiasError(
            f"the tokenizer leaves no tokens for {candidate!r} after {context!r}"
        )
    lead = joint_front or ([start] if bos == "all" else [])
    return (
        pieces(joint_front, before, start, bos),
        [(lead + before, after)],
        pieces(*_encode(model, candidate, front), start, bos),
    )


def _likelihoods(
    model: TemplateLM,
    questions: Sequence[NextSentence],
    needs_all: bool,
) -> QuestionAnswers:
    """Log-likelihoods and token counts of what :func:`_split` gives; 0 for what a question doesn't need."""
    refuse_foreign(questions, _OPTIONS, _FAMILY)
    front = token_likelihoods.prefix_ids(model)
    texts = []
    for q in questions:
        parts = _split(model, closed(q.context), q.candidate, q.options["bos"], front)
        needed = _NEEDED["gen_full_ratio" if needs_all else q.options["inter"]]
        texts += [part if i in needed else [] for i, part in enumerate(parts)]
    sums = _sums(model, texts)
    return [(*sums[i], *sums[i + 1], *sums[i + 2]) for i in range(0, len(sums), 3)]


def sentence_likelihoods(model: TemplateLM, requests: Requests) -> QuestionAnswers:
    """Compute the evidence behind every generative next-sentence score.

    Returns:
        Per request ``(context, its tokens, candidate after it, its tokens, candidate alone, its tokens)``: sums of
        log-likelihoods in nats, each with the number of tokens that it sums over.
    """
    return _likelihoods(model, next_sentences(requests), needs_all=True)


def next_sentence(model: TemplateLM, requests: Requests) -> QuestionAnswers:
    """Score candidates after their context: ``(score, number of the candidate's tokens)``, by the option ``inter``."""
    questions = next_sentences(requests)
    evidence = _likelihoods(model, questions, needs_all=False)
    answers: QuestionAnswers = []
    for q, likelihoods in zip(questions, evidence, strict=True):
        inter = q.options["inter"]
        count = likelihoods[5 if inter == "gen_orig" else 3]
        answers.append((next_sentence_scores(likelihoods)[inter], int(count)))
    return answers
