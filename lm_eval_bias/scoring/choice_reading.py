"""Which of several options a free answer takes: by its letter, or by its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from lm_eval_bias.core.answers import EMPTY, ENDLESS, REFUSED, SEVERAL, UNREADABLE
from lm_eval_bias.scoring.free_answers import listed, plain_lines, refuses

_APOSTROPHES = str.maketrans("’‘ʼ´", "''''")
_KOREAN = re.compile(r"(?<![A-Za-z])([A-Ca-c])(?![A-Za-z])(?=([가-힣])?)")
_TURKISH = str.maketrans("Iİ", "ıi")
_SHORTEST_STEM = 4  # letters of a word that may have an ending
_LONGEST_ENDING = 3
_MARKS = " ).:,;]-–—"  # between a letter and its text
_NEAR = 80  # characters before what a line mentions in which a negation may stand
_ENGLISH = "en"  # in which models refuse whatever they were asked in


class Option(NamedTuple):
    """What an answer may take.

    Attributes:
        letter: By which the prompt calls it.
        texts: As what it may be quoted, the prompt's first.
    """

    letter: str
    texts: tuple[str, ...]


# ---------------------------------------------------------------------- what readers are made of


def words() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """How answers are worded, by language: ``choice_words.yaml``."""
    return listed("choice_words.yaml")


def any_of(phrases: Iterable[str]) -> str:
    """A regular expression for one of some phrases, of which a longer one comes first; any case.

    >>> any_of(["antwort", "antwortmöglichkeit"])
    '(?i:antwortmöglichkeit|antwort)'
    """
    return f"(?i:{'|'.join(sorted(phrases, key=len, reverse=True))})"


# ---------------------------------------------------------------------- the reader


class _Patterns(NamedTuple):
    """A language's regular expressions for lettered answers; their groups are the letter."""

    first: re.Pattern[str]  # a line begins with a letter
    inline: re.Pattern[str]  # another option in the line
    more: re.Pattern[str]  # what joins another letter: "or B"
    stated: Sequence[re.Pattern[str]]  # "the answer is B"
    mentioned: Sequence[re.Pattern[str]]
    denied: re.Pattern[str]  # at the end of what stands before a letter or text
    denied_behind: re.Pattern[str]
    none: re.Pattern[str]


@cache
def _patterns(language: str, letters: str) -> _Patterns:
    own = words()[language]
    upper, lower = rf"[(\[]?([{letters}])", rf"[(\[]?([{letters.lower()}])"
    # Turkish endings stand behind an apostrophe
    end = r"(?!\w)" if language == "tr" else r"(?![\w'])"
    if "article" in own:
        end += rf"(?!(?<={own['article']})\s+(?!{any_of(own['goes_on'])}(?!\w))[^\W\d_])"
    joined = rf"\s+{any_of(own['or'])}\s+[(\[]?[{letters}](?!\w)"
    behind_answer = rf"(?<!\w){any_of((*own['answer'], *own['choose']))}(?!\w)\W*(?:{any_of(own['is'])}\W+)?"
    behind_answer += rf"(?:{any_of(own['option'])}\W+)?"
    called = rf"(?:{any_of(own['option'])}\s+)?"
    stated = [rf"{behind_answer}{upper}{end}", rf"{behind_answer}{lower}(?=[).:,\]]|\s*$)"]
    if language == "tr":  # the verb stands last
        stated.append(rf"(?<!\w){upper}[)\]]?(?:'\w+)?\s+{called}{any_of(own['choose'])}(?!\w)")
    return _Patterns(
        re.compile(
            rf"[-–—•]?\s*(?:{upper}(?:(?=[).:,;\]](?!\w))|(?=\s*$)|(?=\s+[-–—(=])|(?={joined}))"
            rf"|{lower}(?:(?=[).:\]](?!\w))|(?=\s*$)))"
        ),
        re.compile(rf"(?<!\w){upper}[).:\]](?!\w)\s*"),
        re.compile(rf"[)\]]?\s*(?:[,/&+]\s*)?(?:{any_of(own['or'])}\s+)?{called}{upper}(?![\w'])"),
        [re.compile(pattern) for pattern in stated],
        [
            re.compile(rf"(?<!\w){upper}{end}"),
            re.compile(rf"(?<!\w){any_of(own['option'])}\s+{lower}(?=[).:,\]]|\s*$)"),
        ],
        re.compile(rf"(?<!\w){any_of(own['not'])}\s+(?:\w+\s+)?[(\[]?$"),
        re.compile(rf"[)\].:]?(?:'\w+)?\s+{called}{any_of(own['not_behind'])}(?!\w)"),
        re.compile(rf"\W*(?:\w+\W+){{0,3}}?{any_of(own['none'])}(?!\w)"),
    )  # fmt: skip


def _letters(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group).upper()


class ChoiceReader:
    """Reads the answers to one question with lettered options.

    What an answer begins with, or states ("the answer is B"), goes before a refusal, a refusal before what is only
    mentioned; a letter goes before a text.
    """

    def __init__(self, options: Sequence[Option], language: str) -> None:
        """A reader of answers to these options.

        Args:
            options: With letters in the order of the alphabet.
            language: Two letters, of the question; refusals are understood in English, too.

        Raises:
            KeyError: A language without words.
        """
        self._language = language
        self._attached: re.Pattern[str] | None = None
        self._order = "".join(option.letter for option in options)
        self._patterns = _patterns(language, self._order)
        self._answer = words()[language]["answer"]
        pairs = [(self._plain(text), option.letter) for option in options for text in option.texts]
        # letters by text, of equal options several; the longest first, which may hold a shorter one
        self._texts: dict[str, set[str]] = {}
        for text, letter in sorted(pairs, key=lambda pair: -len(pair[0])):
            if text:
                self._texts.setdefault(text, set()).add(letter)
        if language == "ko" and self._texts:
            self._attached = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, self._texts))})(?=[가-힣])")

    def _plain(self, text: str) -> str:
        """A text as it is compared: one line without markup and without its last punctuation."""
        return self._folded(" ".join(plain_lines(text))).rstrip(" .,;:!?…")

    def _folded(self, line: str) -> str:
        line = line.translate(_APOSTROPHES)
        if self._language == "ko":  # a lone letter is an option's; what is said of it is written onto it
            line = _KOREAN.sub(lambda match: match[1].upper() + (" " if match[2] else ""), line)
            line = self._attached.sub(r"\1 ", line) if self._attached else line
        return line.translate(_TURKISH) if self._language == "tr" else line

    def _text_at_start(self, line: str) -> set[str]:
        """The letters of the option that a line begins with, perhaps behind "answer", if a sentence could end there."""
        for text, letters in self._texts.items():  # the longest first
            pattern = rf"(?:{any_of(self._answer)}\W*)?{re.escape(text)}\s*(?:[.,;:!?)]|$)"
            if re.match(pattern, line, flags=re.IGNORECASE):
                return set(letters)
        return set()

    def _begins(self, line: str) -> tuple[str, str] | None:
        """The letter with which a line begins, and what stands behind it."""
        match = self._patterns.first.match(line)
        return None if match is None else (_letters(match), line[match.end() :])

    def _repeated(self, lines: Sequence[str]) -> int:
        """How many lines, from the first on, are the options in their order; the last line may be cut off."""
        for count, letter in enumerate(self._order):
            begun = self._begins(lines[count]) if count < len(lines) else None
            if begun is None or begun[0] != letter:
                return count
            text, is_last = begun[1].lstrip(_MARKS), count == len(lines) - 1
            cut = [own for option, own in self._texts.items() if option.lower().startswith(text.lower())]
            is_cut = is_last and text != "" and set().union(*cut) == {letter}
            if letter not in self._text_at_start(text) and not is_cut:
                return count
        return len(self._order)

    def _without_repeated(self, lines: Sequence[str]) -> list[str]:
        """Drop lines that only repeat the options."""
        kept: list[str] = []
        place = 0
        while place < len(lines):
            count = self._repeated(lines[place:])
            if count < 2:
                kept.append(lines[place])
            place += count if count >= 2 else 1
        return kept

    def _states(self, line: str) -> set[str]:
        """The letters that a line begins with or states as the answer; all where it counts them up."""
        if self._counts_up(line):
            return set(self._order)
        begun = self._begins(line)
        if begun is not None:
            letter, rest = begun
            own = self._text_at_start(rest.lstrip(_MARKS))
            others = {m[1] for m in self._patterns.inline.finditer(rest) if self._texts_in(rest[m.end() :]) == {m[1]}}
            return {letter, *self._further(rest)[0], *others, *(set() if letter in own else own)}
        if own := self._text_at_start(line):
            return own
        matches = (match for pattern in self._patterns.stated for match in pattern.finditer(line))
        return {letter for match in matches for letter in (_letters(match), *self._further(line, match.end())[0])}

    def _counts_up(self, line: str) -> bool:
        """Whether all letters stand one behind the other: "A, B or C"."""
        place = 0
        while match := self._patterns.mentioned[0].search(line, place):
            letters, place = self._further(line, match.end())
            if {match[1], *letters} == set(self._order):
                return True
        return False

    def _further(self, line: str, place: int = 0) -> tuple[set[str], int]:
        """Letters that are joined to the one before a place, "or B", and where they end."""
        letters = set()
        while match := self._patterns.more.match(line, place):
            letters.add(match[1])
            place = match.end()
        return letters, place

    def _denies(self, line: str, start: int, end: int) -> bool:
        """Whether a negation stands before what a line mentions, or behind it."""
        before = line[max(0, start - _NEAR) : start]
        return bool(self._patterns.denied.search(before) or self._patterns.denied_behind.match(line, end))

    def _mentions(self, line: str) -> set[str]:
        """The options that a line mentions by letter or, where it has no letter, by text."""
        matches = [match for pattern in self._patterns.mentioned for match in pattern.finditer(line)]
        kept = {_letters(m) for m in matches if not self._denies(line, m.start(1), m.end(1))}
        return kept or self._texts_in(line)

    def _texts_in(self, line: str) -> set[str]:
        """The options whose text a line has, as it is or, where there is none, with an ending."""
        rest = line
        kept: set[str] = set()
        for text, letters in self._texts.items():
            pattern = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
            if any(not self._denies(rest, *match.span()) for match in pattern.finditer(rest)):
                kept |= letters
            rest = pattern.sub("\0", rest)
        return kept or {
            letter
            for text, letters in self._texts.items()
            for letter in letters
            if len(text) >= _SHORTEST_STEM and " " not in text
            for match in re.finditer(rf"(?<!\w){re.escape(text)}'?\w{{1,{_LONGEST_ENDING}}}(?!\w)", rest, re.IGNORECASE)
            if not self._denies(rest, *match.span())
        }

    def _declines(self, lines: Sequence[str], text: str) -> bool:
        own = "\n".join(lines)
        for option in self._texts:  # one may read like a refusal
            own = re.sub(rf"(?<!\w){re.escape(option)}(?!\w)", "", own, flags=re.IGNORECASE)
        if self._patterns.none.match(own) or refuses(own, self._language):
            return True
        return self._language != _ENGLISH and refuses(text, _ENGLISH)

    def read(self, text: str) -> str:
        """The letter of the option that an answer takes, or which of ``answers.UNANSWERED`` it is.

        Args:
            text: What the model wrote, without its thoughts.
        """
        if text == ENDLESS:
            return ENDLESS
        if not (whole := [self._folded(line) for line in plain_lines(text)]):
            return EMPTY
        if not (lines := self._without_repeated(whole)):
            return SEVERAL
        stated = self._states(lines[0])
        if self._is_open(lines[0], stated) and self._declines(lines, text):
            return REFUSED
        stated = stated or next((letters for line in lines[1:] if (letters := self._states(line))), set())
        for letters in (stated, self._mentions(lines[0]), self._mentions("\n".join(lines))):
            if letters:
                return letters.pop() if len(letters) == 1 else SEVERAL
        return UNREADABLE if len(lines) == len(whole) else SEVERAL

    def _is_open(self, line: str, stated: set[str]) -> bool:
        """Whether a line may begin a refusal: it states nothing, or speaks of all options."""
        return not stated or (stated == set(self._order) and self._begins(line) is None)


@lru_cache(maxsize=256)
def reader(options: tuple[Option, ...], language: str) -> ChoiceReader:
    """Make the reader of a question's answers, or take it from the last answer."""
    return ChoiceReader(options, language)
