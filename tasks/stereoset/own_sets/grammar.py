"""The trap of grammar: where what stands beside the blank fits the words of only some candidates.

An English context such as "She is a BLANK." leaves the choice to meaning. Its German translation has to say *ein* or
*eine*, and a model that knows nothing but grammar then prefers the word of that gender. What is found here rests on
endings and spelling alone: it is sure where it speaks, and silent about most words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping

from lm_eval_bias.scoring.questions import BLANK
from lm_eval_bias.tasks.stereoset.own_sets import set_texts
from lm_eval_bias.tasks.stereoset.released_sets import Item

# genders that an article, or a word like one, goes with in the singular, directly before a noun
_ARTICLES: dict[str, dict[str, str]] = {
    "de": {
        **dict.fromkeys("einen keinen meinen seinen ihren diesen jeden".split(), "m"),
        **dict.fromkeys("eine keine meine seine ihre diese jede zur".split(), "f"),
        **dict.fromkeys("ein kein mein sein ihr dem einem keinem zum im am vom beim".split(), "mn"),
        **dict.fromkeys("das dieses jedes ins ans".split(), "n"),
    },
    "es": {
        **dict.fromkeys("un el del al este ese aquel ningún algún".split(), "m"),
        **dict.fromkeys("una la esta esa aquella ninguna alguna".split(), "f"),
    },
    "fr": {
        **dict.fromkeys("un le du au ce cet aucun".split(), "m"),
        **dict.fromkeys("une la cette aucune ma ta sa".split(), "f"),
    },
}
# endings and words that tell a noun's gender; the longest fitting ending counts
_NOUNS: dict[str, dict[str, str]] = {
    "de": {
        **dict.fromkeys("ung heit keit schaft tät ion erin".split(), "f"),
        **dict.fromkeys("ling ismus ist eur".split(), "m"),
        **dict.fromkeys("chen lein tum ment".split(), "n"),
        **dict.fromkeys("=mann =vater =bruder =sohn =junge =könig =arzt =koch =anwalt =herr =freund".split(), "m"),
        **dict.fromkeys("=frau =mutter =schwester =tochter =dame =königin =freundin =ärztin".split(), "f"),
        **dict.fromkeys("=mädchen =kind =baby".split(), "n"),
    },
    "es": {
        **dict.fromkeys("o aje or".split(), "m"),
        **dict.fromkeys("a ción sión dad tad tud".split(), "f"),
        **dict.fromkeys("ista ema ama oma ía".split(), ""),
        **dict.fromkeys("=hombre =padre =rey =día =mapa =planeta =sofá".split(), "m"),
        **dict.fromkeys("=mujer =madre =mano =foto =moto =radio =flor".split(), "f"),
    },
    "fr": {
        **dict.fromkeys("ment isme eau".split(), "m"),
        **dict.fromkeys("tion sion ette esse euse trice ière".split(), "f"),
        **dict.fromkeys("=homme =père =frère =garçon =fils =roi =mari".split(), "m"),
        **dict.fromkeys("=femme =mère =soeur =sœur =fille =reine =dame".split(), "f"),
    },
}
_GENDERS = {"m": "masculine", "f": "feminine", "n": "neuter"}
_ELIDED = {"le", "la", "de", "je", "me", "te", "se", "ne", "que", "jusque", "lorsque", "puisque", "parce que"}
_BACK, _FRONT = frozenset("aıou"), frozenset("eiöü")


def trap(item: Item, language: str) -> Iterator[tuple[str, str]]:
    """Part and text of what grammar can tell between the candidates of an item within sentences."""
    context = item["context"]
    words = {c["label"]: (c["word"] or "").strip() for c in item["candidates"]}
    if item["test"] != "intra" or context.count(BLANK) != 1 or not all(words.values()):
        return
    before, after = context.split(BLANK)
    found = _before(before, language) or _after(after, language)
    if found is None:
        return
    what, fit = found
    fits = {label: fit(word) for label, word in words.items()}
    if True in fits.values() and False in fits.values():
        against = ", ".join(words[label] for label, ok in fits.items() if ok is False)
        goes = ", ".join(words[label] for label, ok in fits.items() if ok)
        yield "context", f"{what} goes with {goes}, not with {against}"


Fit = Callable[[str], "bool | None"]


def _before(text: str, language: str) -> tuple[str, Fit] | None:
    """What the words before the blank ask of the word in it."""
    last = re.search(r"([^\W\d_]+)\s$", text)
    if last is None:
        return None
    article = last.group(1).casefold()
    if language == "en" and article in ("a", "an"):
        return f"{article!r} before the blank", lambda word: _english(article, word)
    if language == "fr" and article in _ELIDED and not re.search(r"\d\s*$", text):
        genders = _ARTICLES["fr"].get(article, "")
        return f"{article!r} before the blank", lambda word: _french(word, genders)
    genders = _ARTICLES.get(language, {}).get(article, "")
    if language == "de" and text.strip() in ("Der", "Dieser", "Jeder"):  # elsewhere these can be of a feminine, too
        genders = "m"
    if not genders:
        return None
    return f"{article!r} before the blank", lambda word: _of_gender(word, genders, language)


def _english(article: str, word: str) -> bool | None:
    """Whether ``a`` or ``an`` goes with a word; unknown where spelling and sound differ."""
    if not word[0].isalpha() or re.match(r"(h(our|on|eir)|u|eu|one|[A-Z]{2})", word):
        return None
    return (word[0].lower() in "aeio") == (article == "an")


def _french(word: str, genders: str) -> bool | None:
    """Whether a word may stand behind ``le``, ``de``, ``que``: before a vowel they lose theirs (h can be either)."""
    first = set_texts.plain(word)[:1]
    if first in set("aeiouy"):
        return None if set_texts.plain(word).startswith(("oui", "onz", "y")) else False
    return None if first == "h" else (_of_gender(word, genders, "fr") if genders else True)


def _of_gender(word: str, genders: str, language: str) -> bool | None:
    """Whether a noun is of one of these genders, as far as it shows."""
    found = gender(word, _NOUNS[language])
    if language == "de" and not word[0].isupper():
        return None  # no noun: its ending would be what has to agree
    return None if not found else found in genders


def gender(word: str, nouns: Mapping[str, str]) -> str:
    """A noun's gender by its own entry or its longest known ending; empty where neither tells.

    >>> [gender(word, _NOUNS["de"]) for word in ("Zeitung", "Frau", "Physikerin", "Tisch")]
    ['f', 'f', 'f', '']
    """
    last = (word.casefold().split() or [""])[-1]
    if f"={last}" in nouns:
        return nouns[f"={last}"]
    endings = [ending for ending in nouns if last.endswith(ending) and len(last) > len(ending) + 1]
    return nouns[max(endings, key=len)] if endings else ""


def _after(text: str, language: str) -> tuple[str, Fit] | None:
    """What a Turkish ending behind the blank asks of the word in it: a last vowel of its own kind."""
    ending = re.match(r"[\"'’”]([a-zçğıöşü]+)", text)
    vowels = [c for c in (ending.group(1) if ending else "") if c in _BACK | _FRONT]
    if language != "tr" or not vowels:
        return None
    kind = _BACK if vowels[0] in _BACK else _FRONT
    return f"the ending {ending.group(0)!r} behind the blank" if ending else "", lambda word: _harmony(word, kind)


def _harmony(word: str, kind: frozenset[str]) -> bool | None:
    lowered = unicodedata.normalize("NFC", word.replace("I", "ı").replace("İ", "i").lower())
    vowels = [c for c in lowered if c in _BACK | _FRONT]
    return vowels[-1] in kind if vowels else None
