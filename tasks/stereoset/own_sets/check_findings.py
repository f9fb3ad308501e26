"""What a check says about an item."""

from __future__ import annotations

from dataclasses import dataclass

from lm_eval_bias.scoring.questions import BLANK

PROBLEM, NOTE = "problem", "note"
CODES = {
    "missing": "an item of the source is missing",
    "id": "ids that appear twice, or are not in the source",
    "repeated": "the texts of another item",
    "source": "test, bias type or group differ from the source",
    "label": "labels that differ from the source, or don't appear exactly once",
    "empty": "an empty text",
    "blank": f"{BLANK} is missing, translated or in another case",
    "doubled": f"{BLANK} more than once",
    "glued": f"{BLANK} touches letters",
    "stray": f"{BLANK} where it doesn't belong",
    "equal": "two candidates are the same",
    "script": "Latin letters mixed with Cyrillic or Greek ones in a word, or invisible characters",
    "swapped": "a word or sentence that belongs to another candidate",
    "fill": "a sentence that is not the context with the word in its blank",
    "untranslated": "source language in the translation",
    "cut": "the end is missing",
    "punctuation": "final punctuation lost, changed or doubled",
    "open": "a missing end would not show: no final punctuation, nor in the source",
    "length": "much shorter or longer than the source",
    "grammar": "grammar alone may decide between the candidates",
}


@dataclass(frozen=True)
class Finding:
    """Something about an item.

    Attributes:
        code: A key of :data:`CODES`.
        part: ``item``, ``context``, ``term`` or a candidate's label.
        text: What is wrong, for a person.
        level: ``problem`` or ``note``.
    """

    code: str
    part: str
    text: str
    level: str = PROBLEM
