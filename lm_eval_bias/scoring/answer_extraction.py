"""Which of several options a free answer takes: by its letter, by its text, or by other words for "unknown".

A text becomes tokens: options that it names, words by their kinds (``choice_words.yaml``), marks, and ends of sentences
and lines. The rules of :mod:`.choice_rules` read them: the first statement counts, unless a correction revokes it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from lm_eval_bias.core.answers import EMPTY, ENDLESS, REFUSED, SEVERAL, UNPARSED
from lm_eval_bias.scoring import choice_rules as rules
from lm_eval_bias.scoring.free_answers import listed, plain_lines, refuses

_WORDS = "choice_words.yaml"
_LETTERS = "ABCDEFGHIJKL"
MOST_OPTIONS = 12  # by these letters
_LATIN = r"[A-Za-z\u00c0-\u024f\d]"
_WORD = rf"{_LATIN}+(?:['-]{_LATIN}+)*|(?:(?!{_LATIN})[^\W_])+"


class Option(NamedTuple):
    """An option of a question.

    Attributes:
        letter: By which the prompt calls it: A, B and so on, or a longer name that the prompt doesn't have.
        texts: As what it may be quoted, the prompt's first.
    """

    letter: str
    texts: tuple[str, ...]


def languages() -> list[str]:
    """List the languages whose answers can be read."""
    return sorted(listed(_WORDS)["words"])


def _either(phrases: Sequence[str]) -> str:
    """Return a regular expression for phrases, longest first; ``*`` stands for any letters."""
    longest_first = sorted(map(re.escape, phrases), key=len, reverse=True)
    return "|".join(longest_first).replace(r"\*", r"[\w'-]*") or "(?!)"


class Language:
    """The words of a language, with English words beside its own."""

    def __init__(self, name: str, letters: str) -> None:
        """Compile the words.

        Args:
            name: Two letters.
            letters: By which options are called.

        Raises:
            KeyError: A language without words.
        """
        words, traits = listed(_WORDS).values()
        self.traits = traits["en"] | traits[name]
        self._kinds = {}
        spaced = []
        for kind in words["en"] | words[name]:
            own = words["en"].get(kind, []) + words[name].get(kind, [])
            phrases = list(map(self.fold, own))
            spaced += [phrase for phrase in phrases if re.search(r"[^\w*'-]", phrase)]
            self._kinds[kind] = re.compile(_either(phrases))
        letter = f"[{letters}]" if letters else "(?!)"
        self._pieces = re.compile(
            rf"(?P<letter>(?<!{_LATIN})(?<!\w[-'])(?<!n/){letter})(?P<ending>{self.traits['letter']})(?!{_LATIN}|[-']\w)"
            r"|(?P<text>[$%][A-L]+)(?:~(?P<suffix>[\w']*))?"
            rf"|(?P<item>^(?:(?:[-–—•|+]|\(?\d+[.)]|(?!{letter})[A-PR-Z][.:)])(?=\s)[^\S\n]*)+)"
            r"|(?P<asks>!*\?[?!]*)|(?P<stop>\.+(?!\w)|[!。]+)"
            rf"|(?P<word>(?<!\w)(?:{_either(spaced)})(?!\w)|{_WORD})"
            r"|::|[\n:=→>,;()\[\]|–—/&+-]",
            re.IGNORECASE | re.MULTILINE,
        )
        self._kinds_of = lru_cache(20_000)(self._look_up)

    def _look_up(self, word: str) -> str:
        kinds = self._kinds.items()
        found = [kind for kind, words in kinds if words.fullmatch(word.lower())]
        return "_" if "plain" in found else "/".join(found) or "_"

    def fold(self, text: str) -> str:
        """Unify spellings."""
        for written, meant in self.traits["same"].items():
            text = re.sub(written, meant, text)
        return text

    def _token(self, match: re.Match[str]) -> str:
        letter = match["letter"]
        if match["word"]:
            return self._kinds_of(match[0])
        if letter or match["text"]:
            kinds = self._kinds_of(match["ending"] or match["suffix"] or "")
            sign = "^" if letter and letter.isupper() else "`"
            named = match["text"] or sign + letter.upper()
            return f"{named} {kinds}".removesuffix(" _")
        marks = {"item": "•", "stop": ".", "asks": "?"}
        return marks.get(str(match.lastgroup), match[0])

    def tokens(self, text: str) -> str:
        """Return the tokens of a text in which option texts are replaced by tokens already."""
        return " ".join(map(self._token, self._pieces.finditer(text)))


_language = lru_cache(Language)


class ChoiceExtractor:
    """An extractor of answers to one question with options, which may have letters.

    Attributes:
        letters: Those by which the prompt calls its options; empty if it has none.
    """

    def __init__(self, options: Sequence[Option], language: str) -> None:
        """Make an extractor for these options.

        Args:
            options: What an answer may take.
            language: Two letters, of the question; English is understood, too.

        Raises:
            KeyError: A language without words.
        """
        self._name = language
        self._options = options
        self.letters = "".join(name for name, _ in options if len(name) == 1)
        own = self._language = _language(language, self.letters)
        texts: dict[str, str] = {}
        for letter, (_, spellings) in zip(_LETTERS, options, strict=False):
            for text in map(own.fold, spellings):
                plain = " ".join(plain_lines(text)).lower().rstrip(" .,;:!?…")
                texts[plain] = texts.get(plain, "") + letter
        self._texts = []
        for text in sorted(filter(None, texts), key=len, reverse=True):
            ending = own.traits["text" if " " in text else "word"]
            whole = rf"(?<![\w$]){re.escape(text)}({ending})(?!\w)(?![:*_]\w)"
            self._texts.append((re.compile(whole, re.I), rf" ${texts[text]}~\1 "))
        unknown = [text for text in texts if rules.says_unknown(own.tokens(text))]
        self._unknown = texts[unknown[0]] if len(unknown) == 1 else ""

    def _sentences(self, lines: Sequence[str]) -> list[str]:
        """Tokenize a text into sentences; one that begins a line starts with a line feed."""
        text = self._language.fold("\n".join(lines))
        for whole, token in self._texts:
            text = whole.sub(token, text)
        tokens = "\n " + self._language.tokens(text)
        if self._unknown:
            tokens = rules.pattern("<unknown>").sub("%" + self._unknown, tokens)
        tokens = rules.rewritten(tokens, rules.TABLE["meanings"])
        tokens = rules.pattern("<but>").sub(self._language.traits["but"], tokens)
        sentences = re.findall(r"\n?[^.?\n]+[.?]?", tokens)
        return [one.rstrip(" ") for one in sentences if one.strip(" .?\n")]

    def read(self, text: str, cut: bool = False) -> str:
        """Return the letter of the option that an answer takes, or which of ``answers.UNANSWERED`` it is.

        Args:
            text: What the model wrote, without its thoughts.
            cut: Whether it was cut off, at a limit of tokens or by a content filter: it is read only if it states a
                choice firmly, else it is ``ENDLESS``.
        """
        lines = plain_lines(text)
        if not lines or text == ENDLESS:
            return EMPTY if not lines and not cut else ENDLESS
        sentences = self._sentences(lines)
        walk = rules.walks(sentences)
        parts = rules.clauses(sentences, walk, cut)
        taken = rules.stated(parts, rules.FINAL) or rules.stated(parts, rules.FIRM)
        if cut and not taken:
            return ENDLESS
        whole = rules.clauses(sentences)
        last = rules.breaks_off(sentences)
        taken = (
            taken
            or rules.stated(rules.clauses(sentences, walk | last), rules.SOFT)
            or rules.only_named(whole, bool(self.letters))
            & rules.named(rules.clauses(sentences, last))
        )
        named = rules.named(whole)
        if not taken and rules.untold(parts, self._unknown):
            is_firm = refuses(text, self._name, "firm")
            names_another = len(named - {self._unknown}) == 1
            taken = set() if is_firm or names_another else {self._unknown}
        if len(taken) == 1:
            return self._options[_LETTERS.index(min(taken))].letter
        if not taken and refuses(text, self._name):
            return REFUSED
        return SEVERAL if len(taken | named) > 1 else UNPARSED


# of a question like the last ones, whose reader is at hand
reader = lru_cache(256)(ChoiceExtractor)
