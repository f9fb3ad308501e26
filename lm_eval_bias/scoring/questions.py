"""The seam between tasks and model families: a task asks a question, each family answers it in its own way.

A question (:mod:`lm_eval_bias.core.questions`) is a request type of the harness: a task makes instances, and the
harness calls the model's method of that name with them. Registration gives every backend with log-likelihoods
the answers of generative models; another model type answers by defining the methods itself (``hf-mlm`` and ``hf-nsp``
do). An answer is ``(score, number of tokens scored)``, a higher score meaning a better fit; scores are compared only
within one question's candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import (
    BLANK,
    OPTIONS,
    Cloze,
    Contrast,
    NextSentence,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from lm_eval_bias.harness.internals import Requests

_FOR = {
    "bos": "causal language models",
    "inter": "causal language models",
}
QuestionAnswer = tuple[float, ...]
QuestionAnswers = list[QuestionAnswer]
# kinds of questions that the present run is going to ask; empty where that is not known
expected: Sequence[str] = ()


def clozes(requests: Requests) -> list[Cloze]:
    """Return the questions that instances carry."""
    return [Cloze(*request.args) for request in requests]


def next_sentences(requests: Requests) -> list[NextSentence]:
    """Return the questions that instances carry."""
    return [NextSentence(*request.args) for request in requests]


def contrasts(requests: Requests) -> list[Contrast]:
    """Return the questions that instances carry."""
    return [Contrast(*request.args) for request in requests]


def refuse_foreign(
    questions: Sequence[Cloze | NextSentence], supported: Sequence[str], model: str
) -> None:
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


def reveal(
    tokenizer: PreTrainedTokenizerBase, context: str, word: str, mask: str
) -> list[tuple[str, int]]:
    """Reveal a word's tokens from left to right, one mask (or sentinel) at a time.

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
