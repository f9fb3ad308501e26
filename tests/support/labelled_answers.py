"""Answers with options that people labelled by reading them: of this checkout, and those beside it."""

from __future__ import annotations

import json
from functools import cache
from typing import NamedTuple

from lm_eval_bias.scoring.answer_extraction import ChoiceExtractor, Option
from lm_eval_bias.scoring.free_answers import without_thoughts
from tests.support.places import ROOT

OWN = ROOT / "tests" / "golden" / "labelled_answers.jsonl"
SHARED = ROOT.parent / "shared" / "answers"


class Labelled(NamedTuple):
    """An answer with the letter of the option that it takes, or ``none``."""

    source: str
    language: str
    options: list
    text: str
    right: str
    cut: bool = False
    style: str = ""


@cache
def labelled() -> list[Labelled]:
    """Return all labelled answers."""
    rows = []
    for path in [OWN, *sorted(SHARED.glob("*.jsonl"))]:
        for line in path.read_text(encoding="utf-8").splitlines():
            rows.append(
                Labelled(**{"source": f"shared {path.stem}", **json.loads(line)})
            )
    return rows


@cache
def _reader(language, options):
    texts = [
        (option,) if isinstance(option, str) else option
        for option in json.loads(options)
    ]
    return ChoiceExtractor(list(map(Option, "ABCDEFGHIJKL", texts)), language)


def reader(language, options):
    """Return the reader of answers to options, each a text or several."""
    return _reader(language, json.dumps(options))


def read(answer: Labelled) -> str:
    """Return the letter that is read, or ``none``."""
    text = without_thoughts(answer.text)
    said = reader(answer.language, answer.options).read(text, answer.cut)
    return said if len(said) == 1 else "none"
