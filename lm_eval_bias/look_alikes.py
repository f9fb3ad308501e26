"""Texts that look the same though their characters differ: for comparisons, no text is changed."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_FILLER = re.compile("[\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f]")  # as invisible as the categories Cf and Cc
# without the joiners (U+200C, U+200D) and marks of direction that scripts need
_HIDDEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u2060-\u2064\u202a-\u202e\ufeff]")
# each looks like the Latin letter at its place
_CYRILLIC = "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u051b\u051d"
_GREEK = "\u03b1\u03bf\u03c1\u03bd"
_LATIN_OF = str.maketrans(_CYRILLIC + _GREEK, "aeopcyxijsdqwaopv")
_LATIN, _OTHER = "A-Za-z\u00c0-\u024f\u1e00-\u1eff", "\u0370-\u052f\u1f00-\u1fff"
_MIXED = re.compile(rf"(?=[^\W\d_]*[{_LATIN}])[^\W\d_]*[{_OTHER}][^\W\d_]*")


@lru_cache(maxsize=1 << 16)
def shown(text: str) -> str:
    r"""What is seen of a text: composed characters (NFKC), no invisible ones, single spaces.

    >>> shown("cafe\u0301\u200b ") == shown("café"), shown("x\u00a0 y")
    (True, 'x y')
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    seen = "".join(c for c in text if c.isspace() or unicodedata.category(c) not in ("Cf", "Cc"))
    return " ".join(unicodedata.normalize("NFKC", _FILLER.sub("", seen)).split())


@lru_cache(maxsize=1 << 16)
def looks(text: str) -> str:
    r"""What two texts share that look the same but for case; letters of other alphabets become their Latin twins.

    >>> looks("\u0421\u043e\u0440") == looks("cop"), looks("Il\u0131k") == looks("ilik")
    (True, False)
    """
    return shown(text).casefold().translate(_LATIN_OF)


def mixed_words(text: str) -> list[str]:
    r"""Words with Latin letters beside Cyrillic or Greek ones.

    >>> mixed_words("p\u0430sta, Straße, ışık, слово and λόγος") == ["p\u0430sta"]
    True
    """
    return [] if text.isascii() else _MIXED.findall(text)


def hidden(text: str) -> list[str]:
    r"""Characters that nobody sees and no script needs, as code points: a tokenizer sees them.

    >>> hidden("a\u200bb"), hidden("می\u200cخواهم")
    (['U+200B'], [])
    """
    return [f"U+{ord(c):04X}" for c in dict.fromkeys(_HIDDEN.findall(text))]
