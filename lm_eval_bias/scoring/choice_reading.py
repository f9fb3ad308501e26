"""Which of several options a free answer takes: by its letter, by its text, or by other words for "unknown".

A text becomes tokens: an option that it names, a word, a mark, or an end of a sentence or line. Each clause of a
sentence takes an option more or less firmly, or none. The rule stands in docs/chat_models.md; the words and endings of
each language are in ``choice_words.yaml``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from lm_eval_bias.core.answers import EMPTY, ENDLESS, REFUSED, SEVERAL, UNREADABLE
from lm_eval_bias.scoring.free_answers import listed, plain_lines, refuses

_WORDS = "choice_words.yaml"
_ENGLISH = "en"  # in which models answer and refuse whatever they were asked in
_TRAITS = {"articles", "endings", "turns", "same"}
_ENDINGS = {"letter": "", "text": r"(?:'?\w{1,3})?", "words": ""}
_SHORTEST_STEM = 4  # letters of a word that may have an ending
_LATIN = r"A-Za-z\u00c0-\u024f\d'"
_LETTERS = r"(?:(?![가-힣])[^\W_])+"
_FEW = 4  # words before an option that ends a clause
MOST_OPTIONS = 12
NAMED, WORD, MARK, END = "named", "word", "mark", "end"
# how firmly a clause takes an option: stated, alone in it, at its end; or by saying that nothing is known
STATED, ALONE, SHORT, UNKNOWN = 4, 3, 2, 1
_NONE: frozenset[int] = frozenset()


class Option(NamedTuple):
    """What an answer may take.

    Attributes:
        letter: By which the prompt calls it.
        texts: As what it may be quoted, the prompt's first.
    """

    letter: str
    texts: tuple[str, ...]


class Token(NamedTuple):
    """A piece of an answer.

    Attributes:
        kind: ``named`` (an option), ``word``, ``mark``, or ``end`` (of a line where its text is a line feed).
        text: As written; "•" is a mark before an item of a list.
        says: The kinds of words that it is, as ``choice_words.yaml`` calls them; of an option, of its ending.
        options: The places of the options that it names.
        is_letter: Whether it names one by its letter.
    """

    kind: str
    text: str
    says: frozenset[str] = frozenset()
    options: frozenset[int] = _NONE
    is_letter: bool = False


class Sentence(NamedTuple):
    """A sentence, or what stands in place of one in a line.

    Attributes:
        clauses: Its tokens, divided.
        line: The number of its line.
        end: The mark that ends it, a line feed, or nothing at the end of the text.
        is_item: Whether it begins an item of a list.
    """

    clauses: list[list[Token]]
    line: int
    end: str
    is_item: bool


Reading = tuple[int, frozenset[int]]  # how firmly options are taken, and their places


def languages() -> list[str]:
    """List the languages whose answers can be read."""
    return sorted(listed(_WORDS))


def _either(phrases: Iterable[str]) -> str:
    """Write a regular expression for phrases, a longer one first."""
    longest_first = sorted(sorted(phrases), key=len, reverse=True)
    escaped = [re.escape(phrase).replace(r"\*", r"\w*") for phrase in longest_first]
    return "|".join(escaped) or "(?!)"


def _unaccented(text: str) -> str:
    """Write a regular expression for a text that may lack its accents."""
    written = []
    for letter in text:
        parts = unicodedata.normalize("NFD", letter)
        has_accent = len(parts) > 1 and unicodedata.combining(parts[1])
        written.append(f"[{letter}{parts[0]}]" if has_accent else re.escape(letter))
    return "".join(written)


def _said(tokens: Iterable[Token]) -> frozenset[str]:
    return frozenset().union(*(token.says for token in tokens))


def _words(tokens: Iterable[Token]) -> list[Token]:
    return [token for token in tokens if token.kind in (WORD, NAMED)]


class Language:
    """The words and endings of a language, with English words beside them."""

    def __init__(self, name: str) -> None:
        """Compile them.

        Args:
            name: Two letters.

        Raises:
            KeyError: A language without words.
        """
        lists = listed(_WORDS)
        self._own = lists[name]
        self.endings = {**_ENDINGS, **self._own.get("endings", {})}
        self.is_verb_last = "turns" in self._own
        self._kinds = {}
        spaced = []
        for kind in {kind for own in lists.values() for kind in own} - _TRAITS:
            phrases = {*self._own.get(kind, ()), *lists[_ENGLISH].get(kind, ())}
            phrases = {self.fold(phrase) for phrase in phrases}
            self._kinds[kind] = re.compile(_either(phrases))
            spaced += [phrase for phrase in phrases if re.search(r"[ ./]", phrase)]
        self._pieces = re.compile(
            rf"(?P<item>^(?:[^\S\n]*(?:[-–—•|+]|\(?\d+[.)]|[A-Z][.:)])(?=\s))+)|(?P<end>\n|\.+(?!\w)|[!?。]+)"
            rf"|(?P<word>(?<!\w)(?:{_either(spaced)})(?!\w)|[가-힣]+|{_LETTERS}(?:['-]{_LETTERS})*)|(?P<mark>\S)",
            re.IGNORECASE | re.MULTILINE,
        )
        self.says = lru_cache(maxsize=20_000)(self._says)

    def _says(self, word: str) -> frozenset[str]:
        kinds = {
            kind for kind, words in self._kinds.items() if words.fullmatch(word.lower())
        }
        return frozenset() if "plain" in kinds else frozenset(kinds)

    def fold(self, text: str) -> str:
        """Write in one way what is written in several."""
        for written, meant in self._own.get("same", {}).items():
            text = text.replace(written, meant)
        return text

    def name(self, text: str, has_letter: bool) -> str:
        """Write a regular expression for an option's text: with an article's other forms, without accents, with endings.

        Another form of an article has something before it that asks for its case.
        """
        first, space, others = text.partition(" ")
        forms = self._own.get("articles", {}).get(first, "").split()
        begin = _unaccented(first)
        if forms and space:
            begin = rf"(?:{begin}|(?<=\w\s)(?:{'|'.join(forms)}))"
        is_stem = not space and len(text) >= _SHORTEST_STEM
        ending = self.endings["text" if is_stem else "words"] if has_letter else ""
        return rf"({begin}{_unaccented(space + others)}){ending}(?!\w)(?![:*_]\w)"

    def tokens(self, text: str, begin: int, end: int) -> Iterator[Token]:
        """Divide a part of a text in which no option is named.

        Args:
            text: Lines.
            begin: Where the part begins.
            end: Where it ends.
        """
        for match in self._pieces.finditer(text, begin, end):
            kind = str(match.lastgroup)
            if kind == "item":
                yield Token(MARK, "•")
            else:
                says = self.says(match[0]) if kind == WORD else frozenset()
                yield Token(kind, match[0], says)


_language = lru_cache(Language)


def _says_unknown(tokens: Sequence[Token], also: frozenset[str] = frozenset()) -> bool:
    """Tell whether words say that something can't be known."""
    says = _said(tokens)
    return "unknown" in says or ("not" in says and bool(says & {"know", *also}))


def _denies(clause: Sequence[Token]) -> bool:
    """Tell whether a clause names an option without taking it."""
    followed = zip(clause, clause[1:], strict=False)
    may_be = any(token.options and "modal" in after.says for token, after in followed)
    return may_be or bool(_said(clause) & {"not", "against"})


class ChoiceReader:
    """Reads the answers to one question with options, which may have letters."""

    def __init__(self, options: Sequence[Option], language: str) -> None:
        """Make a reader of answers to these options.

        Args:
            options: What an answer may take; those whose letter is longer than one have none in the prompt.
            language: Two letters, of the question; English is understood, too.

        Raises:
            KeyError: A language without words.
        """
        self._name = language
        self._language = _language(language)
        self._names = [option.letter for option in options]
        self._letters = "".join(name for name in self._names if len(name) == 1)
        self._all = frozenset(range(len(options)))
        texts: dict[str, frozenset[int]] = {}
        for place, option in enumerate(options):
            for text in option.texts:
                plain = self._language.fold(" ".join(plain_lines(text))).lower()
                plain = plain.rstrip(" .,;:!?…")
                texts[plain] = texts.get(plain, _NONE) | {place}
        longest_first = sorted(filter(None, texts), key=len, reverse=True)
        self._texts = [texts[text] for text in longest_first]
        has_letters = bool(self._letters)
        ways = [self._language.name(text, has_letters) for text in longest_first]
        self._named = re.compile(
            rf"(?<!\w)(?:{'|'.join(ways) or '(?!)'})|{self._letter()}", re.IGNORECASE
        )
        self._unknown = self._find_unknown(longest_first)

    def _letter(self) -> str:
        """Write a regular expression for an option's letter, with its brackets and ending."""
        if not self._letters:
            return "(?!)"
        letter = f"[{self._letters}]"
        bare = rf"(?<![{_LATIN}])(?<!\w[-/]){letter}"
        ending = self._language.endings["letter"]
        return rf"(?P<letter>[(\[]\s?{letter}\s?[)\]]|{bare}){ending}(?![{_LATIN}]|-\w)"

    def _find_unknown(self, texts: Sequence[str]) -> frozenset[int]:
        """Find the option that says that nothing is known, if there is one such option."""
        found = _NONE
        for text, options in zip(texts, self._texts, strict=True):
            tokens = list(self._language.tokens(text, 0, len(text)))
            strange = [token for token in tokens if not token.says]
            if len(strange) <= 1 and _says_unknown(tokens, frozenset({"answer"})):
                found |= options
        return found if len(found) == 1 else _NONE

    def _tokens(self, text: str) -> list[Token]:
        """Divide lines into tokens."""
        tokens: list[Token] = []
        at = 0
        for match in self._named.finditer(text):
            tokens += self._language.tokens(text, at, match.start())
            at = match.end()
            group = match.lastindex or 0
            says = self._language.says(text[match.end(group) : at])
            if match.lastgroup == "letter":
                options = frozenset(
                    {self._names.index(match["letter"].strip("()[] ").upper())}
                )
            else:
                options = self._texts[group - 1]
            is_letter = match.lastgroup == "letter"
            tokens.append(Token(NAMED, match[0], says, options, is_letter))
        tokens += self._language.tokens(text, at, len(text))
        return [self._settled(tokens, place) for place in range(len(tokens))]

    def _settled(self, tokens: Sequence[Token], place: int) -> Token:
        """Tell letters of options from words of one letter, and single words for "unknown" from others."""
        token = tokens[place]
        if self._unknown and "unknown" in token.says:
            return token._replace(kind=NAMED, options=self._unknown)
        if not token.is_letter or token.text[0] in "([":
            return token
        word = Token(WORD, token.text, self._language.says(token.text))
        before = tokens[place - 1] if place else Token(END, "")
        after = tokens[place + 1] if place + 1 < len(tokens) else Token(END, "")
        is_first = before.kind in (MARK, END)
        if "object" in token.says and "answer" not in after.says:
            return word
        if token.text[0].islower():
            is_last = after.kind in (MARK, END) or "answer" in after.says
            is_answer = "answer" in _said(tokens[max(0, place - 2) : place])
            return token if is_last and (is_first or is_answer) else word
        in_sentence = {"is", "right", "answer", "or", "but", "not", "modal", "so"}
        is_article = is_first and token.text[0] in "AEIOUY" or after.text[:1] >= "가"
        is_followed = after.kind == WORD or (after.options and after.options != token.options)
        if is_article and is_followed and not after.says & in_sentence:
            return word
        return token

    def _joined(self, tokens: Sequence[Token]) -> list[Token]:
        """Make one token of a letter with its text, and of options that "or" or a list joins."""
        out: list[Token] = []
        run: list[int] = []  # places of options between which only marks stand
        for token, after in zip(tokens, [*tokens[1:], Token(END, "")], strict=False):
            place = _last_option(out)
            if token.options and place is not None:
                together = _together(out[place], out[place + 1 :], token, after)
                if together:
                    del out[place:]
                    token = together
                    while len(token.options) > 1 and len(out) > 1 and out[-1].text == "," and out[-2].options:
                        token = token._replace(options=token.options | out[-2].options)
                        del out[-2:]
            run = [number for number in run if number < len(out)]
            if token.kind == WORD or token.text == "\n":
                run = []
            elif token.options:
                run.append(len(out))
            out.append(token)
            options = _NONE.union(*(out[number].options for number in run))
            if 3 <= len(run) == len(options):
                out[run[0] :] = [token._replace(options=options)]
                del run[1:]
        return out

    def _clauses(self, tokens: Sequence[Token]) -> list[list[Token]]:
        """Divide a sentence; a clause ends before "but", in Turkish and Korean behind it."""
        clauses: list[list[Token]] = [[]]
        for token, after in zip(tokens, [*tokens[1:], Token(END, "")], strict=False):
            turns = "but" in token.says
            if token.kind == MARK and token.text in ",;()|-–—•":
                if token.text != "," or "that" not in after.says:
                    clauses.append([])
                continue
            if turns and not self._language.is_verb_last:
                clauses.append([])
            clauses[-1].append(token)
            if turns and self._language.is_verb_last:
                clauses.append([])
        return list(filter(None, clauses))

    def _sentences(self, tokens: Sequence[Token]) -> list[Sentence]:
        sentences = []
        part: list[Token] = []
        line = 0
        for token in [*tokens, Token(END, "")]:
            if token.kind != END:
                part.append(token)
                continue
            clauses = self._clauses(part)
            if clauses:
                is_item = part[0].text == "•"
                sentences.append(Sentence(clauses, line, token.text, is_item))
            part = []
            line += token.text == "\n"
        return sentences

    def _begins_with(self, sentence: Sentence) -> frozenset[int]:
        """Find the option that a sentence begins with, perhaps behind "option"."""
        first = _words(chain(*sentence.clauses))[:2]
        if len(first) > 1 and "answer" in first[0].says and not first[0].options:
            return first[1].options
        return first[0].options if first else _NONE

    def _walked(self, sentences: Sequence[Sentence]) -> set[int]:
        """Find sentences that go through the options: in order, or as items of a list.

        One at the end that is only an option, other than the first, is the answer.
        """
        walked: set[int] = set()
        run: list[tuple[int, frozenset[int]]] = []
        for number, sentence in enumerate(sentences):
            if self._asks(sentence):
                run = []
            options = self._begins_with(sentence)
            if len(options) != 1:
                continue
            follows = False
            if run:
                is_next = min(options) == min(run[-1][1]) + 1
                is_new = all(options != other for _, other in run)
                follows = bool(self._letters) and is_next or sentence.is_item and is_new
            run = [*run, (number, options)] if follows else [(number, options)]
            if len(run) > 1:
                walked.update(range(run[0][0], number + 1))
        last = len(sentences) - 1
        if run and last in walked:
            sizes = [len(_words(chain(*sentences[place].clauses))) for place in (run[0][0], last)]
            if sizes[0] > sizes[1] == 1:
                walked.discard(last)
        return walked

    def _asks(self, sentence: Sentence) -> bool:
        first = sentence.clauses[0]
        return "question" in first[0].says and [token.text for token in first[1:2]] == [":"]

    def _taken(self, clause: Sequence[Token]) -> Reading:
        """Tell how firmly a clause takes an option, and the places of that."""
        places = [place for place, token in enumerate(clause) if token.options]
        named = _NONE.union(*(token.options for token in clause))
        is_unknown = bool(self._unknown) and _says_unknown(clause)
        if is_unknown and named <= self._unknown or named == self._all - self._unknown:
            if is_unknown and not any("unknown" in token.says for token in clause):
                return UNKNOWN, self._unknown
        if not places:
            return 0, _NONE
        before, token, after = clause[: places[0]], clause[places[0]], clause[places[0] + 1 :]
        if after and "one" in after[0].says and not _denies(before):
            return STATED, named
        if _denies(clause):
            return 0, _NONE
        words = [word for word in clause if word.kind != MARK]
        for kinds in zip(words, words[1:], words[2:], strict=False):
            if "answer" in kinds[0].says and "is" in kinds[1].says and kinds[2].options:
                return STATED, kinds[2].options
        if "reason" in clause[0].says or len({clause[place].options for place in places}) > 1:
            return 0, _NONE
        if self._letters and len(places) > 1:
            return 0, _NONE
        return self._firmness(before, token, after), named

    def _firmness(self, before: Sequence[Token], token: Token, after: Sequence[Token]) -> int:
        """Tell how firmly a clause takes the one option that it names, from what stands around it."""
        words_before, words_after = _words(before), _words(after)
        if _said(words_after[:4]) & {"right", "answer"}:
            if token.is_letter or _said(words_after[:1]) & {"is", "right", "answer"}:
                return STATED
        if len(words_after) > 1 or [mark.text for mark in after] == [":"]:
            return 0
        if "answer" in _said(before):
            return STATED
        so = [place for place, word in enumerate(words_before) if "so" in word.says]
        if so and len([word for word in words_before[so[-1] + 1 :] if "is" not in word.says]) <= 2:
            return STATED
        is_value = bool(before) and before[-1].text in (":", "=", "→")
        if is_value:
            return STATED if token.is_letter else SHORT
        if not words_before and not words_after:
            return ALONE
        is_short = len(words_before) <= _FEW or "is" in words_before[-1].says
        return SHORT if is_short and len(token.options) == 1 else 0

    def _reading(self, sentence: Sentence, fixed: bool) -> tuple[int, frozenset[int], bool]:
        """Tell how firmly a sentence takes which options, and whether it takes back what was said before."""
        firmest, taken = 0, _NONE
        is_conditional = False
        for clause in sentence.clauses:
            says = _said(clause)
            is_conditional = "if" in says or (is_conditional and "but" not in clause[0].says)
            is_no = "no" in says and len(_words(clause)) == 1
            fixed = fixed or is_no or "fix" in says
            if is_conditional:
                continue
            firm, options = self._taken(clause)
            if fixed and firm:
                firm, firmest = STATED, min(firmest, STATED - 1)
            if firm > firmest:
                firmest, taken = firm, options
            elif firm == firmest:
                taken |= options
        return firmest, taken, fixed

    def _stated(self, sentences: Sequence[Sentence]) -> Reading:
        """Find how firm the last of the firmest statements is, and the options that it takes."""
        firmest, taken = 0, _NONE
        sizes = Counter(sentence.line for sentence in sentences for clause in sentence.clauses for _ in _words(clause))
        announced = "start" in _said(chain(*chain(*(sentence.clauses for sentence in sentences))))
        line, fixed = -1, False
        for sentence in sentences:
            if taken and self._asks(sentence):
                break
            same_line = sentence.line == line
            firm, chosen, fixed = self._reading(sentence, fixed and same_line)
            if firm == ALONE and sizes[sentence.line] == 1:
                firm = STATED
            by_text = not any(token.is_letter for token in chain(*sentence.clauses))
            if not sentence.end and firm < STATED and (announced or (by_text and same_line)):
                continue
            if chosen and firm >= firmest:
                if firm == firmest == ALONE and same_line and not fixed:
                    chosen |= taken
                firmest, taken = firm, chosen
            line = sentence.line
        return firmest, taken

    def _asserted(self, sentences: Sequence[Sentence]) -> frozenset[int]:
        """Find the options that are named without being denied."""
        clauses = chain(*(sentence.clauses for sentence in sentences))
        return _NONE.union(*(token.options for clause in clauses if not _denies(clause) for token in clause))

    def _begun(self, sentences: Sequence[Sentence]) -> frozenset[int]:
        """Find the option that a text begins with, if it names no other one but to deny it, and denies nothing else.

        Options without letters may stand anywhere. "Unknown" may be said of both others: "not stated whether A or B".
        """
        clauses = list(chain(*(sentence.clauses for sentence in sentences)))
        words = _words(chain(*clauses))
        named = [token.options for token in words if token.options]
        if not named or (self._letters and not words[0].options):
            return _NONE
        others = self._asserted(sentences) - named[0]
        if others:
            return named[0] if self._letters and others == self._all - named[0] else _NONE
        for clause in clauses:
            options = _NONE.union(*(token.options for token in clause))
            if _denies(clause) and (options & named[0] or (self._letters and not options)):
                return _NONE
        return named[0]

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
        tokens = self._tokens(self._language.fold("\n".join(lines)))
        sentences = self._sentences(self._joined(tokens))
        walked = self._walked(sentences)
        kept = [one for number, one in enumerate(sentences) if number not in walked]
        firm, taken = self._stated(kept)
        if cut and firm < STATED:
            return ENDLESS
        if firm <= UNKNOWN:
            taken = self._begun(kept) or taken
        if len(taken) == 1:
            return self._names[min(taken)]
        if not taken and refuses(text, self._name):
            return REFUSED
        return SEVERAL if taken or len(self._asserted(sentences)) > 1 else UNREADABLE


def _last_option(tokens: Sequence[Token]) -> int | None:
    """Find the last option, if few tokens and no line's end stand behind it."""
    for back, token in enumerate(reversed(tokens[-5:]), 1):
        if token.options:
            return len(tokens) - back
        if token.text == "\n":
            break
    return None


def _together(previous: Token, between: Sequence[Token], token: Token, after: Token) -> Token | None:
    """Join two options, if what stands between them does."""
    words = [part for part in between if part.kind == WORD]
    is_over = any(part.kind == END for part in between)
    common = previous.options & token.options
    says = previous.says | token.says
    if common:
        differ = previous.is_letter != token.is_letter
        is_heading = previous.is_letter and after.kind in (MARK, END)
        if words or (is_over and not is_heading) or (between and not differ):
            return None
        letter = previous if previous.is_letter else token
        return letter._replace(says=says)
    joins = any("or" in word.says for word in words)
    marks = "".join(part.text for part in between if part.kind == MARK)
    if is_over or (words and not joins) or any(len(word.text) > 4 and "or" not in word.says for word in words):
        return None
    if not between or marks in ("/", "&", "+") or (joins and marks in ("", ",", ")", "),")):
        return token._replace(options=previous.options | token.options, says=says)
    return None


# of a question like the last ones, whose reader is at hand
reader = lru_cache(maxsize=256)(ChoiceReader)
