"""What can be told about a text from its letters: words, final punctuation, sentence ends, and what fills a blank."""

from __future__ import annotations

import difflib
import os
import re
import unicodedata
from functools import lru_cache

from lm_eval_bias.scoring.questions import BLANK

# closing quotes and brackets may stand behind it
_END = re.compile(r"([.!?…。！？؟।]+)[\s\"'“”„«»’‘」』)\]]*$")
_WORD = re.compile(r"[^\W_]+")
# where one sentence ends and another begins: a capitalised word of one to three letters is rather Mr. or U.S.
_SURE_END = re.compile(r"(?<![^\W_])(?:[^\W\dA-Z_][^\W_]*|[^\W_]{4,})[.!?…]+[\"'”»]*\s+[\"'“„«¿¡]*[^\W\d_]")
_BLANK_MARK = re.compile(rf"(?<={BLANK})[.!?]+(?=\s+[a-z])")  # "a BLANK! book"
_SHORT = frozenset("mr mrs ms dr st mt jr sr sra prof hr fr nr no vs etc".split())
_ANY_END = re.compile(r"[.!?…。！？؟।]+[\"'”»]*(?:\s+\S|(?<=[。！？])\S)")


def final(text: str) -> str:
    """The punctuation that ends a text; closing quotes and brackets don't count.

    >>> final('He said "no!"'), final("Ja.."), final("no end")
    ('!', '..', '')
    """
    match = _END.search(text.rstrip())
    return match.group(1) if match else ""


def abbreviated(text: str) -> bool:
    """Whether a text ends with what looks like an abbreviation or an ordinal: its full stop may not be the end.

    >>> abbreviated("Japan has Mt."), abbreviated("He left the U.S."), abbreviated("die 5."), abbreviated("poor.")
    (True, True, True, False)
    """
    last = (text.split() or [""])[-1]
    bare = last[:-1]
    doubled = len(bare) == 2 and bare[0] == bare[1] and bare.isupper()  # Spanish plurals: EE. UU.
    letters = bool(re.fullmatch(r"[^\W\d_](\.[^\W\d_])+|[A-Z]", bare))
    return last.endswith(".") and (doubled or letters or bare.isdigit() or bare.casefold() in _SHORT)


def sure_ends(text: str) -> int:
    """Sentence ends inside a text that are none of abbreviations.

    >>> sure_ends("Mr. Poe went to it. Then U.S. troops came. Then not.")
    2
    """
    return len(_SURE_END.findall(_BLANK_MARK.sub("", text)))


def any_ends(text: str) -> int:
    """Whatever may be a sentence end inside a text."""
    return len(_ANY_END.findall(text))


@lru_cache(maxsize=1 << 16)
def plain(text: str) -> str:
    """A text without what spelling may change: case, accents, kinds of spaces and of quotes.

    >>> plain(" The  İce "), plain("L’été")
    ('the ice', "l'ete")
    """
    if text.isascii():
        return " ".join(text.casefold().replace("`", "'").split())
    bare = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join(re.sub(r"[’‘`´]", "'", bare).split())


@lru_cache(maxsize=1 << 16)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, :func:`plain`; in scripts without spaces the whole stretch is one."""
    return tuple(_WORD.findall(plain(text)))


def related(first: str, second: str) -> bool:
    """Whether two words look like forms of one.

    >>> related("clever", "cleveren"), related("man", "woman"), related("run", "running"), related("he", "she")
    (True, False, True, False)
    """
    first, second = plain(first), plain(second)
    if first == second:
        return True
    common = len(os.path.commonprefix([first, second]))
    return common >= 3 and common >= 0.6 * min(len(first), len(second))


def position(word: tuple[str, ...], sentence: tuple[str, ...]) -> int | None:
    """Where words stand in a sentence, one behind another; ``None`` if they don't."""
    starts = range(len(sentence) - len(word) + 1) if word else ()
    return next((i for i in starts if sentence[i : i + len(word)] == word), None)


def changes(expected: tuple[str, ...], present: tuple[str, ...]) -> tuple[int, int]:
    """How many words differ between two texts, and how many of the expected are missing at the end (negative: more).

    >>> changes(("a", "b", "c", "d"), ("a", "x", "c")), changes(("a", "b"), ("a", "b", "c"))
    ((2, 1), (1, -1))
    """
    differing, lost = 0, 0
    for kind, i, j, k, m in difflib.SequenceMatcher(None, expected, present, autojunk=False).get_opcodes():
        if kind != "equal":
            differing += max(j - i, m - k)
        if kind in ("delete", "insert") and j == len(expected):
            lost = (j - i) - (m - k)
    return differing, lost
