"""Masked inputs: which token is read where, for every way to score with a masked language model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import BLANK, Cloze

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Reading:
    """One probability to read from a masked input.

    Attributes:
        ids: The input's token ids, special tokens included.
        position: Where the probability is read.
        target: The true token there.
    """

    ids: tuple[int, ...]
    position: int
    target: int


def reveal(tokenizer: PreTrainedTokenizerBase, context: str, word: str, mask: str) -> list[tuple[str, int]]:
    """A word's tokens revealed one at a time from left to right, one mask (or sentinel) at a time.

    Returns:
        Per token ``(the text with the tokens before it and the mask in place of every blank, the token's id)``.

    Raises:
        BiasError: The word has no tokens.
    """
    # a tokenizer that marks the space before a word in the word's first token needs to see it
    space = " " if context.split(BLANK)[0].endswith(" ") else ""
    ids = tokenizer.encode(f"{space}{word}", add_special_tokens=False)
    if not ids:
        raise BiasError(f"the tokenizer makes no tokens of the word {word!r}")
    steps = []
    for number, target in enumerate(ids):
        before = tokenizer.decode(ids[:number]).removeprefix(space) if number else ""
        steps.append((context.replace(BLANK, f"{before}{mask}"), int(target)))
    return steps


def left_to_right(tokenizer: PreTrainedTokenizerBase, question: Cloze) -> list[Reading]:
    """The paper's readings of a word: its tokens unmasked from left to right, nothing of the word after the mask."""
    readings = []
    for text, target in reveal(tokenizer, question.context, question.word, tokenizer.mask_token):
        ids = tokenizer.encode(text)
        if tokenizer.mask_token_id not in ids:
            raise BiasError(f"the tokenizer doesn't recognize the mask token {tokenizer.mask_token!r} in {text!r}")
        readings.append(Reading(tuple(ids), ids.index(tokenizer.mask_token_id), target))
    return readings


def _pll(tokenizer: PreTrainedTokenizerBase, question: Cloze, hide: Callable[[int, int], bool]) -> list[Reading]:
    """Every token of the sentence, masked, with those others of its word that are to be hidden with it."""
    encoded = tokenizer(question.sentence)
    try:
        words = list(encoded.word_ids())  # None: a special token
    except ValueError as error:
        raise BiasError("masked=pll_… needs a fast tokenizer, which knows the words that tokens belong to") from error
    ids = list(encoded["input_ids"])
    readings = []
    for position, word in enumerate(words):
        if word is None:
            continue
        hidden = [
            tokenizer.mask_token_id if other == position or (words[other] == word and hide(position, other)) else token
            for other, token in enumerate(ids)
        ]
        readings.append(Reading(tuple(hidden), position, ids[position]))
    return readings


def pll_original(tokenizer: PreTrainedTokenizerBase, question: Cloze) -> list[Reading]:
    """One token of the whole sentence masked at a time (Salazar et al. 2020, Masked language model scoring)."""
    return _pll(tokenizer, question, lambda position, other: False)


def pll_within_word_l2r(tokenizer: PreTrainedTokenizerBase, question: Cloze) -> list[Reading]:
    """One token masked at a time together with the rest of its word (Kauf & Ivanova 2023, A better way to do PLL)."""
    return _pll(tokenizer, question, lambda position, other: other > position)


READERS: dict[str, Callable[[PreTrainedTokenizerBase, Cloze], list[Reading]]] = {
    "left_to_right": left_to_right,
    "pll_original": pll_original,
    "pll_within_word_l2r": pll_within_word_l2r,
}
