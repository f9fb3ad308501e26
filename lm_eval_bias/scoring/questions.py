"""The seam between tasks and model families: a task asks a question, each family answers it in its own way.

Two questions, and one about the evidence behind the second:

- ``cloze``: how well does this word fill this blank?
- ``next_sentence``: how well does this sentence follow this one?
- ``sentence_likelihoods``: how likely are a context, a candidate after it, and the candidate alone?

A question is a request type of the harness: a task makes instances from :class:`Cloze` and :class:`NextSentence`, and
the harness calls the model's method of that name with them. Registration gives every backend with log-likelihoods
the answers of generative models; another model type answers by defining the methods itself (``hf-mlm`` and ``hf-nsp``
do). An answer is ``(score, number of tokens scored)``, a higher score meaning a better fit; scores are compared only
within one question's candidates.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lm_eval_bias import catalog, registry
from lm_eval_bias.errors import BiasError

CLOZE = "cloze"
NEXT_SENTENCE = "next_sentence"
SENTENCE_LIKELIHOODS = "sentence_likelihoods"
KINDS = (CLOZE, NEXT_SENTENCE, SENTENCE_LIKELIHOODS)
BLANK = "BLANK"

# what a task's metadata may choose, the default first
OPTIONS: dict[str, tuple[str, ...]] = {
    "bos": ("first", "all"),
    "masked": ("left_to_right", "pll_original", "pll_within_word_l2r"),
    "inter": ("gen", "gen_full", "gen_orig", "gen_pmi", "gen_full_ratio"),
}
_FOR = {
    "bos": "causal language models",
    "masked": "masked language models (hf-mlm)",
    "inter": "causal language models",
}
Answer = tuple[float, ...]
_expected: tuple[str, ...] = ()


class Question(Protocol):
    """What a document asks a model.

    Attributes:
        kind: The request type: the name of a method of the model.
        arguments: What a harness instance of it carries.
    """

    @property
    def kind(self) -> str: ...  # noqa: D102

    @property
    def arguments(self) -> tuple[Any, ...]: ...  # noqa: D102


@dataclass(frozen=True)
class Cloze:
    """How well does a word fill the blank of a context?

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

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What a harness instance carries."""
        return self.context, self.word, self.sentence, dict(self.options)


@dataclass(frozen=True)
class NextSentence:
    """How well does a candidate follow a context?

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

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What a harness instance carries."""
        return self.context, self.candidate, dict(self.options)


@contextlib.contextmanager
def expecting(kinds: Sequence[str]) -> Iterator[None]:
    """Let model types know, while a run lasts, which kinds of questions it is going to ask."""
    global _expected
    before, _expected = _expected, tuple(kinds)
    try:
        yield
    finally:
        _expected = before


def expected() -> tuple[str, ...]:
    """The kinds of questions that the present run is going to ask; empty where that is not known."""
    return _expected


def clozes(requests: Sequence[Any]) -> list[Cloze]:
    """The questions that instances carry."""
    return [Cloze(*request.args) for request in requests]


def next_sentences(requests: Sequence[Any]) -> list[NextSentence]:
    """The questions that instances carry."""
    return [NextSentence(*request.args) for request in requests]


def choose(metadata: Mapping[str, Any]) -> dict[str, str]:
    """All options with the given ones checked.

    Raises:
        BiasError: A value that an option doesn't have.

    >>> choose({"bos": "all"})
    {'bos': 'all', 'masked': 'left_to_right', 'inter': 'gen'}
    """
    options = {}
    for name, values in OPTIONS.items():
        value = metadata.get(name, values[0])
        if value not in values:
            raise BiasError(f"--metadata {name}={value!r}: must be one of {', '.join(values)}")
        options[name] = str(value)
    return options


def tasks_asking(kind: str) -> str:
    """The tasks that ask this kind of question alone, their languages as one: ``NAME_<language>_inter``."""
    entries = [entry for entry in catalog.entries().values() if entry.kind == "task" and entry.asks == (kind,)]
    names = (entry.name.replace(f"_{entry.language}_", "_<language>_") for entry in entries)
    return " or ".join(dict.fromkeys(names))


def benchmarks_asking() -> str:
    """The benchmarks whose tasks ask the questions of this module."""
    names = {entry.benchmark for entry in catalog.entries().values() if set(entry.asks) & set(KINDS)}
    return " and ".join(type(benchmark).__name__ for benchmark in registry.benchmarks() if benchmark.name in names)


def refuse_foreign(questions: Sequence[Cloze | NextSentence], supported: Sequence[str], model: str) -> None:
    """Refuse an option that was chosen but has no meaning for this family, instead of ignoring it.

    Raises:
        BiasError: Such an option.
    """
    for options in {tuple(sorted(question.options.items())) for question in questions}:
        for name, value in options:
            if name not in supported and value != OPTIONS[name][0]:
                raise BiasError(
                    f"--metadata {name}={value} is for {_FOR[name]} and has no effect on {model}: leave it out"
                )
