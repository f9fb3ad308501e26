"""Which of several options a free answer takes: by its letter, by its text, or by other words for "unknown".

A text becomes tokens: options that it names, words by their kinds, marks, and ends of sentences and lines. Rules settle
what they mean together; then each part of a sentence takes an option more or less firmly, or none. The rule stands in
docs/chat_models.md, its expressions in ``choice_rules.yaml``, the words of each language in ``choice_words.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from lm_eval_bias.core.answers import EMPTY, ENDLESS, REFUSED, SEVERAL, UNREADABLE
from lm_eval_bias.scoring.free_answers import listed, plain_lines, refuses

_WORDS = "choice_words.yaml"
_ENGLISH = "en"  # in which models answer and refuse whatever they were asked in
_LETTERS = "ABCDEFGHIJKL"
MOST_OPTIONS = len(_LETTERS)
_LATIN = r"[A-Za-z\u00c0-\u024f\d]"
_WORD = rf"{_LATIN}+(?:['-]{_LATIN}+)*|(?:(?!{_LATIN})[^\W_])+"
_SENTENCE = re.compile(r"\n?[^.\n]+\.?")
_NAMED = re.compile(r"[#$]([A-L]+)")
# sentences that go through the options, a character each: the letter that it begins with, a small one in a list
_NEXT = "|".join(rf"(?i:{letter}\.*(?={after}))" for letter, after in pairwise(_LETTERS))
_WALK = re.compile(rf"(?:{_NEXT}|[a-l]\.*(?=[a-l]))+.")
_FEW = 3  # words of an option that says that something can't be told, beside those that say it
STATED, UNKNOWN = 4, 1  # how firmly a part takes an option, as the rules have it


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
    longest_first = sorted(sorted(phrases), key=len, reverse=True)
    escaped = [re.escape(phrase).replace(r"\*", r"\w*") for phrase in longest_first]
    return "|".join(escaped) or "(?!)"


def _options(tokens: str) -> set[str]:
    """Find the options that tokens name, as A, B, C."""
    return set("".join(_NAMED.findall(tokens)))


def _size(tokens: str) -> int:
    """Count words and options."""
    return len(re.findall(r"(?<!\S)[a-z_#$]", tokens))


def _union(match: re.Match[str]) -> str:
    """Write one token for options that are joined, and for those of a list, which names none twice."""
    letters = sorted(_options(match[0]))
    if match["list"] and len(letters) < len(_NAMED.findall(match[0])):
        return match[0]
    return "$" + "".join(letters)


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
        words = listed(_WORDS)["words"]
        traits = listed(_WORDS)["traits"]
        self.traits = {**traits[_ENGLISH], **traits[name]}
        self._kinds = {}
        spaced = []
        parts = {"N": r"[#$][A-L]+(?:~\S*)?", "W": r"[a-z_][\w/]*"}
        for kind in words[_ENGLISH]:
            phrases = [*words[_ENGLISH][kind], *words[name].get(kind, ())]
            phrases = {self.fold(phrase) for phrase in phrases}
            spaced += [phrase for phrase in phrases if re.search("[ /.]", phrase)]
            self._kinds[kind] = re.compile(_either(phrases))
            parts[kind] = rf"(?<!\S)(?:\S*[~/])?{kind}(?:/\S*)?(?!\S)"
        letter = f"[{letters}]" if letters else "(?!)"
        self._pieces = re.compile(
            rf"(?P<letter>(?<!{_LATIN})(?<!\w[-'])(?<!n/){letter})(?P<ending>{self.traits['letter']})(?!{_LATIN}|[-']\w)"
            r"|(?P<item>^(?:(?:[-–—•|+]|\(?\d+[.)]|[A-Z][.:)])(?=\s)[^\S\n]*)+)|(?P<end>\.+(?!\w)|[!?。]+)"
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
        self.kinds_of = lru_cache(maxsize=20_000)(self._kinds_of)

    def _kinds_of(self, word: str) -> str:
        kinds = self._kinds.items()
        found = [kind for kind, words in kinds if words.fullmatch(word.lower())]
        return "_" if "plain" in found else "/".join(found) or "_"

    def fold(self, text: str) -> str:
        """Write in one way what is written in several."""
        for written, meant in self.traits["same"].items():
            text = text.replace(written, meant)
        return text

    def named(self, text: str, has_ending: bool) -> str:
        """Write a regular expression for an option's text, with other forms of its article, perhaps with endings."""
        first = text.partition(" ")[0]
        forms = self.traits["articles"].get(first, "(?!)")
        rest = re.escape(text[len(first) :])
        ending = self.traits["text" if rest else "word"] if has_ending else ""
        return rf"((?:{re.escape(first)}|(?<=\w\s)(?:{forms})){rest}){ending}(?!\w)(?![:*_]\w)"

    def _token(self, match: re.Match[str]) -> str:
        letter = match["letter"]
        if letter:
            sign = "^" if letter.isupper() else "`"
            return f"{sign}{letter.upper()}~{self.kinds_of(match['ending'])}"
        if match["word"]:
            return self.kinds_of(match[0])
        return "•" if match["item"] else "." if match["end"] else match[0]

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
        self._letters = "".join(name for name, _ in options if len(name) == 1)
        self._language = _language(language, self._letters)
        self._rules = self._language.rules
        texts: dict[str, str] = {}
        for letter, option in zip(_LETTERS, options, strict=False):
            for text in option.texts:
                plain = self._language.fold(" ".join(plain_lines(text))).lower()
                plain = plain.rstrip(" .,;:!?…")
                texts[plain] = "".join({*texts.get(plain, ""), letter})
        longest_first = sorted(filter(None, texts), key=len, reverse=True)
        ways = [self._language.named(text, bool(self._letters)) for text in longest_first]
        self._texts = [texts[text] for text in longest_first]
        self._named = re.compile(rf"(?<!\w)(?:{'|'.join(ways) or '(?!)'})", re.IGNORECASE)
        said = [text for text in texts if self._is_unknown(text)]
        self._unknown = texts[said[0]] if len(said) == 1 else ""
        self._others = set(_LETTERS[: len(options)]) - {self._unknown}
        is_reply = self._unknown and not self._rules["unsaid"].search(self._language.tokens(said[0]))
        self._unsaid = self._rules["unanswered" if is_reply else "unsaid"]

    def _is_unknown(self, option: str) -> bool:
        """Tell whether an option's text says that something can't be told, and hardly more."""
        tokens = self._language.tokens(option)
        return bool(self._rules["unanswered"].search(tokens)) and tokens.split().count("_") <= _FEW

    def _token(self, match: re.Match[str]) -> str:
        """Write the token of an option that is named by its text."""
        place = match.lastindex or 0
        ending = match.string[match.end(place) : match.end()]
        return f" ${self._texts[place - 1]}~{self._language.kinds_of(ending)} "

    def _sentences(self, lines: Sequence[str]) -> list[str]:
        """Write a text's tokens, and divide them; a sentence that begins a line has a line feed before it."""
        text = self._named.sub(self._token, self._language.fold("\n".join(lines)))
        tokens = "\n " + self._language.tokens(text)
        if self._unknown:
            tokens = self._rules["unknown"].sub("$" + self._unknown, tokens)
        for rule, by in self._language.settled:
            tokens = rule.sub(by, tokens)
        tokens = self._rules["joined"].sub(_union, tokens)
        tokens = self._rules["but"].sub(self._language.traits["but"], tokens)
        return [sentence for sentence in _SENTENCE.findall(tokens) if _size(sentence)]

    def _parts(self, sentences: Sequence[str]) -> list[str]:
        parts = self._rules["divided"].split(" ; ".join(sentences))
        return [part.strip(" .,\n") for part in parts if _size(part)]

    def _mark(self, sentence: str) -> str:
        """Write what a sentence begins with as a character, see ``_WALK``."""
        begun = self._rules["begins"].match(sentence)
        if not begun:
            return "?" if self._rules["asks"].match(sentence) else "."
        return begun["letter"].lower() if begun["item"] else begun["letter"]

    def _walked(self, sentences: Sequence[str]) -> set[int]:
        """Find sentences that go through the options: in order, or as items of a list.

        One at the end that is only an option, unlike the first, is the answer.
        """
        walked: set[int] = set()
        for walk in _WALK.finditer("".join(map(self._mark, sentences))):
            walked.update(range(*walk.span()))
            is_last = walk.end() == len(sentences) and "line :" in sentences[-1]
            if is_last and "line :" not in sentences[walk.start()]:
                walked.discard(walk.end() - 1)
        return walked

    def _taken(self, part: str) -> tuple[int, set[str]]:
        """Tell how firmly a part of a sentence takes which options."""
        options = _options(part)
        for rule, firm in self._language.levels:
            match = rule.search(part)
            if match:
                break
        if firm:
            return firm, _options(match[1]) if rule.groups else options
        is_unknown = f"${self._unknown}" in re.split("[ ~]", part) or self._unsaid.search(part)
        if self._unknown and is_unknown and "#" not in part:
            if options - {self._unknown} in (set(), self._others):
                return UNKNOWN, {self._unknown}
        return 0, set()

    def _stated(self, sentences: Sequence[str]) -> tuple[int, set[str]]:
        """Find how firm the last of the firmest statements is, and the options that it takes.

        Statements of a line that are alike are several answers, unless a later one turns.
        """
        firmest, line, of_line, turns = 0, 0, 0, False
        taken: set[str] = set()
        for sentence in sentences:
            line += sentence.startswith("\n")
            if taken and self._rules["asks"].match(sentence):
                break
            for part in self._parts([sentence]):
                firm, options = self._taken(part)
                turns = turns or bool(self._rules["turns"].search(part))
                if firm and firm >= firmest:
                    is_alike = firm == firmest and line == of_line and not turns
                    taken = taken | options if is_alike else options
                    firmest, of_line, turns = firm, line, False
        return firmest, taken

    def _verdict(self, walked: Sequence[str]) -> set[str]:
        """Find the only option that is taken while all are gone through."""
        readings = map(self._taken, self._parts(walked))
        taken = set[str]().union(*(options for firm, options in readings if firm > 2))
        return taken if len(taken) == 1 else set()

    def _asserted(self, parts: Sequence[str]) -> set[str]:
        """Find the options that are named without being denied."""
        denied = self._rules["denied"]
        return _options(" ".join(part for part in parts if not denied.search(part)))

    def _begun(self, parts: Sequence[str]) -> set[str]:
        """Find the option that a text begins with, if it names no other one but to deny it, and denies nothing else.

        Options without letters may stand anywhere.
        """
        asserted = self._asserted(parts)
        before = "[^a-z_#$]*" if self._letters else "[^#$]*"
        begun = re.match(rf"{before}[#$]([A-L]+)", " ".join(parts))
        if not begun or {begun[1]} != asserted:
            return set()
        for part in filter(self._rules["denied"].search, parts):
            if _options(part) & asserted or (self._letters and not _options(part)):
                return set()
        return asserted

    def read(self, text: str, cut: bool = False) -> str:
        """Return the letter of the option that an answer takes, or which of ``answers.UNANSWERED`` it is.

        Args:
            text: What the model wrote, without its thoughts.
            cut: Whether it was cut off, at a limit of tokens or by a content filter: it is read only if it states a
                choice firmly, else it is ``ENDLESS``.
        """
        lines = plain_lines(text)
        if text == ENDLESS or (cut and not lines):
            return ENDLESS
        if not lines:
            return EMPTY
        sentences = self._sentences(lines)
        walked = self._walked(sentences)
        kept = [one for number, one in enumerate(sentences) if number not in walked]
        firm, taken = self._stated(kept)
        if cut and firm < STATED:
            return ENDLESS
        if firm <= UNKNOWN:
            parts = self._parts(kept)
            others = self._asserted(parts) - taken
            is_known = others not in (set(), self._others) or refuses(text, self._name, True)
            taken = set() if is_known else taken
            verdict = self._verdict([sentences[number] for number in sorted(walked)])
            taken = verdict or self._begun(parts) or taken
        if len(taken) == 1:
            return self._options[_LETTERS.index(*taken)].letter
        if not taken and refuses(text, self._name):
            return REFUSED
        return SEVERAL if taken or len(self._asserted(self._parts(sentences))) > 1 else UNREADABLE


# of a question like the last ones, whose reader is at hand
reader = lru_cache(maxsize=256)(ChoiceReader)
