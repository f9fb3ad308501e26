"""Grammatical agreement: where what stands beside the blank fits the words of only some candidates.

An English context such as "She is a BLANK." leaves the choice to meaning. Its German translation has to say *ein* or
*eine*, and a model that knows nothing but grammar then prefers the word of that gender. What is found here rests on
endings and spelling alone: it is sure where it speaks, and silent about most words.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from lm_eval_bias.scoring.questions import BLANK
from lm_eval_bias.tasks.stereoset.own_sets import set_texts
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import NOTE, Finding
from lm_eval_bias.tasks.stereoset.stereoset_items import Item

Fit = Callable[[str], "bool | None"]


_ELIDED = {"le", "la", "de", "je", "me", "te", "se", "ne", "que", "jusque", "lorsque", "puisque", "parce que"}
_BACK, _FRONT = frozenset("aıou"), frozenset("eiöü")


@cache
def genders(language: str, kind: str) -> dict[str, str]:
    """The genders that an ``article``, or a word like one, goes with in the singular, directly before a noun.

    Of kind ``noun``: the gender that an ending tells, or, with ``=`` before it, the noun itself; empty where the ending
    tells none.
    """
    table = csv.DictReader(Path(__file__).with_name("agreement_words.csv").read_text("utf-8").splitlines())
    rows = [row for row in table if (row["language"], row["kind"]) == (language, kind)]
    return {word: row["genders"] for row in rows for word in row["words"].split()}


def check(item: Item, language: str) -> Iterator[Finding]:
    """What grammar can tell between the candidates of an item within sentences."""
    context = item["context"]
    words = {c["label"]: (c["word"] or "").strip() for c in item["candidates"]}.values()
    if item["test"] != "intra" or context.count(BLANK) != 1 or not all(words):
        return
    before, after = context.split(BLANK)
    constraint = _before(before, language) or _after(after, language)
    if constraint is None:
        return
    name, fit = constraint
    fitting = [word for word in words if fit(word)]
    unfit = [word for word in words if fit(word) is False]
    if fitting and unfit:
        yield Finding("grammar", "context", f"{name} goes with {', '.join(fitting)}, not with {', '.join(unfit)}", NOTE)


def _before(text: str, language: str) -> tuple[str, Fit] | None:
    """What the words before the blank ask of the word in it."""
    last = re.search(r"([^\W\d_]+)\s$", text)
    if last is None:
        return None
    article = last.group(1).casefold()
    name = f"{article!r} before the blank"
    fitting = genders(language, "article").get(article, "")
    if language == "en" and article in ("a", "an"):
        return name, lambda word: _english(article, word)
    if language == "fr" and article in _ELIDED and not re.search(r"\d\s*$", text):
        return name, lambda word: _french(word, fitting)
    if language == "de" and text.strip() in ("Der", "Dieser", "Jeder"):  # elsewhere these can be of a feminine, too
        fitting = "m"
    return (name, lambda word: _of_gender(word, fitting, language)) if fitting else None


def _english(article: str, word: str) -> bool | None:
    """Whether ``a`` or ``an`` goes with a word; unknown where spelling and sound differ."""
    if not word[0].isalpha() or re.match(r"(h(our|on|eir)|u|eu|one|[A-Z]{2})", word):
        return None
    return (word[0].lower() in "aeio") == (article == "an")


def _french(word: str, fitting: str) -> bool | None:
    """Whether a word may stand behind ``le``, ``de``, ``que``: before a vowel they lose theirs (h can be either)."""
    spelling = set_texts.plain(word)
    if spelling.startswith(tuple("aeiouy")):
        return None if spelling.startswith(("oui", "onz", "y")) else False
    return None if spelling.startswith("h") else (_of_gender(word, fitting, "fr") if fitting else True)


def _of_gender(word: str, fitting: str, language: str) -> bool | None:
    """Whether a noun is of one of these genders, as far as it shows."""
    own_gender = gender(word, language)
    # no noun: its ending would be what has to agree
    if not own_gender or (language == "de" and not word[0].isupper()):
        return None
    return own_gender in fitting


def gender(word: str, language: str) -> str:
    """A noun's gender by its own entry or its longest known ending; empty where neither tells.

    >>> [gender(word, "de") for word in ("Zeitung", "Frau", "Physikerin", "Tisch")]
    ['f', 'f', 'f', '']
    """
    nouns = genders(language, "noun")
    last = (word.casefold().split() or [""])[-1]
    if f"={last}" in nouns:
        return nouns[f"={last}"]
    endings = [ending for ending in nouns if last.endswith(ending) and len(last) > len(ending) + 1]
    return nouns[max(endings, key=len)] if endings else ""


def _after(text: str, language: str) -> tuple[str, Fit] | None:
    """What a Turkish ending behind the blank asks of the word in it: a last vowel of its own kind."""
    ending = re.match(r"[\"'’”]([a-zçğıöşü]+)", text)
    vowels = _vowels(ending.group(1)) if ending else []
    if language != "tr" or ending is None or not vowels:
        return None
    kind = _BACK if vowels[0] in _BACK else _FRONT
    return f"the ending {ending.group(0)!r} behind the blank", lambda word: _harmony(word, kind)


def _harmony(word: str, kind: frozenset[str]) -> bool | None:
    vowels = _vowels(unicodedata.normalize("NFC", word.replace("I", "ı").replace("İ", "i").lower()))
    return vowels[-1] in kind if vowels else None


def _vowels(text: str) -> list[str]:
    return [letter for letter in text if letter in _BACK | _FRONT]
