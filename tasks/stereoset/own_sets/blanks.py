"""BLANK on its way through a translation: engines drop it, double it, bend it or translate it."""

from __future__ import annotations

import re

from lm_eval_bias.scoring.questions import BLANK

# as it is, like a name, as an underlined gap, as a tag, as a number in brackets: one of them is kept by most engines
PLACEHOLDERS = (BLANK, "XYZ", "__", "<b>1</b>", "[1]")
_GLUED = re.compile(rf"(?<=\w){BLANK}|{BLANK}(?=\w)")


def _pattern(placeholder: str) -> re.Pattern[str]:
    first, last = re.escape(placeholder[0]), re.escape(placeholder[-1])
    return re.compile(rf"(?<!{first}){re.escape(placeholder)}(?!{last})")


def protect(text: str, placeholder: str) -> str | None:
    """A text with another word for BLANK; ``None`` where that word stands in it already.

    >>> protect("The BLANK sang.", "XYZ"), protect("XYZ is BLANK.", "XYZ")
    ('The XYZ sang.', None)
    """
    if placeholder == BLANK:
        return text
    return None if placeholder in text else text.replace(BLANK, placeholder)


def restore(translation: str, placeholder: str, source: str) -> str | None:
    """A translation with BLANK put back; ``None`` where it didn't come back as often, or is glued to letters.

    >>> restore("Le XYZ chanta.", "XYZ", "The BLANK sang.")
    'Le BLANK chanta.'
    >>> restore("Le XYZ XYZ.", "XYZ", "The BLANK sang."), restore("Le XYZe.", "XYZ", "The BLANK sang.")
    (None, None)
    """
    expected = source.count(BLANK)
    if translation.count(placeholder) != expected:
        return None
    found = _pattern(placeholder).sub(lambda _: BLANK, translation)
    kept = found.count(BLANK) == expected and len(_GLUED.findall(found)) <= len(_GLUED.findall(source))
    return found if kept else None
