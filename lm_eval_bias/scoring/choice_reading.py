"""Which of several options a free answer takes: by its letter, by its text, or by other words for "unknown".

A text becomes tokens: options that it names, words by their kinds, marks, and ends of sentences and lines. Rules settle
what they mean together; then each part of a sentence takes an option more or less firmly, or none. The rule stands in
docs/chat_models.md, its expressions in ``choice_rules.yaml``, the words of each language in ``choice_words.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import filterfalse
from typing import NamedTuple

from lm_eval_bias.core.answers import EMPTY, ENDLESS, REFUSED, SEVERAL, UNREADABLE
from lm_eval_bias.scoring.free_answers import listed, plain_lines, refuses

_WORDS = "choice_words.yaml"
_ENGLISH = "en"  # in which models answer and refuse whatever they were asked in
_LETTERS = "ABCDEFGHIJKL"
MOST_OPTIONS = 12  # by these letters
_LATIN = r"[A-Za-z\u00c0-\u024f\d]"
_WORD = rf"{_LATIN}+(?:['-]{_LATIN}+)*|(?:(?!{_LATIN})[^\W_])+"
_SENTENCE = re.compile(r"\n?[^.\n]+\.?")
# in a character a sentence, the letter that it begins with (a small one: as an item of a list) or a full stop
_WALK = re.compile(
    r"(?:(?i:a\.*(?=b)|b\.*(?=c)|c\.*(?=d)|d\.*(?=e)|e\.*(?=f)|f\.*(?=g)|g\.*(?=h)|h\.*(?=i)|i\.*(?=j)|j\.*(?=k)|k\.*(?=l))"
    r"|[a-l]\.*(?=[a-l]))+."
)
# how firmly a part of a sentence takes an option: at most; by saying that nothing is known; where all are gone through
STATED, UNKNOWN, WALKED = 4, 1, 0.5


class Option(NamedTuple):
    """What an answer may take.

    Attributes:
        letter: By which the prompt calls it: A, B and so on, or a longer name that the prompt doesn't have.
        texts: As what it may be quoted, the prompt's first.
    """

    letter: str
    texts: tuple[str, ...]


def languages() -> list[str]:
    """List the languages whose answers can be read."""
    return sorted(listed(_WORDS)["words"])


def _either(phrases: Iterable[str]) -> str:
    """Write a regular expression for phrases, a longer one first."""
    longest_first = sorted(phrases, key=len, reverse=True)
    escaped = [re.escape(phrase).replace(r"\*", r"[\w'-]*") for phrase in longest_first]
    return "|".join(escaped) or "(?!)"


def _options(tokens: str) -> set[str]:
    """Find the options that tokens name, as A, B, C."""
    return set("".join(re.findall(r"[#$]([A-L]+)", tokens)))


class Language:
    """The words and rules of a language, with English words beside its own."""

    def __init__(self, name: str, letters: str) -> None:
        """Compile them.

        Args:
            name: Two letters.
            letters: By which options are called.

        Raises:
            KeyError: A language without words.
        """
        words, traits = listed(_WORDS).values()
        self.traits = traits[_ENGLISH] | traits[name]
        self._kinds = {}
        spaced = []
        parts = {"N": r"[#$][A-L]+(?:~\S*)?", "W": r"[a-z_][\w/]*"}
        for kind, english in words[_ENGLISH].items():
            phrases = {
                self.fold(phrase) for phrase in english + words[name].get(kind, [])
            }
            spaced += [phrase for phrase in phrases if re.search(r"[^\w*'-]", phrase)]
            self._kinds[kind] = re.compile(_either(phrases))
            parts[kind] = rf"(?<!\S)(?:\S*[~/])?{kind}(?:/\S*)?(?!\S)"
        letter = f"[{letters}]" if letters else "(?!)"
        self._pieces = re.compile(
            rf"(?P<letter>(?<!{_LATIN})(?<!\w[-'])(?<!n/){letter})(?P<ending>{self.traits['letter']})(?!{_LATIN}|[-']\w)"
            rf"|(?P<item>^(?:(?:[-–—•|+]|\(?\d+[.)]|(?!{letter})[A-PR-Z][.:)])(?=\s)[^\S\n]*)+)|(?P<end>\.+(?!\w)|[!?。]+)"
            rf"|(?P<word>(?<!\w)(?:{_either(spaced)})(?!\w)|{_WORD})"
            r"|\$[A-L]+(?:~\S*)?|[\n:=→,;()\[\]|–—/&+-]",
            re.IGNORECASE | re.MULTILINE,
        )
        rules = {
            kind: [(re.compile(rule.format_map(parts)), by) for rule, by in pairs]
            for kind, pairs in listed("choice_rules.yaml").items()
        }
        self.settled, self.levels, others = rules.values()
        self.rules = {name: rule for rule, name in others}
        self.kinds_of = lru_cache(20_000)(self._kinds_of)

    def _kinds_of(self, word: str) -> str:
        found = [
            kind for kind, words in self._kinds.items() if words.fullmatch(word.lower())
        ]
        return "_" if "plain" in found else "/".join(found) or "_"

    def fold(self, text: str) -> str:
        """Write in one way what is written in several."""
        for written, meant in self.traits["same"].items():
            text = re.sub(written, meant, text)
        return text

    def _token(self, match: re.Match[str]) -> str:
        letter = match["letter"]
        if letter:
            sign = "^" if letter.isupper() else "`"
            return f"{sign}{letter.upper()}~{self.kinds_of(match['ending'])}"
        if match["word"]:
            return self.kinds_of(match[0])
        return {"item": "•", "end": "."}.get(str(match.lastgroup), match[0])

    def tokens(self, text: str) -> str:
        """Write the tokens of a text, in which options that are named by their texts are tokens already."""
        return " ".join(map(self._token, self._pieces.finditer(text)))


_language = lru_cache(Language)


class ChoiceReader:
    """Reads the answers to one question with options, which may have letters."""

    def __init__(self, options: Sequence[Option], language: str) -> None:
        """Make a reader of answers to these options.

        Args:
            options: What an answer may take.
            language: Two letters, of the question; English is understood, too.

        Raises:
            KeyError: A language without words.
        """
        self._name = language
        self._options = options
        letters = "".join(name for name, _ in options if len(name) == 1)
        self._language = _language(language, letters)
        self._rules = self._language.rules
        texts: dict[str, str] = {}
        for letter, (_, spellings) in zip(_LETTERS, options, strict=False):
            for text in map(self._language.fold, spellings):
                plain = " ".join(plain_lines(text)).lower().rstrip(" .,;:!?…")
                texts[plain] = texts.get(plain, "") + letter
        longest_first = sorted(filter(None, texts), key=len, reverse=True)
        self._texts = [texts[text] for text in longest_first]
        ways = [
            f"({re.escape(text)}){self._language.traits['text' if ' ' in text else 'word'] if letters else ''}"
            for text in longest_first
        ]
        self._named = re.compile(
            rf"(?<!\w)(?:{'|'.join(ways) or '(?!)'})(?!\w)(?![:*_]\w)", re.IGNORECASE
        )
        self._begun = self._rules["begun" if letters else "begun_anywhere"]
        self._refusals = ("firm", "unable", "none") if letters else ()
        tokens = self._language.tokens
        said = [text for text in texts if self._rules["unknown"].search(tokens(text))]
        self._unknown = texts[said[0]] if len(said) == 1 else ""
        self._reply = "_" if "know" in tokens(" ".join(said)) else "know"

    def _token(self, match: re.Match[str]) -> str:
        """Write the token of an option that is named by its text."""
        place = match.lastindex or 0
        ending = match.string[match.end(place) : match.end()]
        return f" ${self._texts[place - 1]}~{self._language.kinds_of(ending)} "

    def _sentences(self, lines: Sequence[str]) -> list[str]:
        """Write a text's tokens, and divide them; a sentence that begins a line has a line feed before it."""
        text = self._named.sub(self._token, self._language.fold("\n".join(lines)))
        tokens = "\n " + self._language.tokens(text).replace("reply", self._reply)
        if self._unknown:
            tokens = self._rules["named"].sub("$" + self._unknown + "~told", tokens)
        for rule, by in self._language.settled:
            tokens = rule.sub(by, tokens)
        tokens = self._rules["but"].sub(self._language.traits["but"], tokens)
        return _SENTENCE.findall(tokens)

    def _parts(self, sentence: str) -> list[str]:
        parts = self._rules["divided"].split(sentence)
        return [part.strip(" .,\n") for part in parts if re.search("[a-z_#$]", part)]

    def _walked(self, sentences: Sequence[str]) -> set[int]:
        """Find sentences that go through the options: in order, or as items of a list.

        One at the end that is only an option, unlike the first, is the answer.
        """
        begun = map(self._rules["begins"].match, sentences)
        marks = [match[1] or match[2].lower() if match else "." for match in begun]
        walked: set[int] = set()
        for walk in _WALK.finditer("".join(marks)):
            walked.update(range(*walk.span()))
            if "line :" in sentences[-1] and "line :" not in sentences[walk.start()]:
                walked.discard(len(sentences) - 1)
        return walked

    def _taken(self, part: str) -> tuple[float, set[str]]:
        """Tell how firmly a part of a sentence takes which options."""
        for rule, firm in self._language.levels:
            match = rule.search(part)
            if match and firm:
                return firm, _options(match[match.lastindex or 0])
            if match:
                break
        is_named = f"${self._unknown} " in part + " "
        is_unknown = is_named or self._rules["unsaid"].search(part)
        is_known = "#" in part or len(_options(part) - set(self._unknown)) == 1
        if self._unknown and is_unknown and not is_known:
            return UNKNOWN, set(self._unknown)
        return 0, set()

    def _stated(self, sentences: Sequence[str]) -> tuple[float, set[str]]:
        """Find how firm the last of the firmest statements is, and the options that it takes.

        Statements of a line that are alike are several answers, unless a later one turns. Of the options that are gone
        through one may be taken, if nothing else is.
        """
        walked = self._walked(sentences)
        firmest, line, of_line, turns = 0.0, 0, 0, False
        taken: set[str] = set()
        for number, sentence in enumerate(sentences):
            line += sentence.startswith("\n") and number not in walked
            if taken and self._rules["asks"].match(sentence):
                break
            for part in self._parts(sentence):
                firm, options = self._taken(part)
                if number in walked:
                    firm = WALKED if firm > 3 else 0
                if self._rules["turns"].search(part):
                    turns = True
                if firm and firm >= firmest:
                    is_alike = firm == firmest and line == of_line and not turns
                    taken = taken | options if is_alike else options
                    firmest, of_line, turns = firm, line, False
        return firmest, taken

    def read(self, text: str, cut: bool = False) -> str:
        """Return the letter of the option that an answer takes, or which of ``answers.UNANSWERED`` it is.

        Args:
            text: What the model wrote, without its thoughts.
            cut: Whether it was cut off, at a limit of tokens or by a content filter: it is read only if it states a
                choice firmly, else it is ``ENDLESS``.
        """
        lines = plain_lines(text + " &" * cut)
        if not lines:
            return EMPTY
        sentences = self._sentences(lines)
        firm, taken = self._stated(sentences)
        if text == ENDLESS or (cut and firm < STATED):
            return ENDLESS
        parts = self._parts(" ; ".join(sentences))
        asserted = filterfalse(self._rules["denied"].search, parts)
        named = _options(" ".join(asserted))
        if firm <= UNKNOWN:
            begun = self._begun.match(" ; ".join(parts))
            if firm == UNKNOWN and (
                len(named - taken) == 1 or refuses(text, self._name, "firm")
            ):
                taken = set()
            taken = {begun[1]} if begun else taken
        if len(taken) == 1:
            return self._options[_LETTERS.index(min(taken))].letter
        if not taken and refuses(text, self._name, *self._refusals):
            return REFUSED
        return SEVERAL if taken or len(named) > 1 else UNREADABLE


# of a question like the last ones, whose reader is at hand
reader = lru_cache(256)(ChoiceReader)
