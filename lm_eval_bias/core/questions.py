"""The questions that a task asks, which each model family answers in its own way.

- ``cloze``: how well does this word fill this blank?
- ``next_sentence``: how well does this sentence follow this one?
- ``sentence_likelihoods``: how likely are a context, a candidate after it, and the candidate alone?
  (the evidence behind the second)
- ``contrast``: how likely is a text, beside another that differs from it in a few words?

A question is a request type of the harness (:mod:`lm_eval_bias.scoring.questions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lm_eval_bias.core import Facts
from lm_eval_bias.core.errors import BiasError

CLOZE = "cloze"
NEXT_SENTENCE = "next_sentence"
SENTENCE_LIKELIHOODS = "sentence_likelihoods"
CONTRAST = "contrast"
KINDS = (CLOZE, NEXT_SENTENCE, SENTENCE_LIKELIHOODS, CONTRAST)
# the other request types of this package, beside those of questions: names of methods, too
EXACT = "exact_loglikelihood"
WITH_LENGTH = "loglikelihood_with_length"
WITH_LENGTH_IF_KNOWN = "loglikelihood_with_length_if_known"
GENERATED = "generated_text"
BLANK = "BLANK"

# what a task's metadata may choose, the default first
OPTIONS: dict[str, tuple[str, ...]] = {
    "bos": ("first", "all"),
    "masked": ("left_to_right",),  # in documents, whose hashes it is part of
    "inter": ("gen", "gen_full", "gen_orig", "gen_pmi", "gen_full_ratio"),
}


class Question:
    """A question; what a kind of question is about are its fields.

    Attributes:
        kind: One of :data:`KINDS`.
    """

    kind: str

    @property
    def arguments(self) -> tuple[object, ...]:
        """The arguments of a harness instance: the fields, without the kind."""
        return tuple(value for name, value in vars(self).items() if name != "kind")


@dataclass(frozen=True)
class Cloze(Question):
    """A question: how well does a word fill the blank of a context?

    Attributes:
        context: Text with :data:`BLANK` once or more, perhaps glued to letters.
        word: The candidate.
        sentence: The whole sentence with the candidate, as its authors wrote it.
        options: Choices of :data:`OPTIONS`.
        kind: :data:`CLOZE`.
    """

    context: str
    word: str
    sentence: str
    options: Mapping[str, str] = field(default_factory=dict)
    kind: str = CLOZE


@dataclass(frozen=True)
class NextSentence(Question):
    """A question: how well does a candidate follow a context?

    Attributes:
        context: A sentence.
        candidate: A sentence that may follow it.
        options: Choices of :data:`OPTIONS`.
        kind: :data:`NEXT_SENTENCE`, or :data:`SENTENCE_LIKELIHOODS` for the evidence.
    """

    context: str
    candidate: str
    options: Mapping[str, str] = field(default_factory=dict)
    kind: str = NEXT_SENTENCE


@dataclass(frozen=True)
class Contrast(Question):
    """A question: how likely is a text, compared with another that differs in a few words?

    Attributes:
        text: The text.
        other: What it is compared with.
        whole: Whether the whole text counts: of masked models, as Nangia et al. (2020) do it, the tokens that both
            texts share. Otherwise it is what follows the first difference; of masked models, the words that differ.
        kind: :data:`CONTRAST`.
    """

    text: str
    other: str
    whole: bool = True
    kind: str = CONTRAST


def choose(metadata: Facts) -> dict[str, str]:
    """Return all options, with the given ones checked.

    Raises:
        BiasError: A value that an option doesn't have.

    >>> choose({"bos": "all"})
    {'bos': 'all', 'masked': 'left_to_right', 'inter': 'gen'}
    """
    options = {}
    for name, values in OPTIONS.items():
        value = metadata.get(name, values[0])
        if value not in values:
            raise BiasError(
                f"--metadata {name}={value!r}: must be one of {', '.join(values)}"
            )
        options[name] = value
    return options
