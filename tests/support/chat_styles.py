"""How chat models write that they take an option, in eight languages (``chat_words.yaml``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from string import Template

import yaml

from tests.support.places import ROOT

TEXTS = yaml.safe_load(
    (ROOT / "tests" / "support" / "chat_words.yaml").read_text(encoding="utf-8")
)
WORDS = TEXTS["words"]
MARKS = TEXTS["marks"]  # what stands around thoughts


def _filled(template: str, words: dict, options: Sequence[str], place: int) -> str:
    other = (place + 1) % len(options)
    return Template(Template(template).safe_substitute(words)).safe_substitute(
        letter="ABC"[place],
        text=options[place],
        other="ABC"[other],
        other_text=options[other],
    )


def _written(
    style: list[str], language: str, options: Sequence[str], taken: int
) -> str:
    words = WORDS[language]
    *each, end = style
    lines = []
    for line in each:
        for place in range(len(options)):
            told = words["yes" if place == taken else "no"]
            lines.append(_filled(line, {**words, "told": told}, options, place))
    return "\n".join([*lines, _filled(end, words, options, taken)])


def styles(language: str) -> dict[str, Callable[[Sequence[str], int], str]]:
    """List ways to write an answer: from the options' texts and the place of the one that is taken."""
    made = dict(TEXTS["styles"])
    for opens, closes in MARKS:
        made[opens] = [f"{opens}$answer: $other? $no{closes}\n\n$letter"]
    return {name: partial(_written, style, language) for name, style in made.items()}
