"""``--model hf-mlm``: masked language models, with their next-sentence head where the checkpoint has one."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import transformers

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import (
    CLOZE,
    CONTRAST,
    NEXT_SENTENCE,
    Cloze,
    Contrast,
)
from lm_eval_bias.models.question_model import QuestionModel, ScoredTexts, padded
from lm_eval_bias.scoring import questions
from lm_eval_bias.scoring.questions import (
    clozes,
    contrasts,
    next_sentences,
    refuse_foreign,
    reveal,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from lm_eval_bias.harness.internals import Requests

_HEAD = "seq_relationship"
Ids = list[int]


def _no_head(where: str) -> BiasError:
    return BiasError(
        f"--model hf-mlm pretrained={where}: the checkpoint has no next-sentence head (no {_HEAD} weights) and "
        f"cannot answer between-sentence questions: run tasks whose names end in _intra"
    )


class Reading(NamedTuple):
    """A probability to read from a masked input."""

    ids: tuple[int, ...]  # with special tokens
    position: int
    target: int  # the true token there


Readings = list[Reading]


def left_to_right(tokenizer: PreTrainedTokenizerBase, question: Cloze) -> Readings:
    """Unmask a word's tokens from left to right, as in the paper; nothing of the word stands behind the mask."""
    mask = tokenizer.mask_token
    readings = []
    for text, target in reveal(tokenizer, question.context, question.word, mask):
        ids = tokenizer.encode(text)
        if tokenizer.mask_token_id not in ids:
            raise BiasError(
                f"the tokenizer doesn't recognize the mask token {mask!r} in {text!r}"
            )
        readings.append(Reading(tuple(ids), ids.index(tokenizer.mask_token_id), target))
    return readings


def _words(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[Ids, list[Ids]]:
    """Return a text's tokens, and for each of its words the places of its tokens."""
    ids, word_ids = _encode(tokenizer, text)
    runs = itertools.groupby(range(len(ids)), word_ids.__getitem__)
    return ids, [list(run) for word, run in runs if word is not None]


def _masked(
    tokenizer: PreTrainedTokenizerBase, ids: Ids, groups: Iterable[Ids]
) -> Readings:
    """Unmask each group of places, token by token from left to right."""
    readings = []
    for group in groups:
        masked = ids.copy()
        for place in group:
            masked[place] = tokenizer.mask_token_id
        for place in group:
            readings.append(Reading(tuple(masked), place, ids[place]))
            masked[place] = ids[place]
    return readings


def _encode(
    tokenizer: PreTrainedTokenizerBase, text: str
) -> tuple[list[int], list[int | None]]:
    """Return a text's tokens, and the word that each belongs to; ``None``: a special token."""
    encoded = tokenizer(text)
    try:
        words = encoded.word_ids()
    except ValueError as error:
        raise BiasError(
            "texts of which the differing words are scored need a fast tokenizer, which knows the words that tokens "
            "belong to"
        ) from error
    return encoded["input_ids"], words


def shared(tokenizer: PreTrainedTokenizerBase, question: Contrast) -> Readings:
    """Mask each token that a text shares with the other, one at a time (Nangia et al. 2020)."""
    encoded = tokenizer(question.text, return_special_tokens_mask=True)
    ids = encoded["input_ids"]
    special = encoded["special_tokens_mask"]
    other = tokenizer(question.other)["input_ids"]
    places: Ids = []
    for start, _, size in SequenceMatcher(None, ids, other).get_matching_blocks():
        places += range(start, start + size)
    return _masked(tokenizer, ids, [[i] for i in places if not special[i]])


def differing(tokenizer: PreTrainedTokenizerBase, question: Contrast) -> Readings:
    """Unmask the words that the other text doesn't have, token by token from left to right.

    Where the other has words in addition alone, the word before these, so that both texts have one.
    """
    ids, places = _words(tokenizer, question.text)
    other_ids, other_places = _words(tokenizer, question.other)
    words = [tuple(ids[i] for i in word) for word in places]
    others = [tuple(other_ids[i] for i in word) for word in other_places]
    hidden: Ids = []
    before: Ids = []
    for tag, start, end, _, _ in SequenceMatcher(None, words, others).get_opcodes():
        if tag == "insert":
            before = before or places[max(start - 1, 0)]
        elif tag != "equal":
            hidden += itertools.chain.from_iterable(places[start:end])
    return _masked(tokenizer, ids, [hidden or before])


class HFMaskedLM(QuestionModel):
    """A masked language model from ``AutoModelForMaskedLM``.

    Words are scored as in the paper: by the arithmetic mean of the probabilities of the word's tokens, unmasked from
    left to right. Next sentences are scored by the probability of "is next" (class 0) of the checkpoint's head.
    """

    kind = "hf-mlm"

    def __init__(self, pretrained: str, **options: Any) -> None:
        """Load a checkpoint; arguments as :class:`~lm_eval_bias.models.question_model.QuestionModel`.

        Raises:
            BiasError: It is no masked language model.
        """
        super().__init__(pretrained, **options)
        if self.tokenizer.mask_token is None:
            raise BiasError(
                f"--model hf-mlm pretrained={pretrained}: its tokenizer has no mask token, so it is not a "
                "masked language model"
            )
        self._model, missing = self.load(transformers.AutoModelForMaskedLM)
        if head := [name for name in missing if "pooler" not in name]:
            raise BiasError(
                f"--model hf-mlm pretrained={pretrained}: the checkpoint has no masked-LM head ({head[0]} is missing)"
            )
        self.max_length = self._limit(self._model)
        if NEXT_SENTENCE in questions.expected:
            _ = self._with_head

    def cloze(self, requests: Requests) -> ScoredTexts:
        """Score words in blanks: ``(score, number of tokens)``; see the class for the scores."""
        refuse_foreign(clozes(requests), (), "a masked language model")
        return self.answers(CLOZE, requests, self._fill)

    def contrast(self, requests: Requests) -> ScoredTexts:
        """Score texts beside others: ``(sum of log-probabilities in nats, number of tokens)``; nan if none differs.

        Of the tokens that both texts share, each masked alone, or of the words that differ, unmasked from left to
        right (:class:`~lm_eval_bias.core.questions.Contrast`).
        """
        return self.answers(CONTRAST, requests, self._contrast)

    def _contrast(self, requests: Requests) -> ScoredTexts:
        readings = [
            (shared if question.whole else differing)(self.tokenizer, question)
            for question in contrasts(requests)
        ]
        return [
            (math.fsum(values) if values else math.nan, len(values))
            for values in self._logprobs(readings)
        ]

    def _fill(self, requests: Requests) -> ScoredTexts:
        readings = [left_to_right(self.tokenizer, q) for q in clozes(requests)]
        return [
            (math.fsum(map(math.exp, values)) / len(values), len(values))
            for values in self._logprobs(readings)
        ]

    @torch.inference_mode()
    def _logprobs(self, readings: Sequence[Sequence[Reading]]) -> list[list[float]]:
        """Compute the log-probability of each reading; inputs often recur, and each is run once."""
        wanted = defaultdict(set)
        for reading in itertools.chain.from_iterable(readings):
            wanted[reading.ids].add(reading)
        logprobs = {}
        rows = list(wanted)
        for batch in self.batches(rows):
            logits = self._model(**self.inputs([rows[i] for i in batch])).logits
            for place, i in enumerate(batch):
                for reading in wanted[rows[i]]:
                    at_position = logits[place, reading.position].float()
                    logprob = at_position.log_softmax(-1)[reading.target]
                    logprobs[reading] = logprob.item()
        return [[logprobs[reading] for reading in of_text] for of_text in readings]

    @cached_property
    def _with_head(self) -> transformers.PreTrainedModel:
        """The model with its next-sentence head, loaded on first use."""
        auto_class = transformers.AutoModelForNextSentencePrediction
        if type(self._model.config) not in auto_class._model_mapping:
            raise _no_head(self._pretrained)
        model, missing = self.load(auto_class)
        if any(_HEAD in name or "pooler" in name for name in missing):
            raise _no_head(self._pretrained)
        return model

    def next_sentence(self, requests: Requests) -> ScoredTexts:
        """Score candidates after their context: ``(probability of "is next", number of tokens of the pair)``."""
        refuse_foreign(next_sentences(requests), (), "a masked language model")
        return self.answers(NEXT_SENTENCE, requests, self._follow)

    @torch.inference_mode()
    def _follow(self, requests: Requests) -> ScoredTexts:
        encoded = [
            self.tokenizer(q.context, q.candidate) for q in next_sentences(requests)
        ]
        rows = [pair["input_ids"] for pair in encoded]

        def logits(batch: list[int]) -> torch.Tensor:
            inputs = self.inputs([rows[i] for i in batch])
            if "token_type_ids" in encoded[0]:
                types = padded([encoded[i]["token_type_ids"] for i in batch])
                inputs["token_type_ids"] = types.to(self._device)
            return self._with_head(**inputs).logits

        return self.probabilities(rows, logits, 0)
