"""Grammatical agreement: where what stands beside the blank fits the words of only some candidates.

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
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import NOTE, Finding
from lm_eval_bias.tasks.stereoset.stereoset_items import Item

Fit = Callable[[str], "bool | None"]


def _by_word(**words: str) -> dict[str, str]:
    """Genders by word, from words by genders."""
    return {word: genders.strip("_") for genders, listed in words.items() for word in listed.split()}


# genders that an article, or a word like one, goes with in the singular, directly before a noun
_ARTICLES = {
    "de": _by_word(
        m="einen keinen meinen seinen ihren diesen jeden",
        f="eine keine meine seine ihre diese jede zur",
        mn="ein kein mein sein ihr dem einem keinem zum im am vom beim",
        n="das dieses jedes ins ans",
    ),
    "es": _by_word(m="un el del al este ese aquel ningún algún", f="una la esta esa aquella ninguna alguna"),
    "fr": _by_word(m="un le du au ce cet aucun", f="une la cette aucune ma ta sa"),
}
# endings and (with =) words that tell a noun's gender; the longest fitting ending counts
_NOUNS = {
    "de": _by_word(
        m="ling ismus ist eur =mann =vater =bruder =sohn =junge =könig =arzt =koch =anwalt =herr =freund",
        f="ung heit keit schaft tät ion erin =frau =mutter =schwester =tochter =dame =königin =freundin =ärztin",
        n="chen lein tum ment =mädchen =kind =baby",
    ),
    "es": _by_word(
        m="o aje or =hombre =padre =rey =día =mapa =planeta =sofá",
        f="a ción sión dad tad tud =mujer =madre =mano =foto =moto =radio =flor",
        _="ista ema ama oma ía",
    ),
    "fr": _by_word(
        m="ment isme eau =homme =père =frère =garçon =fils =roi =mari",
        f="tion sion ette esse euse trice ière =femme =mère =soeur =sœur =fille =reine =dame",
    ),
}
_ELIDED = {"le", "la", "de", "je", "me", "te", "se", "ne", "que", "jusque", "lorsque", "puisque", "parce que"}
_BACK, _FRONT = frozenset("aıou"), frozenset("eiöü")


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
    genders = _ARTICLES.get(language, {}).get(article, "")
    if language == "en" and article in ("a", "an"):
        return name, lambda word: _english(article, word)
    if language == "fr" and article in _ELIDED and not re.search(r"\d\s*$", text):
        return name, lambda word: _french(word, genders)
    if language == "de" and text.strip() in ("Der", "Dieser", "Jeder"):  # elsewhere these can be of a feminine, too
        genders = "m"
    return (name, lambda word: _of_gender(word, genders, language)) if genders else None


def _english(article: str, word: str) -> bool | None:
    """Whether ``a`` or ``an`` goes with a word; unknown where spelling and sound differ."""
    if not word[0].isalpha() or re.match(r"(h(our|on|eir)|u|eu|one|[A-Z]{2})", word):
        return None
    return (word[0].lower() in "aeio") == (article == "an")


def _french(word: str, genders: str) -> bool | None:
    """Whether a word may stand behind ``le``, ``de``, ``que``: before a vowel they lose theirs (h can be either)."""
    spelling = set_texts.plain(word)
    if spelling.startswith(tuple("aeiouy")):
        return None if spelling.startswith(("oui", "onz", "y")) else False
    return None if spelling.startswith("h") else (_of_gender(word, genders, "fr") if genders else True)


def _of_gender(word: str, genders: str, language: str) -> bool | None:
    """Whether a noun is of one of these genders, as far as it shows."""
    own = gender(word, _NOUNS[language])
    if not own or (language == "de" and not word[0].isupper()):  # no noun: its ending would be what has to agree
        return None
    return own in genders


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
