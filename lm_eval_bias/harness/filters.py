"""Filters for generated answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from lm_eval.api.filter import Filter

NO_ANSWER = "[no single answer]"


def _named(text: str, choices: Sequence[str]) -> set[int]:
    """Indices of the choices that a text names as whole words; a longer choice hides a shorter one inside it."""
    found = set()
    rest = text
    for index in sorted(range(len(choices)), key=lambda i: -len(choices[i])):
        pattern = rf"(?<!\w){re.escape(choices[index])}(?!\w)"
        rest, hits = re.subn(pattern, "\0", rest, flags=re.IGNORECASE)
        if hits:
            found.add(index)
    return found


def parse_choice(text: str, choices: Sequence[str], letters: Sequence[str] = ()) -> str:
    """The one choice that a generated answer names, else :data:`NO_ANSWER`.

    The first line that is not empty decides if it names exactly one choice (or, for lettered options, starts with one
    letter); else the whole text does.

    Args:
        text: What the model wrote.
        choices: The possible answers.
        letters: Labels of the choices in the prompt, if it had any.

    >>> parse_choice("Antwort: Die Frau.", ["Der Mann", "Die Frau", "keine Antwort"])
    'Die Frau'
    >>> parse_choice("Der Mann oder die Frau", ["Der Mann", "Die Frau", "keine Antwort"])
    '[no single answer]'
    >>> parse_choice("B)", ["Der Mann", "Die Frau", "keine Antwort"], "ABC")
    'Die Frau'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return NO_ANSWER
    if letters:
        labelled = re.match(rf"(?:Antwort:?\s*)?\(?([{''.join(letters)}])(?:[).:\s]|$)", lines[0])
        if labelled:
            return choices[list(letters).index(labelled.group(1))]
    for part in (lines[0], "\n".join(lines)):
        found = _named(part, choices)
        if len(found) == 1:
            return choices[found.pop()]
    return NO_ANSWER


class AnswerChoiceFilter(Filter):
    """Turns each generated text into the choice of its document that it names."""

    def apply(self, resps: Iterable[Sequence[str]], docs: Sequence[dict[str, Any]]) -> list[str]:
        """Parse the first text of every document.

        Args:
            resps: Generated texts per document.
            docs: The documents, with ``choices`` and ``letters``.
        """
        return [parse_choice(texts[0], doc["choices"], doc["letters"]) for texts, doc in zip(resps, docs, strict=True)]
